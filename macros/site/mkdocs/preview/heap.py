"""The memory of a process that lives for hours: few gaps in it, and none that the system does not get back."""

from __future__ import annotations

import ctypes
import gc
from contextlib import suppress

NEW_OBJECTS = 100_000  # after which garbage among them is collected
ARENA_MAX, MMAP_THRESHOLD = -8, -3  # of glibc's malloc.h


def keep_memory_whole() -> None:
    """One heap for all threads, and large texts beside it: what they no longer need does not lie between the rest.
    Garbage goes soon, without a look at much else."""
    gc.set_threshold(NEW_OBJECTS, 10, 10)
    with suppress(OSError, AttributeError, TypeError):
        library = ctypes.CDLL(None)
        library.mallopt(ARENA_MAX, 1)
        library.mallopt(MMAP_THRESHOLD, 1 << 18)


def trim() -> None:
    """Give the system the memory that texts no longer need, where the C library keeps it for the next ones (glibc)."""
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
