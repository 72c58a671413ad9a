"""Qwen 1.5 to 2.5: Llama's block with biases on queries, keys and values. Seed-OSS is the same with a wider head.

So are the text models of Qwen2-VL, Qwen2.5-VL and Qwen2.5-Omni: in a text without images, all three parts of a position
are equal.

MiMo 7B is Qwen2 with a layer for multi-token prediction, which is not part of the forward pass here.

Sources: arXiv 2309.16609, 2407.10671, 2412.15115 (Qwen); 2409.12191, 2502.13923, 2503.20215
(VL, Omni); 2505.07608 (MiMo); ByteDance-Seed/Seed-OSS-36B-Base;
tensor names as the published files.
"""

from __future__ import annotations

from typing import Any

from ..errors import Problem
from ..facts import QUERY_VALUE, Gguf, Peft, Task
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import Rope, apply_rope, attend, causal_mask, embed, heads, linear, positions, rms_norm, rope_table, unembed
from ..steps import Holds, Role, step
from . import architecture
from .config import MEDIA_TOKENS, Positive, Size, config, fixed, key, masks_of
from .llama import Llama, feed_forward
from .predicted import Module, Place, angles
from .rope_config import read_rope
from .tasks import OLD_NAME


@config
class OutputBias(Llama):
    """Llama's, with separate flags for the bias of attention's output projection and of its other maps."""

    output_bias: bool = fixed(False)


@config
class Qwen2(OutputBias):
    """Hyperparameters of Qwen 1.5 to 2.5, in forward order."""

    n_kv_heads: Size = key("num_key_value_heads", 32)
    attention_bias: bool = fixed(True)
    mlp_bias: bool = fixed(False)
    use_sliding_window: bool = key("use_sliding_window", False)
    sliding_window: Size | None = key("sliding_window", 4096)
    full_layers: int = key("max_window_layers", 28)
    layer_types: list[str] = key("layer_types", lambda c: c.default_layer_types())

    ignored = Llama.ignored | {"use_mrope", "attention_bias", "mlp_bias", "num_nextn_predict_layers"}

    def default_layer_types(self) -> list[str]:
        """The first layers have full attention, the others a window, if windows are on."""
        return [
            "sliding_attention"
            if self.use_sliding_window and self.sliding_window and i >= self.full_layers
            else "full_attention"
            for i in range(self.n_layers)
        ]

    @property
    def masks(self) -> list[Mask]:
        if not self.use_sliding_window and "sliding_attention" in self.layer_types:
            raise Problem(
                "use_sliding_window is off, and layer_types has sliding_attention",
                "set it to true, or name full_attention only",
            )
        return masks_of(self.layer_types, self.n_layers, self.sliding_window if self.use_sliding_window else None)


@config
class Qwen2VL(Qwen2):
    """Hyperparameters of the text models of Qwen2-VL and Qwen2.5-VL, in forward order."""

    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    n_kv_heads: Size = key("num_key_value_heads", 8)
    full_layers: int = key("max_window_layers", 80)

    ignored = Qwen2.ignored | MEDIA_TOKENS

    @property
    def rope(self) -> Rope:
        return read_rope(self.rope_parameters, theta=1_000_000.0)


@config
class Qwen25Omni(Qwen2VL):
    """Hyperparameters of the text model of Qwen2.5-Omni's thinker, in forward order."""

    norm_eps: Positive = key("rms_norm_eps", 1e-6)
    n_kv_heads: Size = key("num_key_value_heads", 4)
    sliding_window: Size | None = key("sliding_window", 32768)
    full_layers: int = key("max_window_layers", 28)
    tied: bool = key("tie_word_embeddings", True)


@config
class SeedOss(OutputBias):
    """Hyperparameters of Seed-OSS, in forward order."""

    n_kv_heads: Size = key("num_key_value_heads", 8)
    d_head: Size = key("head_dim", 128)
    attention_bias: bool = key("attention_bias", True)
    output_bias: bool = key("attention_out_bias", False)


GGUF = Gguf("seed_oss", {"post_attention_layernorm": "post_attention_norm"})


def draft_layer(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    """The layer of a prediction module: [T D] -> [T D]."""
    return layer(x, w, cache, c, c.masks[0], angles(ids, cache, c.d_head, c.rope))


MTP = Module(
    draft_layer,
    "model.mtp_layers.{k}",
    "token_layernorm",
    "hidden_layernorm",
    "input_proj",
    last_norm="final_layernorm",
    state_first=True,
)


@architecture("seed_oss", config=SeedOss, gguf=GGUF, heads=OLD_NAME)
@architecture("qwen2_5_omni_text", config=Qwen25Omni, gguf=Gguf("qwen2vl"), rounds_heads={"qwen2_5_omni_text": True})
@architecture("qwen2_vl_text", "qwen2_5_vl_text", config=Qwen2VL, gguf=Gguf("qwen2vl"))
@architecture(
    "qwen2",
    config=Qwen2,
    gguf=Gguf("qwen2", seventy=80),
    heads=OLD_NAME
    | {
        "ForRewardModel": Task("reward", "reward", 1),
        "ForProcessRewardModel": Task("reward of each step", "reward", 2),
    },
    peft=Peft(QUERY_VALUE),
    rounds_heads={"qwen2": True},
)
@architecture("mimo", config=Qwen2, predicts=MTP)
def forward(w: Weights, ids: Array, c: OutputBias, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for mask, w_layer, cache_layer in w.layers("model.layers", c.masks, cache):
        x = layer(x, w_layer, cache_layer, c, mask, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: OutputBias, mask: Mask, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, mask, table)
    return x + feed_forward(rms_norm(x, w, "post_attention_layernorm", c.norm_eps), w.at("mlp"), c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: OutputBias, mask: Mask, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    q = heads(linear(x, w, "q_proj", c.n_heads * c.d_head, bias=c.attention_bias), c.n_heads, c.d_head)
    k = heads(linear(x, w, "k_proj", c.n_kv_heads * c.d_head, bias=c.attention_bias), c.n_kv_heads, c.d_head)
    v = heads(linear(x, w, "v_proj", c.n_kv_heads * c.d_head, bias=c.attention_bias), c.n_kv_heads, c.d_head)
    q, k = apply_rope(q, table), apply_rope(k, table)
    k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, v, mask)
    mixed = attend(q, k, v, causal_mask(cache, q, k, mask), c.d_head**-0.5)
    return linear(mixed, w, "o_proj", c.d_model, bias=c.output_bias)
