"""What a page is given, by the module that makes it; figures come from `counting`, and no module here knows MkDocs.

- tables of one or several models: `tables`, `formulas`, `costs`, `catalogue`, `families`, `model_size`, `figure_table`
- sentences and single figures: `values`, `models` (a model's page), `headlines` (which count a maker rounds), `claims`
- drawings: `charts`, `matmul` (a multiplication to scale), `diagrams` (`dataflow` by `layout` and `drawing`)
- the forward pass, step by step: `walkthrough`, of the `operations` that a reader follows, in the words of `words`
- pieces of a sentence or cell: `rounding` (integers), `shapes` (sizes), `layers`, `parts`, `notation` (names of sizes)
- formulas: `equations` (LaTeX in a page), by `mathml`
- the kits, which all HTML and SVG is built with: `html`, `svg`
- what a macro is called with: `arguments`; models with and without sizes: `disclosed`
"""
