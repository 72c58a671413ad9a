"""`python -m tests.fuzz [--seconds N] [--seed K] [--only ATTACK]`: the standing attack, each find as a file.

`python -m tests.fuzz --again FILE` tries a find once more.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))  # as for pytest: the tests' own modules

from . import attack_all, tried
from .attacks import EVERY


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Runs the standing attack.")
    parser.add_argument("--seconds", type=float, default=60, help="how long (default 60)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6), help="default: a new one")
    parser.add_argument("--only", choices=tuple(EVERY), action="append", help="one attack, or several")
    parser.add_argument("--finds", type=Path, default=Path("finds"), help="the folder of the reproductions")
    parser.add_argument("--again", type=Path, metavar="FILE", help="try the case of a reproduction, and nothing else")
    options = parser.parse_args()
    if options.again:
        saved = json.loads(options.again.read_text("utf-8"))
        find = tried(EVERY[saved["attack"]], saved["case"])
        print(find.details if find else "stood")
        return int(find is not None)
    chosen = {name: EVERY[name] for name in options.only or EVERY}
    start = time.monotonic()
    counted, finds = attack_all(chosen, options.seconds, options.seed)
    tried_of_each = ", ".join(f"{n:,} {name}" for name, n in counted.items())
    print(f"seed {options.seed}, {time.monotonic() - start:.0f} s: {tried_of_each}; {len(finds)} finds")
    for n, find in enumerate(finds):
        options.finds.mkdir(parents=True, exist_ok=True)
        file = options.finds / f"{find.attack}-{options.seed}-{n}.json"
        saved = {"attack": find.attack, "case": find.case, "how": find.how, "details": find.details}
        file.write_text(json.dumps(saved, indent=1) + "\n", "utf-8")
        print(f"  {find}\n  python -m tests.fuzz --again {file}")
    return int(bool(finds))


sys.exit(main())
