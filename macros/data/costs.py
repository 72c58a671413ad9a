"""Costs as `describe` prints them: data for JSON, lines for the table."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

from ..counting.accelerators import Accelerator, common
from ..counting.conditions import Conditions
from ..counting.costs import Costs, Ratio
from ..counting.figures import BYTES, FIGURES
from ..counting.formats import FORMATS, PUBLISHED, ItemBytes, width_of
from ..counting.gguf_types import FORMATS as GGUF
from ..counting.links import limits, transfers
from ..counting.quantizers import QUANTIZERS
from ..counting.splits import Split
from ..counting.spreads import Step
from ..engine.errors import Problem
from ..engine.tensors import runs
from .components import Inputs

DEVICES = (1, 2, 4, 8, 16)
BATCHES = (1, 8, 64, 512)
DRAFTED, CHECKED_ON = (1, 2, 4, 8), "h100"
ENGINE_MEMORY = 80 * 10**9  # by which vLLM chooses its batch size
# The figures by their place in the JSON and their key.
PLACES = {
    place: {f.key.rpartition(".")[2]: f for f in FIGURES.values() if f.key.rpartition(".")[0] == place}
    for place in {f.key.rpartition(".")[0] for f in FIGURES.values()}
}


class Asked(NamedTuple):
    """The contexts, the type of the cache's elements, the format of the weights; the inputs of components, or None."""

    contexts: tuple[int, ...] = (4096, 131072)
    dtype: str = "bfloat16"
    weights: str = "bfloat16"
    components: Inputs | None = None

    @property
    def item_bytes(self) -> ItemBytes:
        return self.at(None).item_bytes

    def at(self, context: int | None) -> Conditions:
        """The conditions of a figure at one of the contexts."""
        return Conditions(context, format=self.weights, dtype=self.dtype)


USUAL = Asked()


def keyed(costs: Costs, place: str, asked: Asked) -> dict:
    """The figures at a place of the JSON, by their keys there; one value per context for those that depend on it."""
    each, once = [(str(n), asked.at(n)) for n in asked.contexts], asked.at(None)
    return {
        key: {n: plain_number(f.compute(costs, given)) for n, given in each}
        if "context" in f.needs
        else plain_number(f.compute(costs, once))
        for key, f in PLACES[place].items()
        if costs.cache.has_latents or not f.of_latents
    }


def plain_number(value: int | Fraction | None) -> int | float | None:
    """A figure for JSON; null for a batch size that is never reached."""
    return float(value) if isinstance(value, Fraction) else value


class Line(NamedTuple):
    """A line of the table of `describe`: label, figure, unit, note."""

    said: str
    value: int
    unit: str
    note: str
    figure: str = ""  # its name among the figures, if it is one


def line(costs: Costs, name: str, asked: Asked, context: int | None = None, note: str | None = None) -> Line:
    """A figure as the table of `describe` shows it; 0 means that the value is never reached."""
    figure, given = FIGURES[name], asked.at(context)
    width = width_of(given.item_bytes)
    said = figure.line.format(context=context)
    value = int(figure.compute(costs, given) or 0)
    return Line(said, value, figure.unit, figure.note.format(width=width) if note is None else note, name)


def data(costs: Costs, asked: Asked) -> dict:
    """Every cost of one sequence, integers except for rates and seconds; keys that end in `_at` have a figure for each
    context."""
    item, form = asked.item_bytes, asked.weights

    def at_each(figure: Callable[[int], object]) -> dict:
        return {str(n): figure(n) for n in asked.contexts}

    on = {n: {slug: _room(costs, a, asked.at(n)) for slug, a in common().items()} for n in asked.contexts}
    fitting = {n: {slug: _batches(costs, room) for slug, room in rooms.items()} for n, rooms in on.items()}
    return {
        "dtype": asked.dtype,
        "weights_format": form,
        "flops": {
            "parts_at": at_each(
                lambda n: [
                    {
                        "part": one.name,
                        "kind": str(one.kind) if one.layers else None,
                        "layers": one.layers,
                        "decode": one.total,
                        "prefill": whole.total,
                        "prefill_causal": whole.causal,
                    }
                    for one, whole in zip(costs.compute.flops_by_part(1, n), costs.compute.flops_by_part(n, n))
                ]
            ),
            **keyed(costs, "costs.flops", asked),
        },
        "cache": [
            {
                "name": str(k.holds),
                "layers": runs(k.layers),
                "reach": str(k.mask) if k.mask else None,
                "elements": str(k.elements),
                "item_bytes": plain_number(k.item_bytes or item),
                "bytes_at": at_each(lambda n, i=i: costs.cache.cache_by_entry(n, item)[i][1]),
            }
            for i, k in enumerate(costs.counts.kept)
        ],
        "weight_bytes": {name: costs.memory.converted_weight_bytes(name) for name in FORMATS},
        "published_weights": published(costs),
        "quantizer_bytes": {name: quantizer_bytes(costs, name) for name in QUANTIZERS},
        "gguf_bytes": gguf_bytes(costs),
        "inference_bytes_at": at_each(lambda n: costs.memory.inference_bytes(1, asked.at(n))),
        "training_bytes_at": at_each(
            lambda n: {
                **costs.training.training_bytes(n),
                "activations_without_pairs": costs.training.activation_bytes(n, pairs=False),
                "activations_recomputed": costs.training.activation_bytes(n, recompute=True),
            }
        ),
        "split_bytes": {
            str(d): {
                "split": splits[0].degrees,
                "weights": costs.devices.split_weight_bytes(d, form),
                "cache_at": at_each(lambda n, d=d: costs.devices.split_cache_bytes(n, d, 1, item)),
                **_sent(costs, splits[0], asked),
            }
            for d in DEVICES
            if (splits := costs.devices.splits(d))
        },
        "engine_bytes": engine_bytes(costs, asked),
        "decode_moves_at": at_each(lambda n: _moved(costs, 1, n, asked)),
        "prefill_moves_at": at_each(lambda n: _moved(costs, n, n, asked)),
        "bounds_at": at_each(lambda n: {slug: _bounds(costs, room) for slug, room in on[n].items()}),
        "throughput_at": at_each(
            lambda n: {slug: _throughput(costs, room, fitting[n][slug]) for slug, room in on[n].items()}
        ),
        "verify_ratio_at": at_each(lambda n: _verify(costs, fitting[n][CHECKED_ON])),
        **keyed(costs, "costs", asked),
    }


def quantizer_bytes(costs: Costs, name: str) -> int | None:
    """Bytes of all weights as a quantizer writes them; None if they are not known."""
    try:
        return costs.weight_bytes(name)
    except Problem:
        return None


def gguf_bytes(costs: Costs) -> dict[str, int] | None:
    """Bytes of all tensors of the model's GGUF file in each format; None if llama.cpp has no such model."""
    try:
        return {name: costs.weight_bytes(name) for name in GGUF}
    except Problem:
        return None


def _sent(costs: Costs, split: Split, asked: Asked) -> dict[str, int | float]:
    """Bytes that the devices of a split send for one token of one sequence, at any context."""
    step = Step(tuple(transfers(costs, split, 1, asked.at(asked.contexts[0]))), None)
    sums = {"sent": step.sent, "total_sent": step.total}
    return {name: int(n) if n.denominator == 1 else float(n) for name, n in sums.items()}


def engine_bytes(costs: Costs, asked: Asked) -> dict[str, Any]:
    """Each engine's memory in addition to the weights, exact terms only, for one sequence of the first context on a
    machine with `ENGINE_MEMORY`; None if no rule is known for its cache of the model."""
    from ..counting.engines import exact_terms, names  # only the JSON has them

    given = asked.at(asked.contexts[0])

    def terms(engine: str) -> dict[str, int] | None:
        try:
            return {t.key: t.least for t in exact_terms(engine, costs, given, ENGINE_MEMORY)}
        except Problem:
            return None

    return {"context": given.tokens, "memory_bytes": ENGINE_MEMORY, **{name: terms(name) for name in names()}}


def published(costs: Costs) -> dict | None:
    """The weights as their maker published them: their formats, whether the config states them, their bytes, and for
    each tensor's pattern the number of copies in each format; None if the format is not known."""
    formats = costs.formats
    if formats.problem is not None:
        return None
    return {
        "formats": formats.said(PUBLISHED),
        "is_stated": formats.is_stated,
        "bytes": costs.weight_bytes(PUBLISHED),
        "tensors": [
            [w.name, [[form.name, copies] for form, copies in formats.of(w, PUBLISHED)], formats.size(w, PUBLISHED)]
            for w in costs.counts.weights
        ],
    }


def _moved(costs: Costs, new: int, context: int, asked: Asked) -> dict:
    return {
        "weights_read": costs.traffic.weight_bytes_read(new, 1, asked.weights),
        "cache_read": costs.traffic.cache_bytes_read(new, context, 1, asked.item_bytes),
        "cache_written": costs.traffic.cache_bytes_written(new, context, 1, asked.item_bytes),
        "flops_per_byte": _float(costs.traffic.intensity(new, asked.at(context))),
    }


BOUND = (
    *("devices", "split", "prefill_seconds", "prefill_limited_by"),
    *("decode_seconds", "decode_limited_by", "tokens_per_second", "prefill_joules", "decode_joules"),
)


class Room(NamedTuple):
    """The split of the bounds on an accelerator, None without one, and the conditions on its devices."""

    split: Split | None
    given: Conditions


def _room(costs: Costs, a: Accelerator, asked: Conditions) -> Room:
    split = costs.devices.least_split(asked, a.memory_bytes)
    return Room(split, asked.on(a, split.devices if split else asked.devices))


def _batches(costs: Costs, room: Room) -> list[Conditions]:
    """The batch sizes that fit there: a few, and the largest over all splits on this many devices."""
    split, given = room
    if split is None:
        return []
    memory = given.machine.memory_bytes
    sizes = sorted({*BATCHES, costs.batch_that_fits(memory, given)})
    most = costs.devices.texts_of_group(split, memory, given) * split.data
    return [given.of_texts(n) for n in sizes if 0 < n <= most]


def _bounds(costs: Costs, room: Room) -> dict:
    split, given = room
    if split is None:
        return {**dict.fromkeys(BOUND), "compute_limits_from_batch": costs.critical_batch(given)}
    read, write = costs.bound(given.tokens, given), costs.bound(1, given)
    seconds, parts = write.longest
    watts = given.machine.watts
    power = None if watts is None else watts * given.devices

    def joules(ratio: Ratio) -> float | None:
        return None if power is None else _ratio(ratio[0] * power, ratio[1])

    return {
        "devices": split.devices,
        "split": split.degrees,
        "prefill_seconds": _ratio(*read.longest),
        "prefill_limited_by": read.limited_by,
        "decode_seconds": _ratio(seconds, parts),
        "decode_limited_by": write.limited_by,
        "tokens_per_second": _ratio(parts, seconds),
        "prefill_joules": joules(read.longest),
        "decode_joules": joules(write.longest),
        "compute_limits_from_batch": costs.critical_batch(given),
    }


def _throughput(costs: Costs, room: Room, batches: list[Conditions]) -> dict[str, float]:
    """Maximum tokens per second by batch size, up to the largest that fits in the split of the bounds; empty if its
    devices communicate over a link of unknown speed.
    """
    found: dict[str, float] = {}
    if room.split is None:
        return found
    for at in batches:
        least = limits(costs, room.split, 1, at)
        if least.sending is not None:
            seconds, parts = least.longest
            found[str(at.batch)] = _ratio(at.batch * parts, seconds)
    return found


def _verify(costs: Costs, batches: list[Conditions]) -> dict[str, dict[str, float]]:
    """By batch size, the minimum time of a step that verifies this many draft tokens, relative to a decode step."""
    from ..counting.speculative import lengths  # here: no table asks for it

    def times(verify: Ratio, plain: Ratio) -> float:
        return _ratio(verify[0] * plain[1], verify[1] * plain[0])

    return {
        str(at.batch): {
            str(s.drafted): times(s.verify.longest, s.plain.longest)
            for s in lengths(costs, None, at, DRAFTED[-1], DRAFTED)
        }
        for at in batches
    }


def _float(x: Fraction) -> float:
    return _ratio(x.numerator, x.denominator)


def _ratio(number: int, parts: int) -> float:
    """To six significant digits, more than the underlying figures have."""
    return float(f"{number / parts:.6g}")


def blocks(costs: Costs, asked: Asked) -> list[list[Line]]:
    """Rows of (label, figure, note) for readers, one block per subject, at each requested context."""
    formats = [
        Line(
            f"weights in {name}, bytes",
            costs.memory.converted_weight_bytes(name),
            BYTES,
            f"{float(FORMATS[name].bits_per_weight):g} bits a weight",
        )
        for name in FORMATS
    ]
    return [
        _published(costs) + formats,
        *(block for n in asked.contexts for block in (_at(costs, n, asked), _times(costs, n, asked))),
    ]


def _published(costs: Costs) -> list[Line]:
    """The weights of the files at hand; or as published, if their format differs from those of the list."""
    said = "" if costs.formats.problem else costs.formats.said(PUBLISHED)
    if (file := costs.formats.file) is not None and file.decides:
        return [Line("weights in the files, bytes", costs.weight_bytes(PUBLISHED), BYTES, f"{file.source}: {said}")]
    return [Line("weights as published, bytes", costs.weight_bytes(PUBLISHED), BYTES, said)] if " " in said else []


def _at(costs: Costs, n: int, asked: Asked) -> list[Line]:
    """Compute, cache, memory and traffic, at a context."""
    item, form = asked.item_bytes, asked.weights

    def figure(name: str, note: str | None = None) -> Line:
        return line(costs, name, asked, n, note)

    def of_latents(name: str) -> list[Line]:
        return [figure(name)] if costs.cache.has_latents else []

    terms = costs.memory.inference_bytes(1, asked.at(n))
    return [
        figure("causal_flops"),
        *of_latents("expanded_causal_flops"),
        figure("causal_training_flops", f"causal; 6 for each active parameter is {6 * costs.counts.active:,}"),
        *(
            Line(f"{k.holds} of {_layers(k.layers)} at {n:,}, bytes", size, BYTES, str(k.elements), "cache_bytes")
            for k, size in costs.cache.cache_by_entry(n, item)
        ),
        *of_latents("expanded_cache_bytes"),
        figure("inference_bytes", " + ".join(f"{name} {size:,}" for name, size in terms.items())),
        figure("training_bytes", f"of which activations {costs.training.activation_bytes(n):,}"),
        figure(
            "recomputed_training_bytes", f"of which activations {costs.training.activation_bytes(n, recompute=True):,}"
        ),
        figure("bytes_moved", f"{_float(costs.traffic.intensity(1, asked.at(n))):g} FLOPs per byte"),
        *(
            Line(
                f"on each of {d} devices at {n:,}, bytes",
                (costs.devices.split_weight_bytes(d, form) or 0)
                + (costs.devices.split_cache_bytes(n, d, 1, item) or 0),
                BYTES,
                f"weights and cache, {splits[0].said}",
            )
            for d in DEVICES[1:]
            if (splits := costs.devices.splits(d))
        ),
    ]


def _times(costs: Costs, n: int, asked: Asked) -> list[Line]:
    """The minimum times at a context, on the most common accelerators."""
    lines = []
    for a in common().values():
        b = _bounds(costs, _room(costs, a, asked.at(n)))
        if b["devices"] is None:
            continue
        devices = f"{b['devices']} devices ({Split(**b['split']).letters})" if b["devices"] > 1 else "1 device"
        lines.append(
            Line(
                f"tokens per second at best, {a.name}, at {n:,}",
                int(b["tokens_per_second"]),
                FIGURES["tokens_per_second"].unit,
                f"{devices}, {b['decode_limited_by']}; "
                f"prompt {b['prefill_seconds']:.3g} s or more, {b['prefill_limited_by']}",
            )
        )
    return lines


def _layers(layers: tuple[int, ...]) -> str:
    return f"{len(layers)} layer{'s' if len(layers) > 1 else ''}"
