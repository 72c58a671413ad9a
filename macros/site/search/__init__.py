"""The site's search, from what the build knows: an index in pieces, of which a browser fetches those that a question
needs.

    words.py     a text as the words that it is found by; docs/assets/search/ask.mjs cuts a question the same way
    sections.py  a written page's HTML as its sections, each with its text
    records.py   what can be found: models, families, sections, words of the glossary, sizes, tensors
    index.py     which word is in which record, and how much that counts; the files

No page of a model is read: its numbers, names and tensors are known. So a table that grows makes no page's first search
slower.
"""
