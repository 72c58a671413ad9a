"""Golden checkpoints of types that only mlx-lm has: `python -m tests.reference.mlx_models [TYPE ...]`, from the
repository.

Needs `mlx[cpu]` and `mlx-lm`, in an environment of their own; no accelerator. mlx-lm's class of a type's small config
gets random weights; names, shapes and logits are compared, and `tests/golden` gets the checkpoint.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np

from macros.engine.forward import logits
from macros.engine.loaded import Arrays

from . import TESTS, close
from .configs import PROMPT, small_config
from .own import SEED, listed, own_model

# The module of mlx-lm for each.
TYPES = {
    name: name
    for name in """
    spark2_5 qwen talkie lille-130m Klear plamo gear baichuan_m1 openelm bailing_moe_linear hunyuan rwkv7 phi3small
""".split()
} | {"phi-msft": "phixtral"}
OF_VLM = ("xing4_0", "longcat_flash_sparse")  # which mlx-vlm has


def made(model_type: str, raw: dict[str, Any]) -> nn.Module:
    """The class of a type's language model, of a config."""
    if model_type in OF_VLM:
        settings = importlib.import_module(f"mlx_vlm.models.{model_type}.config").ModelConfig.from_dict(raw)
        model = importlib.import_module(f"mlx_vlm.models.{model_type}.language").LanguageModel(settings)
        for layer in model.layers if model_type == "longcat_flash_sparse" else ():
            for attention in layer.self_attn:  # as in transformers' LongCat-Flash: mlx's own default is 1e-5
                attention.q_a_layernorm.eps = attention.kv_a_layernorm.eps = 1e-6
        return model
    module = importlib.import_module(f"mlx_lm.models.{TYPES[model_type]}")
    if model_type == "phi-msft":  # mlx-lm's keys are not those of the files
        published = {"vocab_size": "num_vocab", "n_embd": "model_dim", "n_layer": "num_layers", "n_head": "num_heads"}
        raw = {published.get(name, name): value for name, value in raw.items()}
    settings = module.ModelArgs.from_dict(raw)
    if model_type == "phi3small":  # mlx-lm takes blocks of 32 or 64 alone: set afterwards
        settings.blocksparse_block_size = 32
    model = module.Model(settings)
    if model_type == "phi3small":
        model._dummy_tokenizer_ids = mx.array([], dtype=mx.int32)  # those of the published tokenizer
        for layer in model.layers:
            layer.self_attn.blocksparse_block_size = raw["blocksparse_block_size"]
            # Its mask is true and false, where the sum wants 0 and minus infinity.
            layer.self_attn._block_sparse_attention = with_added_mask(layer.self_attn._block_sparse_attention)
    if model_type == "bailing_moe_linear":
        # mlx-lm gives each layer the decay of the one before; see lightning.py for why it is its own here.
        last = raw["num_hidden_layers"] - 1
        for i, layer in enumerate(model.layers):
            if hasattr(layer.attention, "_slope"):
                damped = 1 - max(0, i - 1) / last + 1e-5
                layer.attention._slope = layer.attention._slope * (1 - i / last + 1e-5) / damped
    return model


def with_added_mask(attention: Callable[..., mx.array]) -> Callable[..., mx.array]:
    """An attention that adds its mask to its scores, given one of true and false."""

    def call(*args: Any, mask: mx.array, **others: Any) -> mx.array:
        return attention(*args, mask=mx.where(mask, 0.0, -mx.inf), **others)

    return call


def compared(model_type: str) -> float:
    """The largest difference of the logits, as a share of the largest. Raises AssertionError where anything differs."""
    raw = small_config(model_type)
    theirs, ours = made(model_type, raw), own_model(model_type, raw)
    rng, arrays = np.random.default_rng(SEED), {}
    buffers = dict(ours.counts.tensors(ours.counts.buffers))
    for name, shape in sorted({**dict(ours.counts.tensors()), **buffers}.items()):
        random = rng.normal(size=tuple(map(int, shape)))
        near = 0.0 if random.ndim > 1 or name.endswith("bias") else 1.0
        arrays[name] = (near + random / (random.shape[-1] ** 0.5 if random.ndim > 1 else 5)).astype(np.float32)
    published = {name: mx.array(array) for name, array in arrays.items()}
    published = theirs.sanitize(published) if hasattr(theirs, "sanitize") else published
    theirs.load_weights(list(published.items()), strict=True)  # each name and shape, no more and no less
    # Past the last whole block, mlx-lm's mask stands at other rows.
    block = raw.get("blocksparse_block_size", 1)
    ids = rng.integers(0, raw["vocab_size"], (1, PROMPT + -PROMPT % block))
    out = theirs(mx.array(ids))
    reference = np.array(getattr(out, "logits", out))
    mine, _ = logits(ours.architecture, ours.config, Arrays(arrays), ids[0])
    close(mine, reference[0])
    told = {"config_json": json.dumps(raw), "meta_json": json.dumps({"seed": SEED, "mlx_lm": version("mlx-lm")})}
    stored = {f"{'b' if name in buffers else 'w'}/{name}": array for name, array in arrays.items()}
    file = TESTS / f"golden/{model_type}.npz"
    np.savez_compressed(file, **told, input_ids=ids, logits=reference, hidden=np.zeros(0), **stored)
    listed(model_type)
    return float(np.abs(mine - reference[0]).max() / max(1, np.abs(reference).max()))


if __name__ == "__main__":
    for name in sys.argv[1:] or (*TYPES, *OF_VLM):
        print(f"{name}: {compared(name):.1e}")
