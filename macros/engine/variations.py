"""Example changes of a model: each derives the keys of another config.json from those of one.

Some need another architecture, and are offered only for types with the common plain block.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from msgspec import Struct

from .architectures.config import Config, Raw, fields_of
from .keys import continued

# Derives the new keys from a model's keys and config; None if the change does not apply.
Change: TypeAlias = Callable[[Raw, Any], Raw | None]

# Sizes that grow with a model's width.
WIDTHS = ("d_model", "d_ff", "d_ff_expert", "d_ff_dense", "d_ff_shared", "n_heads", "n_kv_heads")
PLAIN = ("llama", "mistral")  # model types with nothing but the plain block
WINDOW = 4096


class Variation(Struct, frozen=True):
    """A change: its name in a URL, the text of its button, and a short description."""

    name: str
    title: str
    says: str
    change: Change


def _with(raw: Raw, c: Config, **values: int) -> Raw:
    """The keys with other values for some fields; a list per layer is extended if their number changes."""
    if "n_layers" in values:
        before = c.symbols["n_layers"]
        raw = {name: continued(value, before, values["n_layers"]) for name, value in raw.items()}
    spellings = {k.field: (k.key, *k.also) for k in fields_of(type(c))}
    dropped = {name for field in values for name in spellings[field]}
    named = {c.key_of(field): value for field, value in values.items()}
    return {**{name: value for name, value in raw.items() if name not in dropped}, **named}


def _keyed(c: Config) -> set[str]:
    """The sizes that a key of this config determines."""
    return {k.field for k in fields_of(type(c)) if k.key and k.is_size and k.field in c.symbols}


def _wider(raw: Raw, c: Config) -> Raw:
    here, sizes = _keyed(c), c.symbols
    kept = {"d_head": sizes["d_head"]} if "d_head" in here else {}
    return _with(raw, c, **{name: 2 * sizes[name] for name in WIDTHS if name in here}, **kept)


def _deeper(raw: Raw, c: Config) -> Raw | None:
    return _with(raw, c, n_layers=2 * c.symbols["n_layers"]) if "n_layers" in _keyed(c) else None


def _shared_by(heads: int | None) -> Change:
    """Key/value heads, each shared by this many query heads; None means one for all of them."""

    def change(raw: Raw, c: Config) -> Raw | None:
        if "n_kv_heads" not in _keyed(c) or "n_heads" not in c.symbols:
            return None
        queries = c.symbols["n_heads"]
        return (
            _with(raw, c, n_kv_heads=1 if heads is None else queries // heads)
            if not heads or not queries % heads
            else None
        )

    return change


def _latents(raw: Raw, c: Any) -> Raw | None:
    if raw.get("model_type") not in PLAIN:
        return None
    return {
        "model_type": "deepseek_v3",
        "vocab_size": int(c.vocab_size),
        "hidden_size": int(c.d_model),
        "num_hidden_layers": int(c.n_layers),
        "first_k_dense_replace": int(c.n_layers),
        "num_attention_heads": int(c.n_heads),
        "kv_lora_rank": 4 * int(c.d_head),
        "qk_nope_head_dim": int(c.d_head),
        "qk_rope_head_dim": int(c.d_head) // 2,
        "v_head_dim": int(c.d_head),
        "intermediate_size": int(c.d_ff),
        "n_routed_experts": 1,
        "num_experts_per_tok": 1,
        "n_shared_experts": 1,
        "n_group": 1,
        "topk_group": 1,
        "moe_intermediate_size": int(c.d_ff),
        "tie_word_embeddings": bool(c.tied),
    }


def _experts(raw: Raw, c: Any) -> Raw | None:
    if raw.get("model_type") not in PLAIN:
        return None
    return {
        **_with(raw, c, n_kv_heads=int(c.n_kv_heads)),
        "model_type": "mixtral",
        "num_local_experts": 8,
        "num_experts_per_tok": 2,
    }


def _window(raw: Raw, c: Any) -> Raw | None:
    if raw.get("model_type") not in PLAIN:
        return None
    return {**_with(raw, c, n_kv_heads=int(c.n_kv_heads)), "model_type": "mistral", "sliding_window": WINDOW}


VARIATIONS: dict[str, Variation] = {
    one.name: one
    for one in (
        Variation("wider", "Double the width", "d_model, d_ff and the number of heads × 2", _wider),
        Variation("deeper", "Double the depth", "n_layers × 2", _deeper),
        Variation("mha", "Multi-head attention (MHA)", "n_kv_heads = n_heads", _shared_by(1)),
        Variation("gqa", "Grouped-query attention (GQA)", "n_kv_heads = n_heads / 4", _shared_by(4)),
        Variation("mqa", "Multi-query attention (MQA)", "n_kv_heads = 1", _shared_by(None)),
        Variation(
            "mla",
            "Multi-head latent attention (MLA)",
            "one latent of 4 · d_head for all heads, as in DeepSeek-V2 and V3",
            _latents,
        ),
        Variation(
            "experts",
            "Eight experts, two active",
            "eight feed-forward networks, of which each token uses two, as in Mixtral",
            _experts,
        ),
        Variation("window", "Sliding window", "each layer attends to the last 4,096 tokens, as in Mistral 7B", _window),
    )
}
