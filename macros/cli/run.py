"""`run`: the next tokens by a checkpoint's real weights, what each station of the way there gives, and a text
continued."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from ..catalogue.checkpoints import Checkpoint, checkpoint
from ..engine import numbers
from ..engine.checkpoint import Cache
from ..engine.errors import Problem
from ..engine.forward import logits
from ..engine.ops import softmax
from ..engine.steps import Role, Step, Tracer
from ..engine.tensors import SOURCE
from ..views import words
from ..views.layers import n_layers
from ..views.operations import Operation, Section, sections_of
from . import fits, room
from .printing import Column, Grid, show

SHOWN_AFTER = 8  # layers to compute, from which on a bar says how far it is


def predict(options, warn: Callable[[str, Sequence[str]], None]) -> None:
    """Print what was asked for; `warn` says what a reader should know of the folder."""
    asked = checkpoint(options.folder)
    sizes = asked.model.config.symbols
    if options.text is not None:
        tokens = asked.tokenizer.encode(options.text)
        if not tokens:
            raise Problem("--text: there is no token in it", "give the beginning of a sentence")
    else:
        tokens = read_tokens(options.tokens, int(sizes["vocab_size"]))
    read = read_source(options.source, sizes)
    positions, more = sizes.get("n_positions"), max(options.generate - 1, 0)
    if positions is not None and len(tokens) + more > positions:
        and_more = f" and {more} more to be read" if more else ""
        raise Problem(
            f"--{'text' if options.tokens is None else 'tokens'}: {len(tokens)} tokens{and_more}, and the model has "
            f"{positions} positions",
            f"give at most {positions}",
        )
    allowed = fits.amount(options.memory, "--memory") if options.memory else None
    try:
        warn(options.folder, room.check(asked.model, len(tokens) + more, options.logits is not None, allowed))
    except Problem as problem:
        raise problem.at(options.folder) from None
    with np.errstate(all="ignore"), progress(n_layers(asked.model) * (1 + more)) as watch:
        try:
            steps = continued(asked, tokens, read, watch, is_last=options.logits is None)
            scores = next(steps)
            chosen = [(scores[-1].argmax(), softmax(scores[-1].astype(np.float64)).max())] if options.generate else []
            for row in steps if more else ():
                chosen.append((row[-1].argmax(), softmax(row[-1].astype(np.float64)).max()))
                if len(chosen) == options.generate:
                    break
            stations = trace(asked, tokens, read) if options.trace else None
        except Problem as problem:
            raise problem.at(options.folder) from None
    warn(options.folder, (*asked.model.warnings, *asked.files.warnings()))
    if options.logits:
        save(scores, options.logits)
    if stations:
        show([stations])
        print()
    name = asked.tokenizer.token if options.text is not None else None
    shares = softmax(scores[-1].astype(np.float64))
    best = np.argsort(-shares, kind="stable")[: options.top]
    print_tokens([(token, float(shares[token])) for token in best], name)
    if options.generate:
        print()
        print_tokens(chosen, name)
        ids = [*tokens, *(int(token) for token, _ in chosen)]
        print()
        print(",".join(map(str, ids)) if name is None else asked.tokenizer.decode(ids))


def continued(
    asked: Checkpoint, tokens: list[int], read: np.ndarray | None, watch: Tracer | None, is_last: bool
) -> Iterator[np.ndarray]:
    """Logits of the text, then of the most likely token after it and so on: float32, [T V] and then [1 V]."""
    weights, cache, new = asked.weights(watch), Cache(read=read), tokens
    while True:
        last = is_last or new is not tokens
        scores, cache = logits(asked.model.architecture, asked.model.config, weights, new, cache, last=last)
        scores = scores.astype(np.float32)
        if not np.isfinite(scores).all():
            raise Problem(
                "the logits are not finite numbers", "the files hold NaN or infinity, or belong to another config.json"
            )
        yield scores
        new = [int(scores[-1].argmax())]


def trace(asked: Checkpoint, tokens: list[int], read: np.ndarray | None) -> Grid:
    """Each station of the text's way, with the shape, the mean and the largest size of what it gives; where layers keep
    something else than a row of each token, each step that has weights, and each layer.
    """
    model = asked.model
    try:
        run, _ = numbers.trace(model.architecture, model.config, asked.weights(), tokens)
        rows = [_row(*row, run) for row in _stations(sections_of(run.root), "")]
    except numbers.NotByToken:
        watch = Stations()
        scores, _ = logits(model.architecture, model.config, asked.weights(watch), tokens, Cache(read=read))
        rows = [*watch.rows, ["", words.of_call(Role.FORWARD, None, "").title, *_figures(scores)]]
    columns = [Column("layer"), Column("station"), *(Column(c, True) for c in ("shape", "mean", "largest"))]
    return Grid(columns, rows)


def _stations(section: Section, layer: str) -> Iterator[tuple[str, Operation]]:
    """Every operation with the number of its layer, in order."""
    for item in section.content:
        if isinstance(item, Operation):
            yield layer, item
        else:
            yield from _stations(item, str(item.node.layers[0]) if item.node.layers else layer)


def _row(layer: str, operation: Operation, run: numbers.Numbers) -> list[str]:
    about = f" ({operation.about})" if operation.about else ""
    return [layer, operation.words.title + about, *_figures(run.of(operation.node.outputs[0]))]


def _figures(given: np.ndarray) -> list[str]:
    """The shape, the mean and the largest size."""
    finite = given[np.isfinite(given)].astype(np.float64)  # a masked score is minus infinity
    mean, largest = (finite.mean(), np.abs(finite).max()) if finite.size else (0.0, 0.0)
    return ["×".join(map(str, given.shape)), f"{mean:.4f}", f"{largest:.4f}"]


def print_tokens(rows: Sequence[tuple[Any, float]], name: Callable[[int], str] | None) -> None:
    """Token ids with their probabilities, and their words where there is a tokenizer."""
    print("token id  probability" + ("" if name is None else "  token"))
    for token, share in rows:
        print(f"{token:8}  {share:.6f}" + ("" if name is None else f"     {name(int(token))}"))


def save(scores: np.ndarray, path: str) -> None:
    """Write the logits as a .npy file."""
    try:
        with open(path, "wb") as file:
            np.save(file, scores)
    except OSError as error:
        raise Problem(f"cannot be written: {error.strerror}", "check the path", path) from None


class Watch:
    """Sees the steps that have weights."""

    def repeat(self, body: Callable[..., Any], state: Any, xs: tuple[Any, ...]) -> Any:
        raise AssertionError("weights carry no recurrence")


class Stations(Watch):
    """What each step gives that has weights and no other such step inside, and each layer, as they are computed."""

    def __init__(self):
        self.rows: list[list[str]] = []
        self.around: list[Role] = []

    def call(self, step: Step, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        inside, before = self.around[-1] if self.around else None, len(self.rows)
        self.around.append(step.role)
        result = step.function(*args, **kwargs)
        self.around.pop()
        arrays = [a for a in (result if isinstance(result, tuple) else (result,)) if isinstance(a, np.ndarray)]
        if arrays and (before == len(self.rows) or step.role is Role.LAYER):
            weights = next(a for a in args if getattr(a, "__tracer__", None) is not None)
            layer = str(weights.index) if Role.LAYER in (step.role, *self.around) else ""
            name = next((f" ({a})" for a in args if isinstance(a, str)), "")
            title = words.of_call(step.role, inside, step.doc).title
            self.rows.append([layer, title + name, *_figures(arrays[0])])
        return result


class Layers(Watch):
    """Counts the layers that have been computed."""

    def __init__(self, bar: Progress, all_layers: int):
        self.bar, self.task = bar, bar.add_task("computing", total=all_layers)

    def call(self, step: Step, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        result = step.function(*args, **kwargs)
        if step.role is Role.LAYER:
            self.bar.advance(self.task)
        return result


@contextmanager
def progress(layers: int) -> Iterator[Tracer | None]:
    """A bar on standard error while many layers are computed; nothing where that is no terminal."""
    if layers < SHOWN_AFTER or not sys.stderr.isatty():
        with nullcontext():
            yield None
        return
    parts = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total} layers")
    with Progress(*parts, TimeElapsedColumn(), console=Console(stderr=True), transient=True) as bar:
        yield Layers(bar, layers)


def read_source(given: str | None, sizes: Mapping[str, int]) -> np.ndarray | None:
    """What an encoder is to read: [M] token ids, or from a file the [2M bands] numbers of a spectrogram.

    Raises `Problem` where something is missing, too much or no such thing.
    """
    if SOURCE not in sizes:
        if given is not None:
            raise Problem("--source: the model has no encoder", "leave it out")
        return None
    bands = sizes.get("n_bands")
    what = "token ids with commas between" if bands is None else "a .npy file of a spectrogram"
    if given is None:
        raise Problem("the model has an encoder, and nothing is there for it to read", f"give --source {what}")
    if bands is None:
        ids, longest = read_tokens(given, int(sizes["vocab_size"]), "--source"), sizes.get("n_positions")
        if longest is not None and len(ids) > longest:
            raise Problem(
                f"--source: {len(ids)} tokens, and the model has {longest} positions", f"give at most {longest}"
            )
        return np.array(ids)
    try:
        sound = np.load(given, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise Problem(f"--source: {error}", f"give {what}") from None
    shape = 2 * sizes[SOURCE], bands
    if getattr(sound, "shape", None) != shape:
        raise Problem(f"--source: not {shape[0]} moments of {shape[1]} bands", "give the loudness of each")
    return sound.astype(np.float32)


def read_tokens(text: str, vocabulary: int, option: str = "--tokens") -> list[int]:
    """Token ids from `464,3139,…`. Raises `Problem` for no id of this vocabulary."""
    tokens = []
    for part in text.split(","):
        if not (part.strip().isascii() and part.strip().isdigit() and len(part) < 20):
            raise Problem(
                f"{option}: {part.strip()[:40]!r} is not a token id",
                "give whole numbers with commas between, such as 464,3139,286",
            )
        tokens.append(int(part))
        if tokens[-1] >= vocabulary:
            raise Problem(
                f"{option}: {tokens[-1]} is beyond the vocabulary", f"ids of this model run from 0 to {vocabulary - 1}"
            )
    return tokens
