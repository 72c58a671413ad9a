"""The command line: `describe`, `compare`, `what-if`, `fits`, `check`, `run`, `add`, and a model as data."""
