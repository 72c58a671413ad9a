"""The forward passes, and the traces of running them on shapes. Depends only on NumPy, and on msgspec for small
values."""
