"""The contents of the pages of models and families: fact sheet, sources, checks, changes between generations."""
