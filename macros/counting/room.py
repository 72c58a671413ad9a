"""The largest number for which there is room."""

from __future__ import annotations

from collections.abc import Callable


def last_with_room(left: Callable[[int], int], most: int) -> int | None:
    """The largest number, counted from 1, for which `left` is not negative; 0 if there is none, None if it is `most` or
    more. `left` falls from 2 on. The search alternates between linear interpolation, because bytes grow about evenly,
    and bisection."""
    low, high, is_line = 2, most, True  # at 1 an encoder reads its input, and holds more than later
    left_of_high = left(high)
    if left_of_high >= 0:
        return None
    left_of_low = left(low)
    if left_of_low < 0:
        return 1 if left(1) >= 0 else 0
    while high - low > 1:
        on_line = low + (high - low) * left_of_low // (left_of_low - left_of_high)
        middle = min(max(on_line, low + 1), high - 1) if is_line else (low + high) // 2
        is_line = not is_line
        if (here := left(middle)) >= 0:
            low, left_of_low = middle, here
        else:
            high, left_of_high = middle, here
    return low
