"""The command line: `describe`, `compare`, `what-if`, `fits`, `train`, `check`, `run`, `add`, and a model as data."""
