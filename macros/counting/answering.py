"""Answers a question about one model with a title and a sentence, the same in a terminal and in the site's search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..engine.architectures.config import Config, fields_of
from .conditions import Conditions
from .costs import of as costs_of
from .figures import FIGURES
from .fitting import BEST, chosen, room
from .formats import PUBLISHED
from .own_machine import Machine
from .parameters import Counts
from .runs import left_out

SHORTEST = 10_000  # numbers from here on are also written in short form
BATCH = "largest_batch"
OF_TIME = ("tokens_per_second", "prefill_seconds", "devices_needed")  # need a machine
OF_FILES = ("Ollama",)  # engines whose files have a format of their own unless a tag names another
USUAL_OF_FILES = "Q4_K_M"
KEPT = ("mxfp4",)  # published formats that these files keep
RUN_BY = {"Ollama": "llama.cpp"}  # the engine whose table of formats applies
USUAL_MACHINE = "h100"  # for a question about time that names no machine
SIZES = {
    "n_layers": "layers",
    "d_model": "dimensions in each token's vector (d_model)",
    "d_ff": "dimensions inside the feed-forward network (d_ff)",
    "n_heads": "attention heads",
    "n_kv_heads": "KV heads",
    "d_head": "dimensions in each head (d_head)",
    "vocab_size": "tokens in the vocabulary",
    "n_experts": "routed experts per MoE layer",
    "n_experts_per_token": "experts chosen for each token in a MoE layer",
}


class Writing(NamedTuple):
    """How numbers are written: bytes `16.1 GB`, counts `8.03B`, FLOPs `15.0 GFLOP`."""

    bytes: Callable[[int], str]
    short: Callable[[int], str]
    flops: Callable[[int], str]


class Answer(NamedTuple):
    """A title, a sentence, and the first format that fits, if the requested one does not."""

    title: str
    said: str
    format: str | None = None


def answered(
    asked: Any, counts: Counts, config: Config, longest: int | None, machine: Machine | None, writing: Writing
) -> Answer:
    """The answer to a question about a model (`catalogue.question_of_model.Asked`): a size of its config, whether it
    fits on a machine, or a figure. `longest` is its longest context in tokens. Raises `Problem`."""
    name = asked.title
    if asked.changes:
        name += f" with {', '.join([f'{size} = {value:,}' for size, _, value in asked.changes])}"
    if asked.size:
        return _of_size(asked.size, name, counts, config, longest)
    given = Conditions(
        asked.context,
        asked.batch,
        asked.format or PUBLISHED,
        asked.cache or "bfloat16",
        asked.devices,
        machine.accelerator if machine else None,
    )
    answering = _Answering(name, counts, given, machine, writing, asked)
    answer = (
        answering.of_fit() if asked.what in (None, BATCH) and machine else answering.of_figure(asked.what or "total")
    )
    is_beyond = longest and given.tokens > longest and answering.at in f"{answer.title} {answer.said}"
    if not is_beyond:
        return answer
    return Answer(answer.title, f"{answer.said} The model was made for {longest:,} tokens.", answer.format)


def agreed(answers: Sequence[Answer], titles: Sequence[str]) -> Answer | None:
    """The answer that all models of a family share, given their titles; None if the answers differ, or if there is only
    one model."""
    said = [one.title.removeprefix(title) for one, title in zip(answers, titles)]
    if len(said) < 2 or any(one != said[0] for one in said) or any(one.said != answers[0].said for one in answers):
        return None
    family = titles[0]
    while family and not (titles[-1].startswith(family) and family[-1] in " -"):
        family = family[:-1]
    return Answer(f"{family[:-1]} in each of its {len(said)} sizes{said[0]}", answers[0].said) if family else None


def _of_size(size: str, name: str, counts: Counts, config: Config, longest: int | None) -> Answer:
    """A hyperparameter."""
    if size == "context":
        if not longest:
            return Answer(f"{name}: no context length", "Its config states none.")
        return Answer(f"{name}: {longest:,} tokens of context", "The longest context that its config allows.")
    sizes = counts.values()
    if size not in sizes:
        return Answer(f"{name}: {size}", "It has none, or it differs from layer to layer.")
    keys = [field.key for field in fields_of(type(config)) if field.field == size and field.key]
    said = f"{keys[0]} in its config.json." if keys else "It follows from its other sizes."
    return Answer(f"{name}: {int(sizes[size]):,} {SIZES[size]}", said)


class _Answering:
    """The figures of a model under the conditions of a question."""

    def __init__(
        self, name: str, counts: Counts, given: Conditions, machine: Machine | None, writing: Writing, asked: Any
    ) -> None:
        self.name, self.counts, self.costs, self.given = name, counts, costs_of(counts), given
        engine: str = asked.engine or ""
        self.engine = RUN_BY.get(engine, engine)
        self.is_of_files = asked.engine in OF_FILES and not asked.format
        self.machine, self.writing = machine, writing
        self.is_of_batch = asked.what == BATCH
        self.phrase = counts.formats.phrase(given.format)
        sequences = f"{given.batch:,} × " if given.batch > 1 else ""
        self.at = f"{sequences}{given.tokens:,} tokens of context"
        several = f"{given.devices:,} × " if given.devices > 1 else ""
        self.place = f"{several}{machine.name}" if machine else ""

    def exact(self, n: int) -> str:
        return f"{n:,}" if n < SHORTEST else f"{n:,} ({self.writing.short(n)})"

    def bytes(self, name: str) -> str:
        return self.writing.bytes(int(FIGURES[name].of(self.counts, self.given) or 0))

    def of_fit(self) -> Answer:
        """Whether the model fits, how much memory is left or missing, and which format fits instead."""
        given, machine, written = self.given, self.machine, self.writing.bytes
        assert machine is not None
        size = machine.memory_bytes
        split = self.costs.split(given, size)
        if split is None:
            return Answer(f"{self.name} on {self.place}: no valid split", "Try another number of devices.")
        needed = sum(self.costs.devices.split_bytes(split, given).values())
        does = "fits" if needed <= size else "does not fit"
        title = f"{self.name} {self.phrase}: {self.bytes('weight_bytes')} of weights; {does} on {self.place}"
        said = f"{written(needed)} in total with {self.at}{', on each device' if given.devices > 1 else ''}: "
        strange = left_out(given.format, machine.accelerator, self.engine, self.costs.published)
        if needed <= size:
            longest = self.costs.largest_context(size, given)
            room = "" if longest is None else f" The longest context that fits is {longest:,} tokens."
            if self.is_of_batch:
                room = f" At most {self.costs.batch_that_fits(size, given):,} sequences of this length fit."
            said += f"{written(size - needed)} left.{room}"
            if not strange:
                return Answer(title, said)
            format = chosen(self.costs, BEST, given, size, self.engine)
            return Answer(title, f"{said} {strange}{self._fits_in(format)}", format)
        said += f"{written(needed - size)} too much."
        if strange:
            said += f" {strange}"
        least = self.costs.devices.least_split(given, size)
        if least and least.devices > 1:
            said += f" It takes {least.devices:,} of them."
        format = chosen(self.costs, BEST, given, size, self.engine)
        return Answer(title, said + self._fits_in(format), format)

    def _fits_in(self, format: str | None) -> str:
        """Say that a format fits where another does not, and give its longest context."""
        if format is None or self.machine is None:
            return ""
        longest = self.costs.largest_context(self.machine.memory_bytes, self.given.in_format(format))
        return f" {self.counts.formats.phrase(format).removeprefix('in ')} fits on {self.place}, with {room(longest)}."

    def of_figure(self, what: str) -> Answer:
        """A figure, and the conditions that it depends on."""
        counts, name, value = self.counts, self.name, FIGURES[what].of
        total, bytes_in = self.exact(counts.total), f"{self.given.dtype} cache"
        if what == "total":
            active = "All of them are active for every token."
            if counts.active < counts.total:
                active = f"{self.exact(counts.active)} of them are active per token."
            return Answer(f"{name}: {total} parameters", active)
        if what in ("active", "embedding", "non_embedding"):
            n = self.exact(int(value(counts, self.given) or 0))
            return Answer(f"{name}: {n} {FIGURES[what].title}", f"Of {total} in total.")
        if what == "cache_bytes_per_token":
            n, whole = value(counts, self.given) or 0, self.bytes("cache_bytes")
            said = f"At long context, {bytes_in}. It takes {whole} with {self.at}."
            return Answer(f"{name}: {n:,} bytes of KV cache per token", said)
        if what == "cache_bytes":
            n = FIGURES["cache_bytes_per_token"].of(counts, self.given) or 0
            said = f"With a {bytes_in}. At long context, a token adds {n:,} bytes."
            return Answer(f"{name}: {self.bytes(what)} of KV cache with {self.at}", said)
        if what == "weight_bytes":
            said = f"{value(counts, self.given) or 0:,} bytes for {total} parameters."
            return self._of_file(what, Answer(f"{name}: {self.bytes(what)} of weights {self.phrase}", said))
        if what == "decode_flops":
            n = self.writing.flops(int(value(counts, self.given) or 0))
            return Answer(f"{name}: {n} per generated token", f"With {self.at}; a multiply-add counts as 2.")
        return self._of_machine(what)

    def _of_file(self, what: str, answer: Answer) -> Answer:
        """The figure in the usual format of an engine’s files, and in the published one unless the files keep that."""
        kept = [name for name in self.costs.published if name in KEPT]
        if not self.is_of_files or kept:
            return answer
        value, holds = FIGURES[what].of, "memory" if what == "device_bytes" else "weights"
        taken = self.writing.bytes(int(value(self.counts, self.given.in_format(USUAL_OF_FILES)) or 0))
        title = f"{self.name} in {USUAL_OF_FILES}, Ollama’s usual format: {taken} of {holds}"
        given = f", with {self.at}" if what == "device_bytes" else ""
        return Answer(title, f"{self.bytes(what)} {self.phrase}{given}. A tag may name another format.")

    def _of_machine(self, what: str) -> Answer:
        """A figure that depends on a machine, or on the memory that one must have."""
        name, given, machine = self.name, self.given, self.machine
        if what == "device_bytes":
            weights, cache = self.bytes("weight_bytes"), self.bytes("cache_bytes")
            said = f"{weights} of weights, {cache} of KV cache with {self.at}; the rest is for the largest operation."
            return self._of_file(what, Answer(f"{name} {self.phrase}: {self.bytes(what)} of memory", said))
        if machine is None or machine.accelerator is None:
            said = "A memory size alone gives no time: name an accelerator."
            return Answer(f"{name}: {FIGURES[what].title}", said)
        if what == "devices_needed":
            least = self.costs.devices.least_split(given, machine.memory_bytes)
            many = f"{least.devices:,} × {machine.name}" if least else f"no split over {machine.name}"
            return Answer(f"{name} {self.phrase}: {many}", f"For the weights and {self.at}.")
        bound = "a lower" if what == "prefill_seconds" else "an upper"
        said = f"Weights {self.phrase}, {self.at}: {bound} bound from the hardware’s peaks."
        fit = self.of_fit()
        if " fits on " in fit.title:
            return Answer(f"{name}: {self._rate(what, given)} on {self.place}", said)
        if fit.format is None:
            return fit
        return Answer(fit.title, f"{fit.said} There {self._rate(what, given.in_format(fit.format))}.", fit.format)

    def _rate(self, what: str, given: Conditions) -> str:
        rate = FIGURES[what].of(self.counts, given)
        if what == "prefill_seconds":
            return f"at least {int((rate or 0) * 1000):,} ms to the first token"
        return (
            f"{'any number of' if rate is None else f'at most {self.writing.short(int(rate))}'} {FIGURES[what].title}"
        )
