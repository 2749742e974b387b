"""Raw records on disk: WARC and CDXJ.

`warc` writes, `replay` reads back (one record, or after a crash what was not yet worked on), `cdxj` indexes afterwards.
"""
