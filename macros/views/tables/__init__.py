"""Tables of a model's tensors and parameters, and the formulas that add up to them."""
