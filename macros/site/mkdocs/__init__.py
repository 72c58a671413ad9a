"""All that knows MkDocs: it hands the events of a build on, and takes pages and files.

The order of these events, by hooks.py:

on_config         markdown tells the Markdown extensions what MkDocs knows; pages completes the navigation
on_files          pages adds the pages of models and families, which model_pages wrote
on_page_markdown  a page's macros (page_macros, links, page_errors); a large result is marked (extensions.large_blocks)
                  before: pages takes a generated page that was kept, or makes it, and the next line is done
(Markdown)        extensions: `$…$` to MathML, the glossary; large blocks go around Markdown
on_page_context   search reads the sections of a written page
on_post_build     search writes the index
preview           under `mkdocs serve`, before and after all these: what did not change is not done again

other_sites has the macros on a site that is not ours.
"""
