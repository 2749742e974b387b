"""Raw records on disk: WARC and CDXJ."""
