"""The simulated web: a deterministic web on loopback, its DNS, its log."""
