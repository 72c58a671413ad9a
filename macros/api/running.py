"""Predicts the next token with a checkpoint's real weights: token ids in, logits out, in float32."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np

from ..catalogue.checkpoints import AnyCheckpoint, checkpoint
from ..counting.asked import whole
from ..engine import numbers
from ..engine.architectures.config import Config
from ..engine.array_files import as_float32, check_array, read_array
from ..engine.errors import Problem
from ..engine.forward import logits
from ..engine.loaded import Cache
from ..engine.ops import softmax
from ..engine.steps import Tracer
from ..engine.tensors import SOURCE
from . import run_memory
from .conditions import warn
from .fits import amount
from .tables import Row, Table, Tabular
from .tracing import TracedStep, traced


class Prediction(Tabular):
    """The input tokens, their logits ([T V] float32, or [1 V] for the last one) and the most likely next tokens.

    `steps`: with `trace`, each step with its output.
    """

    def __init__(self, tokens: list[int], scores: np.ndarray, top: Table, steps: Sequence[TracedStep] = ()):
        self.tokens, self.logits, self.top, self.steps = tokens, scores, top, tuple(steps)

    @property
    def table(self) -> Table:
        return self.top

    def __repr__(self) -> str:
        return repr(self.top)


def run(
    folder: str | os.PathLike[str],
    text: str | None = None,
    *,
    tokens: Sequence[int] | np.ndarray | None = None,
    source: str | os.PathLike[str] | Sequence[int] | np.ndarray | None = None,
    top: int = 5,
    all_logits: bool = False,
    memory: str | None = None,
    without: str | Sequence[str] = (),
    trace: bool = False,
) -> Prediction:
    """The most likely next tokens after a text, or after token ids, with the weights of a checkpoint folder.

    `folder` holds config.json and *.safetensors, or is `capitals`, the included small model; its tokenizer.json splits
    a text. `source` is the input of an encoder: token ids, or a [2M bands] spectrogram or its .npy file. `all_logits`
    returns the logits of every token. Refuses a run that needs more memory than there is, or than `memory` ("8GB").
    `without` leaves out designs, one or several: `scaling` of the attention scores, `causal_mask`, `norms` (or one by
    its name, such as `ln_f`), `residual_stream`. `trace` keeps the output of each step: `steps`. Issues the warnings of
    `load`. Raises `Problem`.
    """
    name, most = os.fspath(folder) if isinstance(folder, (str, os.PathLike)) else None, whole("top", top, 10**9)
    if not isinstance(name, str):
        raise Problem("no path", "give it as text, or as a pathlib.Path").about("folder", folder)
    if (text is None) == (tokens is None):
        raise Problem("run needs a text or token ids", "give one of text= and tokens=")
    if not (text is None or isinstance(text, str)):
        raise Problem("expected a text", "give the beginning of a sentence").about("text", text)
    if not (tokens is None or isinstance(tokens, (Sequence, np.ndarray))):
        raise Problem("no list of token ids", "give whole numbers, such as [464, 3139]").about("tokens", tokens)
    left_out = (without,) if isinstance(without, str) else tuple(without)
    ids = None if tokens is None else ",".join(map(str, tokens))
    asked = checkpoint(name)
    reading = read(asked, text, ids, source)
    said = check(asked, reading, 0, all_logits, memory)
    with np.errstate(all="ignore"):
        try:
            scores = next(continued(asked, reading.tokens, reading.source, None, not all_logits, left_out))
            steps = traced(asked, reading.tokens, reading.source, left_out) if trace else ()
        except Problem as problem:
            raise problem.at(name) from None
    warn((*said, *asked.model.warnings, *asked.files.warnings()))
    found = likeliest(scores, most)
    texts = [None] * len(found) if text is None else asked.tokenizer.texts([[n] for n, _ in found])
    rows: list[Row] = [{"token": n, "probability": share, "text": said} for (n, share), said in zip(found, texts)]
    return Prediction(reading.tokens, scores, Table(("token", "probability", "text"), rows), steps)


def _ablated(asked: AnyCheckpoint, tokens: list[int], without: Sequence[str], is_last: bool) -> np.ndarray:
    """Logits of a text with some designs left out: [T V], or [1 V] for the last token."""
    model = asked.model
    trace, _ = numbers.trace(model.architecture, model.config, asked.weights(), tokens, without=without)
    scores = trace.of(trace.root.outputs[0]).astype(np.float32)
    return scores[-1:] if is_last else scores


def likeliest(scores: np.ndarray, top: int) -> list[tuple[int, float]]:
    """Token ids with their probabilities, from the last row of [T V], most likely first."""
    shares = softmax(scores[-1].astype(np.float64))
    return [(int(n), float(shares[n])) for n in np.argsort(-shares, kind="stable")[:top]]


class Reading(NamedTuple):
    """The input of a run: the token ids of a text and, for an encoder, ids or a spectrogram."""

    parameter: str  # the parameter with the tokens
    tokens: list[int]
    source: np.ndarray | None


def read(asked: AnyCheckpoint, text: str | None, ids: str | None, source: object) -> Reading:
    """The input of a run, from a text or its ids (`464,3139`). Raises `Problem`."""
    if head := asked.model.head:
        raise Problem(
            f"{head.name} ({head.said}) scores no next token",
            "give a checkpoint with its own head; describe counts this one",
            asked.name,
        )
    if ids is None:
        tokens = asked.tokenizer.encode(text or "")
        if not tokens:
            raise Problem("it has no tokens", "give the beginning of a sentence", parameter="text")
    else:
        tokens = read_tokens(ids, asked.model.config.readable_ids)
    return Reading("text" if ids is None else "tokens", tokens, read_source(source, asked.model.config))


def check(asked: AnyCheckpoint, reading: Reading, more: int, all_logits: bool, memory: str | None) -> list[str]:
    """A line about the memory that a run takes, if that is a large amount; `more` tokens will follow. Raises `Problem`
    if the model has no positions for them, or the machine too little memory."""
    tokens, positions = reading.tokens, asked.model.config.position_reach
    if positions is not None and len(tokens) + more > positions:
        and_more = f" and {more} more to be read" if more else ""
        raise Problem(
            f"{len(tokens)} tokens{and_more}, and the model has {positions} positions",
            f"give at most {positions}",
            parameter=reading.parameter,
        )
    allowed = amount(memory, "memory") if memory else None
    try:
        return run_memory.check(asked.model, len(tokens) + more, all_logits, allowed)
    except Problem as problem:
        raise problem.at(asked.name) from None


def continued(
    asked: AnyCheckpoint,
    tokens: list[int],
    read: np.ndarray | None,
    watch: Tracer | None,
    is_last: bool,
    without: Sequence[str] = (),
) -> Iterator[np.ndarray]:
    """Logits of the text, then of the most likely token after it and so on: float32, [T V] and then [1 V].

    `without` leaves out designs; each step then computes the whole text, since without a mask its earlier rows change.
    """
    weights, cache, new = asked.weights(watch), Cache(read=read), tokens
    text: list[int] = []
    while True:
        last = is_last or new is not tokens
        if without:
            text += new
            scores = _ablated(asked, text, without, last)
        else:
            scores, cache = logits(asked.model.architecture, asked.model.config, weights, new, cache, last=last)
        scores = scores.astype(np.float32)
        if not np.isfinite(scores).all():
            raise Problem(
                "the logits are not finite numbers", "the files hold NaN or infinity, or belong to another config.json"
            )
        yield scores
        new = [int(scores[-1].argmax())]


def read_source(given: object, config: Config) -> np.ndarray | None:
    """The input of an encoder: [M] token ids, or the numbers of a spectrogram [2M bands], an image [M D] or tokens with
    their boxes [M 5], which may be read from a file.

    Raises `Problem` for input that is missing, superfluous or of the wrong kind.
    """
    sizes, shape = config.symbols, config.source_shape and tuple(map(int, config.source_shape))
    if SOURCE not in sizes:
        if given is not None:
            raise Problem("the model has no encoder", "leave it out", parameter="source")
        return None
    kind = config.source_kind
    what = "token ids separated by commas" if shape is None else f"a .npy file of {kind}"
    if not isinstance(given, (str, os.PathLike, Sequence, np.ndarray, type(None))):
        raise Problem("not an input of an encoder", f"give {what}").about("source", given)
    if given is None:
        raise Problem("the model has an encoder, and its input is missing", f"give {what}", parameter="source")
    if shape is None:
        said = given if isinstance(given, str) else ",".join(map(str, cast("Sequence[int]", given)))
        vocabulary, longest = sizes.get("n_read", sizes["vocab_size"]), sizes.get("n_positions")
        ids = read_tokens(said, vocabulary, "source")
        if longest is not None and len(ids) > longest:
            what = f"{len(ids)} tokens, and the model has {longest} positions"
            raise Problem(what, f"give at most {longest}", parameter="source")
        return np.array(ids)
    try:
        if isinstance(given, (str, os.PathLike)):
            return read_array(Path(given), shape)
        if not isinstance(given, np.ndarray):
            raise Problem(f"not {kind}", f"give {what}")
        check_array(given.dtype, given.shape, shape)
        return as_float32(np.asarray(given))
    except Problem as problem:
        if not isinstance(given, (str, os.PathLike)):
            raise problem.about("source", given) from None
        raise Problem(problem.what, problem.mend, parameter="source", value=os.fspath(given)) from None


def read_tokens(text: str, vocabulary: int, parameter: str = "tokens") -> list[int]:
    """Token ids from `464,3139,…`. Raises `Problem` for anything that is not an id of this vocabulary."""
    tokens = []
    for part in text.split(","):
        if not (part.strip().isascii() and part.strip().isdigit() and len(part) < 20):
            what = f"{part.strip()[:40]!r} is not a token id"
            raise Problem(what, "give whole numbers separated by commas, such as 464,3139,286", parameter=parameter)
        tokens.append(int(part))
        if tokens[-1] >= vocabulary:
            what = f"{tokens[-1]} is beyond the vocabulary"
            raise Problem(what, f"ids of this model run from 0 to {vocabulary - 1}", parameter=parameter)
    return tokens
