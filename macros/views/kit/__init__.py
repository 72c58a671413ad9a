"""What every view is made with: HTML, SVG, formulas, rounded numbers, checked arguments. No view of a model."""
