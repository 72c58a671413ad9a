"""What the pages of models and families show: fact sheet, sources, checks, changes between generations."""
