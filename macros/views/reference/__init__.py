"""Figures of the reference about the project itself: coverage, checked claims, packages, the list of figures."""
