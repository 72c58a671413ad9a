"""The Python API: models, their counts and costs, tables, formulas and drawings, for programs and notebooks."""
