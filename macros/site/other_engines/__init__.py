"""Zensical and ProperDocs: writes sources that they build unchanged, and publishes the result."""
