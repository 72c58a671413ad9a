"""HTML and SVG for the pages, by topic; figures come from `counting`; no module here depends on MkDocs.

From the bottom up; each package imports only those above it in this list (tests/test_rooms.py):

- `words`: plain words and the field's terms, names of sizes
- `kit`: the basis of all views: HTML, SVG, formulas, rounded numbers, checked arguments, shared conventions
- `trace`: the forward pass, step by step: layers, parts, operations, the walkthrough
- `tables`: a model's parameters, the formulas that add up to them, models side by side
- `costs`: FLOPs, bytes moved, cache, memory, training, time; `charts`: of a model's parts and of the catalog;
  `diagrams`: the graph of the data flow, its layout, its drawing
- `models`: the content of the pages of models and families
- `guide`: figures of the guide and the tools; `reference`: figures of the reference about the project itself
"""
