"""The forward passes, and the traces that they leave on shapes. Knows only NumPy, and msgspec for small values."""
