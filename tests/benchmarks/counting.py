"""How long counting takes: `python tests/benchmarks/counting.py`, from the repository.

One model (trace, collapsed names, total, formula, FLOPs), the whole catalogue, and `check` as a process; where
transformers and torch are installed, the same total from a model on the meta device. Best of several runs.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT))

from macros.catalogue import presets  # noqa: E402
from macros.counting.parameters import Counts  # noqa: E402
from macros.engine.errors import Problem  # noqa: E402
from macros.engine.forward import trace  # noqa: E402

SHOWN = (
    "gpt2",
    "llama3-8b",
    "llama3.1-405b",
    "mistral-7b-v0.1",
    "mixtral-8x7b",
    "gemma2-27b",
    "deepseek-v3",
    "kimi-k2",
)


def best(function, runs: int) -> float:
    """Seconds of the fastest of several runs."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def count(model):
    """Names, total, formula and FLOPs of one model, from nothing but its config."""
    counts = Counts(trace(model.architecture, model.config))
    return [w.name for w in counts.weights], counts.total, counts.total_poly, counts.flops


def countable():
    for slug in presets.paths():
        try:
            yield presets.model(slug)
        except Problem:
            pass


def meta(model) -> int:
    """The total as transformers gives it, from a model on the meta device."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    with torch.device("meta"):
        made = AutoModelForCausalLM.from_config(AutoConfig.for_model(**model.preset.config))
    return sum(p.numel() for p in made.parameters())


def on_the_meta_device(model) -> float | None:
    """Seconds that transformers takes to the same total, None where it is not installed or does not know the model."""
    try:
        return best(lambda: meta(model), 2)
    except ImportError:
        return None
    except Exception as error:
        print(f"  transformers on {model.slug}: {type(error).__name__}")
        return None


def main() -> None:
    for slug in SHOWN:
        try:
            model = presets.model(slug)
        except Problem as problem:
            print(problem)
            continue
        ours, theirs = best(lambda model=model: count(model), 50), on_the_meta_device(model)
        beside = "" if theirs is None else f"   transformers on the meta device {theirs * 1e3:8.1f} ms"
        print(f"{slug:18} {ours * 1e3:6.2f} ms{beside}")
    models = list(countable())
    whole = best(lambda: [count(m) for m in models], 3)
    print(f"{'catalogue':18} {whole * 1e3:6.0f} ms   {len(models)} models, {whole / len(models) * 1e3:.2f} ms each")
    process = best(lambda: subprocess.run([sys.executable, "-m", "macros", "check"], cwd=ROOT, capture_output=True), 3)
    print(f"{'check, a process':18} {process * 1e3:6.0f} ms")


if __name__ == "__main__":
    main()
