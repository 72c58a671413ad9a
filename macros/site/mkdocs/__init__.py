"""Everything that depends on MkDocs: passes on the events of a build, and adds pages and files.

The order of these events, by hooks.py:

on_config         markdown configures the Markdown extensions; pages completes the navigation
on_files          pages adds the pages of models and families, which model_pages wrote
on_page_markdown  a page's macros (page_macros, links, page_errors); a large result is marked (extensions.large_blocks)
                  before: pages takes a cached generated page, or makes it, and skips the next line
(Markdown)        extensions: `$…$` to MathML, the glossary; large blocks go around Markdown
on_page_context   search reads the sections of a written page
on_post_build     search writes the index
preview           under `mkdocs serve`, around all of these: skips what has not changed

other_sites has the macros on a site that is not ours.
"""
