"""Deleting what a crawl has stored: because somebody may ask for it (takedown), or because it is old (retention).

`run` is a takedown, `retention` goes by age. `survey` finds what goes, `deed` removes it from State and files, `proof`
searches everything for what is left, `record` writes down what was done. A crawl stands still meanwhile. Each step may
be cut short and done again: first the URLs are blocked, so that nothing comes back; then State forgets, so that nothing
refers to a record that is gone; then the files are written over.
"""
