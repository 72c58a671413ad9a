"""Assistants of Gemma 4 as transformers' class computes them: `python -m tests.reference.assistants`.

From the repository. transformers 5.24 refuses to list which layers keep keys and values where none does, as in every
assistant: here all of them read the target's. Its class runs for one token at a time, as its drafting loop calls it,
with the rows that the target keeps at that token, and for all tokens at once with a mask of each, which is what is
counted; both have to say the same.

Random keys and values stand for the target's. The program writes `tests/golden/drafts`, as `tests.reference.drafts`.
"""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.models.gemma4.configuration_gemma4 import Gemma4TextConfig
from transformers.models.gemma4_unified.configuration_gemma4_unified import Gemma4UnifiedTextConfig

from macros.catalogue.presets import make
from macros.engine.forward import logits
from macros.engine.loaded import Arrays, Cache
from macros.engine.ops import Full, SlidingWindow
from macros.engine.steps import Holds, Role

from . import DRAFTS, close, digest
from .configs import PROMPT
from .models import fill

SEED, VARIANTS = 20261127, 12
TEXT = dict(
    model_type="gemma4_text",
    vocab_size=60,
    hidden_size=24,
    intermediate_size=40,
    num_hidden_layers=3,
    num_attention_heads=6,
    num_key_value_heads=2,
    head_dim=10,
    global_head_dim=12,
    sliding_window=4,
    layer_types=["sliding_attention", "full_attention", "full_attention"],
    hidden_size_per_layer_input=0,
    vocab_size_per_layer_input=0,
    num_kv_shared_layers=0,
    max_position_embeddings=64,
    rms_norm_eps=1e-4,
)
UNIFIED = {name: value for name, value in TEXT.items() if "per_layer_input" not in name} | {
    "model_type": "gemma4_unified_text",
    "attention_k_eq_v": True,
    "num_global_key_value_heads": 1,
}
ORDERED = {"use_ordered_embeddings": True, "num_centroids": 12, "centroid_intermediate_top_k": 5}
SMALL: dict[str, dict[str, Any]] = {
    "gemma4_assistant": {"model_type": "gemma4_assistant", "backbone_hidden_size": 22, "text_config": TEXT},
    "gemma4_assistant_ordered": {"model_type": "gemma4_assistant", "backbone_hidden_size": 26, "text_config": TEXT}
    | ORDERED,
    "gemma4_unified_assistant": {
        "model_type": "gemma4_unified_assistant",
        "backbone_hidden_size": 22,
        "text_config": UNIFIED,
    },
}
SIZES = {
    "vocab_size": [60, 84],
    "hidden_size": [24, 34],
    "intermediate_size": [40, 44],
    "num_attention_heads": [6, 12],
    "num_key_value_heads": [2, 3],
    "head_dim": [10, 14],
    "global_head_dim": [12, 16],
    "sliding_window": [3, 4, 7],
}
KINDS = {"full_attention": lambda c: Full(), "sliding_attention": lambda c: SlidingWindow(c.sliding_window)}


class Target(nn.Module):
    """The target's embedding, as ours asks for it."""

    def __init__(self, vocabulary: int, width: int):
        super().__init__()
        self.embed_tokens = nn.Embedding(vocabulary, width)


def built(raw: dict[str, Any]) -> nn.Module:
    """The model of transformers' class."""
    for one in (Gemma4TextConfig, Gemma4UnifiedTextConfig):
        one.kv_sharing_modes = property(lambda self: ["reuse"] * self.num_hidden_layers)
    keys = {name: value for name, value in raw.items() if name != "model_type"}
    config = AutoConfig.for_model(raw["model_type"], **keys)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    if model.masked_embedding is not None:
        order = torch.randperm(config.text_config.vocab_size, generator=torch.Generator().manual_seed(SEED))
        model.masked_embedding.token_ordering.copy_(order)
    return fill(model)


def masks(config: Any, tokens: int) -> dict[str, torch.Tensor]:
    """What each of so many tokens sees of the target's rows: [1 1 T S]."""
    seen = torch.ones(tokens, tokens, dtype=torch.bool).tril()
    windows = {"full_attention": seen, "sliding_attention": seen.triu(1 - config.sliding_window)}
    return {kind: torch.where(one, 0.0, -torch.inf)[None, None] for kind, one in windows.items()}


def compared(name: str, raw: dict[str, Any], seed: int) -> tuple[float, dict[str, np.ndarray], list[Any]]:
    """The largest difference of ours; what a golden file holds; the parameters, and a digest of the own tensors."""
    torch.manual_seed(seed)
    model, ours = built(raw), make(name, raw)
    text, c = model.config.text_config, ours.config
    target = Target(text.vocab_size, raw["backbone_hidden_size"]).requires_grad_(False)
    own = {key: tensor.numpy().copy() for key, tensor in model.state_dict().items() if key != "lm_head.weight"}
    others = {key: tensor.numpy().copy() for key, tensor in target.state_dict().items()}
    here = dict(ours.counts.tensors()) | dict(ours.counts.tensors(ours.counts.buffers))
    there = {key: array.shape for key, array in own.items()}
    assert here == there, sorted(here.items() ^ there.items())
    ids, states = torch.randint(0, text.vocab_size, (1, PROMPT)), torch.randn(1, PROMPT, raw["backbone_hidden_size"])
    kinds = {kind: KINDS[kind](text) for kind in sorted(set(text.layer_types))}
    rows = {
        kind: tuple(torch.randn(1, int(c.kv_heads(mask)), PROMPT, int(c.head(mask))) for _ in range(2))
        for kind, mask in kinds.items()
    }
    token = target.embed_tokens(ids) * raw["backbone_hidden_size"] ** 0.5
    read, places = torch.cat([token, states], -1), torch.arange(PROMPT)[None] + 1
    window = {"full_attention": PROMPT, "sliding_attention": text.sliding_window}  # rows that the target has kept
    with torch.no_grad():
        reads = [
            {kind: tuple(row[:, :, max(0, n + 1 - window[kind]) : n + 1] for row in of) for kind, of in rows.items()}
            for n in range(PROMPT)
        ]
        steps = [
            model(inputs_embeds=read[:, n : n + 1], position_ids=places[:, n : n + 1], shared_kv_states=one)
            for n, one in enumerate(reads)
        ]
        model.create_attention_masks = lambda *given: masks(text, PROMPT)
        with FlopCounterMode(display=False) as counter:
            out = model(inputs_embeds=read, position_ids=places, shared_kv_states=rows, output_hidden_states=True)
    reference = out.logits[0].numpy()
    alone = torch.cat([step.logits for step in steps], 1)[0].numpy()
    if model.masked_embedding is not None:  # whose scores of other tokens hang on those of all tokens of a step
        reference = alone
    close(alone, reference)
    root, values = ours.counts.trace.root, ours.counts.values(T=1, S=1)
    heads = sum(node.flops.at(values) for node in root.children if node.role is Role.UNEMBED)
    flops = ours.counts.flops_at(PROMPT, PROMPT) + (PROMPT - 1) * heads
    assert counter.get_total_flops() == flops, (counter.get_total_flops(), flops)
    told = {
        f"{holds}/{mask}": row[0].transpose(0, 1).numpy().copy()
        for kind, mask in kinds.items()
        for holds, row in zip((Holds.KEYS, Holds.VALUES), rows[kind])
    }
    given = {(holds, mask): told[f"{holds}/{mask}"] for mask in kinds.values() for holds in (Holds.KEYS, Holds.VALUES)}
    start = Cache(states=states[0].numpy(), rows=given)
    mine, _ = logits(ours.architecture, c, Arrays(own | others), ids[0].numpy(), start)
    close(mine, reference)
    worst = float(np.abs(mine - reference).max() / max(1, np.abs(reference).max()))
    arrays = {f"w/{key}": array for key, array in own.items()} | {f"t/{key}": array for key, array in others.items()}
    said = {"input_ids": ids.numpy(), "states": states.numpy(), "logits": reference[None]}
    trained = sum(p.numel() for p in model.parameters())
    return worst, {**said, **{f"r/{key}": row for key, row in told.items()}, **arrays}, [trained, digest(there)]


def main() -> None:
    chance, file = random.Random(SEED), DRAFTS / "tensors.json"
    every = json.loads(file.read_bytes())
    for name, raw in SMALL.items():
        worst, arrays, row = compared(name, raw, SEED)
        np.savez_compressed(DRAFTS / f"{name}.npz", config_json=json.dumps(raw), **arrays)
        every[name] = [[{}, *row]]
        for number in range(VARIANTS):
            sizes = {key: chance.choice(values) for key, values in SIZES.items()}
            changes = {"text_config": raw["text_config"] | sizes, "backbone_hidden_size": chance.choice([22, 26, 31])}
            difference, _, row = compared(name, raw | changes, SEED + number)
            worst = max(worst, difference)
            every[name].append([changes, *row])
        print(f"{name}: {worst:.1e}")
    lines = (f"{json.dumps(name)}: [\n" + ",\n".join(map(json.dumps, of)) + "\n]" for name, of in every.items())
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


if __name__ == "__main__":
    main()
