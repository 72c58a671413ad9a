"""Charts of one model's parameters and of the whole catalog."""
