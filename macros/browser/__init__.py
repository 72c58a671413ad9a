"""Compiles the engine and the counting to JavaScript, split into the files that the tools' pages load."""
