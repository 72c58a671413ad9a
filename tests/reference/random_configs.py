"""Random configs of several changes: `python -m tests.reference.random_configs SEED NUMBER`, from the repository.

Of a random type, two to five of the changes that `every_key` makes one by one stand in one small config: other values,
nulls, keys that are left out, other and older spellings. Where transformers builds a model of it and runs it, ours must
have the same tensors, scores and numbers in the cache, refuse the config in one line, or say what differs. What is
silently different is printed. A seed makes the same configs again.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from typing import Any

from .configs import MULTIMODAL, configs
from .every_key import ABSENT, built, changed, changes, compare


def drawn(rng: random.Random, everything: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Two to five changes of a config, no two of them of one key."""
    new: dict[str, Any] = {}
    for name in rng.sample(sorted(everything), min(len(everything), rng.randint(2, 5))):
        if everything[name]:
            # The first values are the likeliest to be legal.
            change = everything[name][min(int(rng.expovariate(0.7)), len(everything[name]) - 1)]
            new = change | new
    return new


def main(seed: str, number: str) -> None:
    types, count, wrong = sorted(set(configs()) - set(MULTIMODAL)), Counter(), 0
    for n in range(int(number)):
        rng = random.Random(f"{seed} {n}")
        model_type = rng.choice(types)
        new = drawn(rng, dict(changes(model_type)))
        raw = changed(configs()[model_type], new)
        there = built(raw, is_small=not any(value in (None, ABSENT) for value in new.values()))
        state = "transformers does not run it" if there is None else compare(raw, there, set(new))
        short = state.partition(":")[0]
        count[short] += 1
        if short in ("differs", "refused"):
            print(f"{n} {model_type} {json.dumps(new)}: {state}", flush=True)
        wrong += short == "differs"
        if n % 50 == 49:
            print(n + 1, dict(count), flush=True)
    print(dict(count))
    if wrong:
        sys.exit("some differ in silence")


if __name__ == "__main__":
    main(*sys.argv[1:])
