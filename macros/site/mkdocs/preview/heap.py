"""The memory of a process that lives for hours: few gaps in it, and none that the system does not get back."""

from __future__ import annotations

import ctypes
import gc
from contextlib import suppress

LOOKS = 20_000, 5, 1000  # new objects between two looks at them, so many of which lead to one at those that stayed
ARENA_MAX, MMAP_THRESHOLD = -8, -3  # of glibc's malloc.h


def keep_memory_whole() -> None:
    """One heap for all threads, and large texts beside it: what they no longer need does not lie between the rest.
    Garbage goes soon, a little at a time: a save waits for the look under way."""
    gc.set_threshold(*LOOKS)
    with suppress(OSError, AttributeError, TypeError):
        library = ctypes.CDLL(None)
        library.mallopt(ARENA_MAX, 1)
        library.mallopt(MMAP_THRESHOLD, 1 << 18)


def trim() -> None:
    """Give the system the memory that texts no longer need, where the C library keeps it for the next ones (glibc)."""
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
