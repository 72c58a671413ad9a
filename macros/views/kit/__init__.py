"""The basis of every view: HTML, SVG, formulas, rounded numbers, checked arguments. No view of a model."""
