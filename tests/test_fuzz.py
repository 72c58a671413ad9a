"""The standing attack (tests/fuzz): a few cases of each kind at each run, seconds of new ones in `.ci/run`."""

import random

import pytest
from fuzz import attack_all, tried
from fuzz.attacks import ATTACKS
from sampling import CI, COMMIT, WHOLE


@pytest.mark.parametrize("name", ATTACKS)
def test_the_first_cases_of_each_attack(name):
    rng = random.Random(name)
    for _ in range(ATTACKS[name].FEW if CI else ATTACKS[name].FEW // 4):
        find = tried(ATTACKS[name], ATTACKS[name].draw(rng))
        assert find is None, f"{find}\n{find.details}"


@pytest.mark.slow("seconds of the standing attack, and two minutes at night")
def test_the_standing_attack():
    seed = random.Random(COMMIT).randrange(10**6) if CI else 0  # another one for each commit
    counted, finds = attack_all(ATTACKS, 120 if WHOLE else 12, seed)
    assert not finds, "\n".join([f"seed {seed}", *(f"{find}\n{find.details}" for find in finds)])
    assert all(counted[name] for name in ATTACKS)
