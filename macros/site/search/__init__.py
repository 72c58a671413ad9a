"""The site's search, from what the build knows: an index in pieces, of which a browser fetches those that a query
needs.

    words.py     a text as its search terms; docs/assets/search/ask.mjs splits a query the same way
    sections.py  a written page's HTML as its sections, each with its text
    records.py   what can be found: models, families, sections, words of the glossary, sizes, tensors
    index.py     the words of each record with their weights; the files

Pages of models are not indexed as text: their numbers, names and tensors are known, so growing tables do not slow down
the first search.
"""
