"""Figures of the guide and the tools: multiplications, small models with all their numbers, sizes to choose."""
