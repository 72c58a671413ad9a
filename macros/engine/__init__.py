"""The forward passes, and what a run of them on shapes leaves. Knows NumPy, and nothing of what is made of it."""
