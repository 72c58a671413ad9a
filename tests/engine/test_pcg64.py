"""Random integers in whole numbers alone: those of NumPy's default generator."""

import numpy as np
import pytest

from macros.engine.pcg64 import random_integers


@pytest.mark.parametrize("seed", [0, 10007, 14 * 10007, 2**40 + 3, 2**100 + 7])
@pytest.mark.parametrize("high", [2**33, (2**63 - 1) // 99092 // 2, 2**62 + 12345])
def test_they_are_numpys(seed, high):
    assert random_integers(seed, high, 50) == np.random.default_rng(seed).integers(high, size=50).tolist()
