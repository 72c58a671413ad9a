"""The site's pages, for any builder: generated pages and files, macros, links, and the search.

mkdocs          connects these to MkDocs' events; the live preview
other_engines   connects them to Zensical and ProperDocs, with files before and after a build
extensions      Markdown extensions, for any builder

All other modules are independent of the builder, except that macros get its environment.
"""
