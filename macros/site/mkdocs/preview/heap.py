"""Keeps the memory of a long-lived process compact, and returns free memory to the system."""

from __future__ import annotations

import ctypes
import gc
from contextlib import suppress

LOOKS = 20_000, 5, 1000  # new objects per collection, and collections per collection of the next generation
ARENA_MAX, MMAP_THRESHOLD = -8, -3  # from glibc's malloc.h


def keep_memory_whole() -> None:
    """Use one heap for all threads, with large strings outside it, so that freed strings leave no gaps. Collects
    garbage often and in small steps, because a save waits for a running collection."""
    gc.set_threshold(*LOOKS)
    with suppress(OSError, AttributeError, TypeError):
        library = ctypes.CDLL(None)
        library.mallopt(ARENA_MAX, 1)
        library.mallopt(MMAP_THRESHOLD, 1 << 18)


def trim() -> None:
    """Return freed memory to the system, if the C library would keep it (glibc)."""
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
