"""The basis of every view: HTML, SVG, formulas, rounded numbers, checked arguments. It contains no view of a model."""
