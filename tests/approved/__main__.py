"""`python -m tests.approved [MACRO ...]` writes down what macros show now; `few` what those show that go
through the catalog, `answers` what modules answer to expressions. Read the difference before you commit it."""

import sys
import time

from . import ROOT, TEXTS, answers, calls, few, write

if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tests"))  # as pytest has it: some rooms begin with what tests share
    known = calls()
    if not sys.argv[1:] or "few" in sys.argv[1:]:
        few.write()
    if not sys.argv[1:] or "answers" in sys.argv[1:]:
        for room in answers.ROOMS:
            answers.write(room)
    for name in [name for name in sys.argv[1:] if name not in ("few", "answers")] or ([] if sys.argv[1:] else known):
        began = time.monotonic()
        write(name, known[name])
        if (seconds := time.monotonic() - began) > 2:
            print(f"{name}: {seconds:.1f} s", file=sys.stderr)
    if not sys.argv[1:]:
        for path in TEXTS.glob("*.txt"):
            if path.stem not in known:
                path.unlink()
