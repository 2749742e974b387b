"""The link graph of a crawl: built from its page log, ranked, and fed back to its queues. See docs/graph.md."""
