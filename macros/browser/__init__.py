"""The engine and the counting as JavaScript, and the parts of them that the tools' pages load."""
