"""The corpus: the best text of every stored page, with what is needed to choose among the documents and to trust them.

`build` makes it from the WARC files alone, whenever it is asked to, without fetching anything. What a document says of
itself is pure: `extract` (main text), `quality` (signals and a verdict), `pii` (masking), `licence` (hints), `minhash`
(near duplicates). docs/corpus.md describes the columns.
"""
