"""`python -m tests.approved [MACRO ...]` writes down what macros show now; `few` what those show that go
through the catalog, `answers` what modules answer to expressions, `floats` what forward passes give at large numbers
of a config, `towers` how towers cut images and sounds. Read the difference before you commit it."""

import sys
import time
from collections.abc import Callable

from . import ROOT, TEXTS, answers, calls, few, write

if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tests"))  # as pytest has it: some rooms begin with what tests share
    from . import floats, towers

    known, asked = calls(), set(sys.argv[1:])
    parts: dict[str, Callable[[], object]] = {"few": few.write, "floats": floats.write, "towers": towers.write}
    parts["answers"] = lambda: [answers.write(room) for room in answers.ROOMS]
    for part in parts.keys() & (asked or parts.keys()):
        parts[part]()
    for name in asked - parts.keys() or ([] if asked else known):
        began = time.monotonic()
        write(name, known[name])
        if (seconds := time.monotonic() - began) > 2:
            print(f"{name}: {seconds:.1f} s", file=sys.stderr)
    if not asked:
        for path in TEXTS.glob("*.txt"):
            if path.stem not in known:
                path.unlink()
