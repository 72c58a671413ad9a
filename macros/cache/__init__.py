"""Caches: results in memory, with their dependencies, and results on disk.

There are three kinds of cache, and docs/reference/caching.md says which one to use; tests/test_caching.py finds any
other.

    pure        functools' `cache` and `cached_property`   never stale: from plain values or immutable objects;
                                                           a model's costs alone save 10 s of a build's 28
    tracked     memory.py: `memoized`, `Latest`            stale when a preset, a page or a file that it used changes
    on disk     disk.py: `cached_on_disk`                  the same, and when any of the code or a library changes
"""
