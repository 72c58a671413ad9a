"""Whether a model fits in memory while an inference engine serves it: term by term, distinguishing exact figures,
estimates and ranges."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..catalogue.models import Model
from ..counting import deploying, engines
from ..counting.conditions import Conditions
from ..counting.costs import of as costs_of
from ..counting.runs import left_out
from ..counting.served_instead import served_instead
from ..counting.serving import How, Pool, Serving, Term
from ..engine.errors import Problem, nearest, shorten
from ..views.kit.rounding import decimal_bytes, decimal_range
from .tables import Row, Table, Tabular, table_of


@dataclass(frozen=True)
class EngineFit(Tabular):
    """The answer: true if even the upper bound of the engine's memory fits.

    `terms` are the parts, each with `least` and `most`, `how` they are known (exact, estimate, range), the rule and its
    source; `unused` is internal fragmentation: what blocks of the cache hold beyond its rows. `limit` is the memory
    that the engine allows itself. `longest_context` and `largest_batch` are the largest whose upper bound fits; 0 if
    none does, None if there is no limit.
    """

    model: Model
    given: Conditions
    device: str
    size: int
    serving: Serving
    longest_context: int | None
    largest_batch: int | None
    vendor: str = ""

    def __bool__(self) -> bool:
        return self.is_enough

    def __repr__(self) -> str:
        return self.sentence

    @property
    def table(self) -> Table:
        """One row per term, in bytes."""
        rows: list[Row] = [
            {"term": t.name, "least_bytes": t.least, "most_bytes": t.most, "known": t.how.value, "rule": t.rule}
            for t in self.terms
        ]
        return table_of(rows, caption=self.sentence)

    def to_dict(self) -> dict[str, Any]:
        """The object that `every-parameter fits --engine … --format json` prints."""
        return as_data(self)

    @property
    def engine(self) -> str:
        """The engine's name."""
        return self.serving.engine

    @property
    def title(self) -> str:
        """The engine's name in a sentence."""
        return engines.TITLES.get(self.engine, self.engine)

    @property
    def terms(self) -> tuple[Term, ...]:
        """The parts of the memory."""
        return self.serving.terms

    @property
    def pool(self) -> Pool | None:
        """The pool that is left for the cache, for an engine that takes its share of the memory at once."""
        return self.serving.pool

    @property
    def least(self) -> int:
        """The lower bound, in bytes."""
        return self.serving.least

    @property
    def most(self) -> int:
        """The upper bound, in bytes."""
        return self.serving.most

    @property
    def limit(self) -> int:
        """The bytes that the engine may take."""
        return self.serving.limit(self.size)

    @property
    def is_enough(self) -> bool:
        """Whether the upper bound fits."""
        return self.most <= self.limit

    @property
    def may_be_enough(self) -> bool:
        """Whether the lower bound fits."""
        return self.least <= self.limit

    @property
    def sentence(self) -> str:
        """The answer as a sentence."""
        does = "fits" if self.is_enough else "may fit" if self.may_be_enough else "does not fit"
        engine = self.title
        weights = self.model.counts.formats.phrase(self.given.format)
        share = "" if self.pool is None else f" of the {decimal_bytes(self.limit)} that the engine reserves"
        return (
            f"{self.model.name} {weights} served by {engine} {does} on {self.device} at "
            f"{self.given.sequences} with the cache in {self.given.dtype}: it takes "
            f"{said(self.least, self.most, is_exact=False)}{share}."
        )

    @property
    def advice(self) -> str:
        """The longest context, the largest batch, and the number of sequences that the engine's pool holds."""
        if self.longest_context is None:
            found = "Every context fits: the cache stops growing before the memory is full."
        elif self.longest_context == 0:
            found = "No context is certain to fit."
        else:
            found = f"The longest context that is certain to fit is {self.longest_context:,} tokens."
        if self.largest_batch:
            found += f" The largest batch size that is certain to fit is {self.largest_batch:,}."
        if self.pool is not None:
            (least, most), (few, many) = self.pool.room, self.pool.texts
            found += f" The cache pool gets {said(least, most, is_exact=False)}: "
            if many:
                found += f"room for {_times(few)} to {_times(many)} sequences of {self.given.tokens:,} tokens."
            elif self.pool.is_used:
                found += f"no room for a sequence of {self.given.tokens:,} tokens."
            else:
                found += "the model keeps no cache, and does not use it."
        costs, named = costs_of(self.model.counts), "" if self.engine == "transformers" else self.title
        strange = left_out(self.given.format, self.given.accelerator, named, costs.published)
        found += f" {strange}" if strange else ""
        if self.is_enough and not strange:
            return found
        of_device = self.size, self.device, self.vendor
        return found + served_instead(self.engine, costs, self.model.counts.formats, self.given, *of_device)


def _times(n: Fraction) -> str:
    return f"{int(n * 100) / 100:,.2f}"


def said(least: int, most: int, *, is_exact: bool) -> str:
    """Bytes in a readable unit: `16.1 GB`, `about 125 MB`, `0.12 to 1.74 GB`."""
    return decimal_range(least, most, "" if is_exact else "about ")


def engine_fit(model: Model, given: Conditions, name: str, device: str, size: int, vendor: str) -> EngineFit:
    """Whether an engine can serve a model. Raises `Problem` if no rule is known for its cache of the model."""
    costs = costs_of(model.counts)
    serving = engines.serve(name, costs, given, size, device, vendor)
    longest = engines.longest_context(name, costs, given, size, device, vendor)
    batch = engines.largest_batch(name, costs, given, size, device, vendor)
    return EngineFit(model, given, device, size, serving, longest, batch, vendor)


def engine_named(name: object) -> str:
    """The engine with this name. Raises `Problem`."""
    return engines.engine(name)


def engine_known(name: object) -> str:
    """The engine with this name, including those with their own options. Raises `Problem`."""
    try:
        return deploying.named(name)
    except Problem:
        if any(one for one in engines.names() if str(name).lower() == one):
            return engines.engine(name)
        both = [*engines.names(), *deploying.ENGINES]
        raise Problem(
            f"engine = {shorten(name)}: no such engine",
            nearest(str(name), both, f"one of {', '.join(dict.fromkeys(both))}"),
        ) from None


def as_row(answer: EngineFit) -> Row:
    """One answer as a row of a table of several."""
    return {
        "model": answer.model.slug,
        "engine": answer.engine,
        "fits": answer.is_enough,
        "may_fit": answer.may_be_enough,
        "weights": answer.model.counts.formats.said(answer.given.format),
        "least_bytes": answer.least,
        "most_bytes": answer.most,
        "limit_bytes": answer.limit,
        "longest_context": answer.longest_context,
        "largest_batch": answer.largest_batch,
        "sentence": answer.sentence,
    }


def _bytes(term: Term) -> dict[str, int]:
    """The bytes of a term, under a key that says how they are known."""
    if term.how is How.RANGE:
        return {"least_bytes": term.least, "most_bytes": term.most}
    return {"bytes" if term.how is How.EXACT else "estimated_bytes": term.least}


def as_data(answer: EngineFit) -> dict[str, Any]:
    """The answer for JSON."""
    pool = answer.pool
    return {
        "model": answer.model.slug,
        "name": answer.model.name,
        "engine": answer.engine,
        "settings": answer.serving.settings,
        "conditions": {
            "context": answer.given.tokens,
            "batch": answer.given.batch,
            "weights": answer.given.format,
            "cache": answer.given.dtype,
            "on": answer.device,
            "memory_bytes": answer.size,
        },
        "weights": answer.model.counts.formats.said(answer.given.format),
        "fits": answer.is_enough,
        "may_fit": answer.may_be_enough,
        "terms": [
            {
                "key": t.key,
                "name": t.name,
                "known": t.how.value,
                **_bytes(t),
                **({"fragmentation_bytes": t.unused} if t.unused else {}),
                "rule": t.rule,
                "source": t.source or None,
            }
            for t in answer.terms
        ],
        "least_bytes": answer.least,
        "most_bytes": answer.most,
        "limit_bytes": answer.limit,
        "longest_context": answer.longest_context,
        "largest_batch": answer.largest_batch,
        "model_context": answer.model.longest_context[0],
        "pool": pool
        and {
            "least_bytes": pool.room[0],
            "most_bytes": pool.room[1],
            "least_tokens": pool.tokens[0],
            "most_tokens": pool.tokens[1],
            "least_texts": float(pool.texts[0]),
            "most_texts": float(pool.texts[1]),
        },
        "sentence": answer.sentence,
    }
