"""Figures, tables and drawings as HTML and SVG, by one kit for each. Knows the counts, and no builder of sites."""
