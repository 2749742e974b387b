"""Harvestman: a polite, durable, very fast web crawler."""

__version__ = "0.1.0"
