"""The pages of the site, for whatever builds them: generated pages and files, the macros of pages, links, the search.

mkdocs          what connects these to MkDocs' events, and the live preview
other_engines   what connects them to Zensical and ProperDocs: files before a build, files after it
extensions      of Markdown, for any of them

All other modules know no engine, except that macros are handed the environment that the engine gives them.
"""
