"""The public data format, one object for `describe --format json`, `data/v1` and the Python API, with its schemas."""
