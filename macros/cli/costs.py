"""Costs as `describe` prints them: data for JSON, lines for the table."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from ..counting.accelerators import Accelerator, accelerators
from ..counting.costs import Costs
from ..counting.formats import CACHE_BYTES, FORMATS
from ..engine.tensors import runs

DEVICES = (1, 2, 4, 8, 16)


class Asked(NamedTuple):
    """At which contexts, with which type of the cache's elements, with which format of the weights."""

    contexts: tuple[int, ...] = (4096, 131072)
    dtype: str = "bfloat16"
    weights: str = "bfloat16"

    @property
    def item_bytes(self) -> int:
        return CACHE_BYTES[self.dtype]


DEFAULT = Asked()


def data(costs: Costs, asked: Asked) -> dict:
    """Every cost of one text, integers but for rates and seconds; keys in `_at` have a figure for each context."""
    item, form = asked.item_bytes, asked.weights

    def by_context(figure) -> dict:
        return {str(n): figure(n) for n in asked.contexts}

    every_cost: dict = {
        "dtype": asked.dtype,
        "weights_format": form,
        "flops": {
            "parts_at": by_context(
                lambda n: [
                    {
                        "part": one.name,
                        "kind": str(one.kind) if one.layers else None,
                        "layers": one.layers,
                        "decode": one.total,
                        "prefill": whole.total,
                        "prefill_causal": whole.causal,
                    }
                    for one, whole in zip(costs.flops_by_part(1, n), costs.flops_by_part(n, n))
                ]
            ),
            "prefill_causal_at": by_context(lambda n: costs.causal_flops(n, n)),
            "training_per_token_at": by_context(lambda n: float(costs.training_flops_per_token(n))),
            "training_per_token_causal_at": by_context(lambda n: float(costs.training_flops_per_token(n, causal=True))),
            "six_per_active_parameter": 6 * costs.counts.active,
        },
        "cache": [
            {
                "name": str(k.holds),
                "layers": runs(k.layers),
                "reach": str(k.mask) if k.mask else None,
                "elements": str(k.elements),
                "item_bytes": k.item_bytes or item,
                "bytes_at": by_context(lambda n, k=k: k.elements.at(costs.counts.values(S=n)) * (k.item_bytes or item)),
            }
            for k in costs.counts.kept
        ],
        "weight_bytes": {name: costs.weight_bytes(name) for name in FORMATS},
        "inference_bytes_at": by_context(lambda n: costs.inference_bytes(1, n, 1, form, item)),
        "training_bytes_at": by_context(
            lambda n: {
                **costs.training_bytes(n),
                "activations_without_pairs": costs.activation_bytes(n, pairs=False),
                "activations_recomputed": costs.activation_bytes(n, recompute=True),
            }
        ),
        "split_bytes": {
            str(d): {
                "weights": costs.split_weight_bytes(d, form),
                "cache_at": by_context(lambda n, d=d: costs.split_cache_bytes(n, d, 1, item)),
            }
            for d in DEVICES
        },
        "decode_moves_at": by_context(lambda n: _moved(costs, 1, n, asked)),
        "prefill_moves_at": by_context(lambda n: _moved(costs, n, n, asked)),
        "bounds_at": by_context(lambda n: {slug: _bounds(costs, a, n, asked) for slug, a in accelerators().items()}),
    }
    if costs.has_latents:
        every_cost["expanded_cache_bytes_at"] = by_context(lambda n: costs.expanded_cache_bytes(n, item))
        expanded = by_context(lambda n: costs.expanded_flops(n, n, causal=True))
        every_cost["flops"]["prefill_expanded_causal_at"] = expanded
    return every_cost


def _moved(costs: Costs, new: int, context: int, asked: Asked) -> dict:
    return {
        "weights_read": costs.weight_bytes_read(new, 1, asked.weights),
        "cache_read": costs.cache_bytes_read(new, context, 1, asked.item_bytes),
        "cache_written": costs.cache_bytes_written(new, context, 1, asked.item_bytes),
        "flops_per_byte": _float(costs.intensity(new, context, 1, asked.weights, asked.item_bytes)),
    }


def _bounds(costs: Costs, a: Accelerator, context: int, asked: Asked) -> dict:
    devices = costs.devices_needed(a, context, 1, asked.weights, asked.item_bytes)
    read, write = (costs.bound(a, new, context, 1, asked.weights, asked.item_bytes, devices) for new in (context, 1))
    return {
        "devices": devices,
        "prefill_seconds": _float(read.seconds),
        "prefill_limited_by": read.limited_by,
        "decode_seconds": _float(write.seconds),
        "decode_limited_by": write.limited_by,
        "tokens_per_second": _float(1 / write.seconds),
        "compute_limits_from_batch": costs.critical_batch(a, context, asked.weights, asked.item_bytes),
    }


def _float(x: Fraction) -> float:
    """To six significant digits: the figures that it comes from have fewer."""
    return float(f"{float(x):.6g}")


def blocks(costs: Costs, asked: Asked) -> list[list[tuple[str, int, str]]]:
    """Rows of (what, figure, note) for reading, a block for each subject, at each context asked for."""
    item, form = asked.item_bytes, asked.weights
    subjects = [
        [
            (
                f"weights in {name}, bytes",
                costs.weight_bytes(name),
                f"{float(FORMATS[name].bits_per_weight):g} bits a weight",
            )
            for name in FORMATS
        ]
    ]
    for n in asked.contexts:
        rows = [
            (
                f"FLOPs of a prompt of {n:,}, causal",
                costs.causal_flops(n, n),
                "only the scores that the mask lets through",
            )
        ]
        if costs.has_latents:
            rows.append(
                (
                    "FLOPs of the same, heads written out",
                    costs.expanded_flops(n, n, causal=True),
                    "keys and values of latent attention for each head",
                )
            )
        rows += [
            (
                f"FLOPs of training on a token, texts of {n:,}",
                int(costs.training_flops_per_token(n, causal=True)),
                f"causal; 6 for each active parameter is {6 * costs.counts.active:,}",
            ),
            *(
                (f"{k.holds} of {_layers(k.layers)} at {n:,}, bytes", size, str(k.elements))
                for k, size in costs.cache_by_entry(n, item)
            ),
        ]
        if costs.has_latents:
            rows.append((f"KV cache at {n:,}, heads written out, bytes", costs.expanded_cache_bytes(n, item), ""))
        terms = costs.inference_bytes(1, n, 1, form, item)
        rows += [
            (
                f"memory to continue a text of {n:,}, bytes",
                sum(terms.values()),
                " + ".join(f"{name} {size:,}" for name, size in terms.items()),
            ),
            (
                f"memory to train on a text of {n:,}, bytes",
                sum(costs.training_bytes(n).values()),
                f"of which activations {costs.activation_bytes(n):,}",
            ),
            (
                "the same, recomputed by layer, bytes",
                sum(costs.training_bytes(n, recompute=True).values()),
                f"of which activations {costs.activation_bytes(n, recompute=True):,}",
            ),
            (
                f"moved for a token at {n:,}, bytes",
                costs.bytes_moved(1, n, 1, form, item),
                f"{_float(costs.intensity(1, n, 1, form, item)):g} FLOPs per byte",
            ),
            *(
                (
                    f"on each of {d} devices at {n:,}, bytes",
                    costs.split_weight_bytes(d, form) + costs.split_cache_bytes(n, d, 1, item),
                    "weights and cache, tensor parallel",
                )
                for d in DEVICES[1:]
            ),
        ]
        subjects.append(rows)
        bounds = []
        for a in accelerators().values():
            b = _bounds(costs, a, n, asked)
            bounds.append(
                (
                    f"tokens per second at best, {a.name}, at {n:,}",
                    int(b["tokens_per_second"]),
                    f"{b['devices']} device{'s' if b['devices'] > 1 else ''}, {b['decode_limited_by']}; "
                    f"prompt {b['prefill_seconds']:.3g} s or more, {b['prefill_limited_by']}",
                )
            )
        subjects.append(bounds)
    return subjects


def _layers(layers: tuple[int, ...]) -> str:
    return f"{len(layers)} layer{'s' if len(layers) > 1 else ''}"
