"""Arrays in .npy files, whose header is checked before any number is read."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.lib import format as npy

from .bounds import LARGEST_ARRAY
from .errors import Problem, shorten
from .files import opened, size_of
from .interface import Array

HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
NUMBERS = "fiu"  # kinds of NumPy types: floating point and integers
SAVE = "save the array by numpy.save"


def read_array(path: Path, shape: Sequence[int]) -> Array:
    """The numbers of a .npy file, as float32 of this shape. Raises `Problem` for any other file or shape."""
    size = size_of(path, LARGEST_ARRAY)
    with opened(path) as file:
        found, in_columns, dtype = _header(file)
        check_array(dtype, found, shape)
        if size - file.tell() != math.prod(found) * dtype.itemsize:
            raise Problem(
                f"has {size - file.tell():,} bytes of numbers, and {shorten(list(found))} of {dtype} takes "
                f"{math.prod(found) * dtype.itemsize:,}",
                SAVE,
            )
        numbers = np.frombuffer(file.read(), dtype)
    return as_float32(numbers.reshape(found, order="F" if in_columns else "C"))


def check_array(dtype: np.dtype, found: Sequence[int], shape: Sequence[int]) -> None:
    """Raise `Problem` for an array of anything but numbers, or of another shape."""
    if dtype.kind not in NUMBERS:
        raise Problem(f"holds {shorten(str(dtype))}, not floating-point or whole numbers", "give an array of float32")
    if tuple(found) != tuple(map(int, shape)):
        raise Problem(f"is {shorten(list(found))}, and not {list(map(int, shape))}", "give an array of this shape")


def as_float32(numbers: Array) -> Array:
    """The array as float32. Raises `Problem` if a number is not finite after the conversion."""
    with np.errstate(all="ignore"):
        single = numbers.astype(np.float32)
    if not np.isfinite(single).all():
        raise Problem("holds NaN, infinity, or a number beyond float32", "give finite numbers")
    return single


def _header(file: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, whether in Fortran order, and type."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the parser's warning about Python 2
            return HEADERS[npy.read_magic(file)](file)
    except OSError:
        raise
    except Exception:  # the header is a Python literal, whose parser raises errors of many kinds
        raise Problem("is not a .npy file", SAVE) from None
