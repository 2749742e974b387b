"""SQL over a crawl: `cache` keeps what the crawl has as Parquet, `engine` asks DuckDB."""
