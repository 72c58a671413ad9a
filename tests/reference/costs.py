"""FLOPs by torch's counter, and what transformers' cache holds: `python -m tests.reference.costs [TYPE ...]`.

Prints theirs, and by how much each convention makes them more than ours.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from contextlib import nullcontext

import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import DynamicCache, EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput

from macros.catalogue.presets import Model

from . import LOOKING
from .configs import PROMPT, configs
from .configs import model as our_model
from .conventions import CACHE, FLOPS, differences, kept
from .models import build, run, source, token_ids

CACHES = ("past_key_values", "cache", "cache_params", "state", "mems")  # what models call theirs
OLDER = ("xlm", "flaubert")  # whose `cache` is handed in, and not out, and is read where they are causal alone
WHOLE_TEXT = ("cpmant", "xlm")  # whose code leaves out itself what the cache has


def cache_name(model: torch.nn.Module) -> str | None:
    """What a model calls its cache; None where it has none."""
    is_older = model.config.model_type in OLDER and not getattr(model.config, "causal", False)
    names = [name for name in CACHES if name != "cache" or not is_older]
    inner = model.model if model.config.model_type == "evolla" else model  # whose head hands it on
    return next((name for name in names if name in inspect.signature(inner.forward).parameters), None)


def step(
    model: torch.nn.Module, ids: torch.Tensor, cache: object = None, encoded: object = None, is_counted: bool = True
) -> tuple[int, object, object]:
    """Run new tokens after what a cache holds, logits of the last token where a model can: FLOPs, the cache after the
    step, and what an encoder made of what it read, which a later step is handed. Counting takes most of the time: the
    FLOPs are 0 where they are not counted.

    RecurrentGemma's code hands out no cache.
    """
    name, read = cache_name(model), source(model)
    is_blt = model.config.model_type == "blt"
    if (
        (name == "cache" and model.config.model_type in OLDER) or is_blt
    ) and cache is None:  # XLM's is handed in, and not out; BLT's is not made
        cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
    if is_blt:
        model.model.patcher.patch_lengths_from_entropies = of_one_size
    more = {name: cache} if name else {}
    if name and (read is None or model.config.model_type in LOOKING):  # Switch's encoder refuses to be asked
        more["use_cache"] = True
    counting = FlopCounterMode(display=False) if is_counted else nullcontext()
    with counting as counter, torch.no_grad():
        if read is None:
            out = model(ids, logits_to_keep=1, **more)
        elif encoded is None and cache is None:
            kept = hasattr(model.config, "cross_attention_layers") or model.config.model_type in LOOKING
            one = {"logits_to_keep": 1} if kept else {}
            out = run(model, ids, read, **more, **one)
        elif encoded is None and not hasattr(model.config, "cross_attention_layers"):
            out = run(model, ids, read, **more)
        elif encoded is None:  # an image's vectors, which are read once
            out = model(ids, logits_to_keep=1, **more)
        else:
            again = BaseModelOutput(last_hidden_state=encoded)
            again.router_logits = again.attention_mask = None  # Switch and UDOP ask for them
            out = model(encoder_outputs=again, decoder_input_ids=ids, **more)
    cache = getattr(out, name, cache if model.config.model_type in OLDER else None) if name else None
    flops = counter.get_total_flops() if counter is not None else 0
    return flops, cache, getattr(out, "encoder_last_hidden_state", None)


def of_one_size(entropies: torch.Tensor, sequence_length: int, patch_size: int, threshold: float) -> torch.Tensor:
    """The lengths of BLT's patches, the last of them unfinished, if they end where costs are counted."""
    ends = [0, *(end for end in range(1, sequence_length) if (end + 1) % patch_size == 0)]
    starts = [0, *(end + 1 for end in ends), sequence_length]
    return torch.tensor([[end - start for start, end in zip(starts, starts[1:])]])


def elements(cache: object) -> int:
    """How many numbers a cache holds: of each layer the keys, values, latents, an indexer's keys, states.

    A tensor that goes by two names, keys that are the values, counts once.
    """
    return sum(t.numel() for t in {id(t): t for t in arrays(cache)}.values() if t.is_floating_point())


def arrays(part: object) -> Iterator[torch.Tensor]:
    """Every tensor below an object, in the order of its attributes."""
    if isinstance(part, torch.Tensor):
        yield part
    elif isinstance(part, (list, tuple)):
        for one in part:
            yield from arrays(one)
    elif isinstance(part, dict):
        yield from arrays(list(part.values()))
    elif hasattr(part, "__dict__"):
        yield from arrays(vars(part))


def compare(ours: Model, model: torch.nn.Module) -> dict[str, int | dict[str, int]]:
    """What torch counts for a prompt and for the step after it, and the numbers then held, each with the differences.

    Raises AssertionError where the conventions do not explain a difference to the last one.
    """
    ids, after = token_ids(model, PROMPT + 1), PROMPT + 1
    prompt, cache, encoded = step(model, ids[:, :PROMPT])
    compared = {"prompt": prompt, "prompt_more": differences(FLOPS, ours, PROMPT, PROMPT)}
    counts = {"prompt": ours.counts.flops_at(PROMPT, PROMPT)}
    if cache is not None:
        new = ids if ours.model_type in WHOLE_TEXT else ids[:, PROMPT:]
        one_more, cache, _ = step(model, new, cache, encoded)
        compared |= {"step": one_more, "step_more": differences(FLOPS, ours, 1, after)}
        compared |= {"cache": elements(cache), "cache_more": differences(CACHE, ours, 1, after)}
        counts |= {"step": ours.counts.flops_at(1, after), "cache": kept(ours, after)}
    for name, here in counts.items():
        more = compared[f"{name}_more"]
        assert compared[name] == here + sum(more.values()), f"{name}: {compared[name]} there, {here} here, {more}"
    return compared


def main(model_types: list[str]) -> None:
    for model_type in model_types or configs():
        print(f"{model_type}: {compare(our_model(model_type), build(model_type))}")


if __name__ == "__main__":
    main(sys.argv[1:])
