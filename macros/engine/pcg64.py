"""NumPy's default generator of random integers, in integer arithmetic, for constants that a model derives from a seed.

PCG64 (O'Neill, 2014; XSL-RR on 128 bits) after `numpy.random.SeedSequence`, and Lemire's bounded integers (arXiv
1805.10941). The engine also runs where `numpy.random` is missing: in the browser.
"""

from __future__ import annotations

TWO_16, TWO_32, TWO_64, TWO_128 = 2**16, 2**32, 2**64, 2**128
MULTIPLIER = 47026247687942121848144207491837523525
POOL = 4


def random_integers(seed: int, high: int, n: int) -> list[int]:
    """`numpy.random.default_rng(seed).integers(high, size=n)` in 64 bits, for a `high` of more than 32 bits."""
    start, stream = seeded(seed)
    increment = (stream * 2 + 1) % TWO_128
    state = ((increment + start) * MULTIPLIER + increment) % TWO_128
    least, found = TWO_64 % high, list[int]()
    while len(found) < n:
        state = (state * MULTIPLIER + increment) % TWO_128
        product = folded(state) * high
        if product % TWO_64 >= least:
            found.append(product // TWO_64)
    return found


def folded(state: int) -> int:
    """A 64-bit word from a 128-bit state: both halves combined, rotated right by the state's highest bits."""
    word, power = (state // TWO_64) ^ (state % TWO_64), 2 ** (state // 2**122)
    return word // power + word % power * (TWO_64 // power) % TWO_64


def seeded(seed: int) -> tuple[int, int]:
    """The state and the stream of the generator for a seed below 2**128: 128 bits each."""
    constants = hash_constants(0x43B0D7E5, 0x931E8875, POOL * POOL)
    pool = [hashed(seed // TWO_32**i % TWO_32, *constants[i]) for i in range(POOL)]
    used = POOL
    for source in range(POOL):
        for target in range(POOL):
            if source != target:
                pool[target] = mixed(pool[target], hashed(pool[source], *constants[used]))
                used += 1
    constants = hash_constants(0x8B51F9DD, 0x58F38DED, 2 * POOL)
    words = [hashed(pool[i % POOL], *constants[i]) for i in range(2 * POOL)]
    high, low, stream_high, stream_low = (words[2 * i] + words[2 * i + 1] * TWO_32 for i in range(4))
    return high * TWO_64 + low, stream_high * TWO_64 + stream_low


def hash_constants(start: int, factor: int, n: int) -> list[tuple[int, int]]:
    """The two constants of each of `n` consecutive hashes."""
    found = list[tuple[int, int]]()
    for _ in range(n):
        after = start * factor % TWO_32
        found.append((start, after))
        start = after
    return found


def hashed(word: int, before: int, after: int) -> int:
    """SeedSequence's hash of a 32-bit word."""
    word = (word ^ before) * after % TWO_32
    return word ^ (word // TWO_16)


def mixed(x: int, y: int) -> int:
    """One 32-bit word mixed from two."""
    word = (0xCA01F9DD * x - 0x4973F715 * y) % TWO_32
    return word ^ (word // TWO_16)
