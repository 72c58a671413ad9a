"""The engine and the counting as JavaScript, and what the tools' pages load of them."""
