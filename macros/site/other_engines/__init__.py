"""Zensical and ProperDocs: the sources that they build as they are, and what is published of the result."""
