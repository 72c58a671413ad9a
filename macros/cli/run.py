"""`run`: the next tokens according to a checkpoint's real weights, the output of each step, and a generated
continuation."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from ..api.running import check, continued, likeliest, read
from ..api.tracing import TracedStep, Watch, traced
from ..catalogue.checkpoints import checkpoint
from ..counting import design
from ..engine.errors import Problem, cut, seen
from ..engine.files import writing
from ..engine.steps import Role, Step, Tracer
from .printing import Column, Grid, show

LONGEST_TOKEN = 100  # characters of a token that are printed
SHOWN_AFTER = 8  # minimum number of layers for a progress bar


def predict(options, warn: Callable[[str, Sequence[str]], None]) -> None:
    """Print the answer; `warn` prints warnings about the folder."""
    asked, more = checkpoint(options.folder), max(options.generate - 1, 0)
    reading = read(asked, options.text, options.tokens, options.source)
    tokens, source = reading.tokens, reading.source
    warn(options.folder, check(asked, reading, more, options.logits is not None, options.memory))
    layers = 0 if options.without else design.n_layers(asked.model.counts) * (1 + more)
    with np.errstate(all="ignore"), progress(layers) as watch:
        try:
            steps = continued(asked, tokens, source, watch, options.logits is None, options.without)
            scores = next(steps)
            chosen = likeliest(scores, 1) if options.generate else []
            for row in steps if more else ():
                chosen += likeliest(row, 1)
                if len(chosen) == options.generate:
                    break
            stations = trace(traced(asked, tokens, source, options.without)) if options.trace else None
        except Problem as problem:
            raise problem.at(options.folder) from None
    found, ids = likeliest(scores, options.top), [*tokens, *(token for token, _ in chosen)]
    shown = [*([token] for token, _ in (*found, *chosen)), ids]
    texts = None if options.text is None else list(map(seen, asked.tokenizer.texts(shown)))
    warn(options.folder, (*asked.model.warnings, *asked.files.warnings()))
    if options.logits:
        save(scores, options.logits)
    if stations:
        show([stations])
        print()
    print_tokens(found, texts)
    if chosen:
        print()
        print_tokens(chosen, texts and texts[len(found) :])
        print()
        print(texts[-1] if texts else ",".join(map(str, ids)))


def trace(steps: Sequence[TracedStep]) -> Grid:
    """Each step, with the shape, the mean and the largest absolute value of its output."""
    rows = [["" if layer is None else str(layer), title, *_figures(output)] for layer, title, output in steps]
    columns = [Column("layer"), Column("station"), *(Column(c, True) for c in ("shape", "mean", "largest"))]
    return Grid(columns, rows)


def _figures(given: np.ndarray) -> list[str]:
    """The shape, the mean and the largest absolute value."""
    finite = given[np.isfinite(given)].astype(np.float64)  # a masked score is minus infinity
    mean, largest = (finite.mean(), np.abs(finite).max()) if finite.size else (0.0, 0.0)
    return ["×".join(map(str, given.shape)), f"{mean:.4f}", f"{largest:.4f}"]


def print_tokens(rows: Sequence[tuple[int, float]], texts: Sequence[str] | None) -> None:
    """Print token ids with their probabilities and, if there is a tokenizer, their texts on one line."""
    print("token id  probability" + ("" if texts is None else "  token"))
    for (token, share), text in zip(rows, texts or [""] * len(rows)):
        print(f"{token:8}  {share:.6f}     {cut(text, LONGEST_TOKEN)}".rstrip())


def save(scores: np.ndarray, path: str) -> None:
    """Write the logits as a .npy file."""
    with writing(Path(path)) as file:
        sink: Any = SimpleNamespace(write=file.write)  # given a file, NumPy does not report write errors
        np.save(sink, scores)


class Layers(Watch):
    """Counts the computed layers."""

    def __init__(self, bar: Progress, all_layers: int):
        self.bar, self.task = bar, bar.add_task("computing", total=all_layers)

    def call(self, step: Step, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        result = step.function(*args, **kwargs)
        if step.role is Role.LAYER:
            self.bar.advance(self.task)
        return result


@contextmanager
def progress(layers: int) -> Iterator[Tracer | None]:
    """A progress bar on standard error for a computation with many layers; none if it is not a terminal."""
    if layers < SHOWN_AFTER or not sys.stderr.isatty():
        with nullcontext():
            yield None
        return
    parts = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total} layers")
    with Progress(*parts, TimeElapsedColumn(), console=Console(stderr=True), transient=True) as bar:
        yield Layers(bar, layers)
