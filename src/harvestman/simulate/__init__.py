"""A crawl in virtual time: the real frontier and policies against a modelled web, without sockets and without sleeping.

`model` is the web, a pure function of a seed, a URL and a moment; `drive` plays the crawler's loop; `judge` watches
from the servers' side; `report` and `plots` say what came of it. Thirty days pass in a minute or two, the same way
every time. docs/simulate.md
"""
