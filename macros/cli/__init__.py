"""The command line: `describe`, `check`, `run`, `add`."""
