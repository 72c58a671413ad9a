"""The training that a question asks for: its method, optimizer, sharding and recomputation."""

from __future__ import annotations

from typing import Any

METHODS = ("qlora", "dora", "lora")


class Training:
    """Reads what a question says of a training run."""

    def __init__(self, reading: Any) -> None:
        self.reading, self.said = reading, reading.said  # `question.Reading`

    def read(self) -> None:
        r, said = self.reading, self.said
        said.method = next((name for name in METHODS if name in r.words()), None)
        said.method = said.method or ("full" if r.phrases("full") else None)
        kinds = ("training", "zero", "optimizer", "recomputing")
        said.is_training = any(len(r.phrases(kind)) > 0 for kind in kinds)
        stages = [name for _, name, _ in r.taken("zero")]
        said.zero = stages[0] if stages else None
        said.zeros = [name for n, name in enumerate(stages) if name not in stages[:n]][1:]
        said.optimizer = next((name for _, name, _ in r.taken("optimizer")), None)
        said.targets = "all-linear" if r.taken("targets") else None
        for start, _, n in r.taken("recomputing"):
            denied = r.denied(start)  # `no gradient checkpointing`
            r.use(denied if denied >= 0 else start, start + n)
            said.recompute = "none" if denied >= 0 else "full"
