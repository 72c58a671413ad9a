"""Llama and the many models that share its block: LLaMA 1 to 3, Mistral, InternLM3, CWM, openPangu Embedded …

Sources: arXiv 2302.13971, 2307.09288, 2407.21783 (Llama), 2310.06825 (Mistral), 2510.02387 (CWM);
internlm/internlm3-8b-instruct; tensor names as the published files.
"""

from __future__ import annotations

from typing import cast

from ..errors import Problem
from ..facts import QUERY_VALUE, UNREAD, Gguf, Peft
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    Full,
    Rope,
    SlidingWindow,
    apply_rope,
    attend,
    causal_mask,
    embed,
    heads,
    linear,
    positions,
    rms_norm,
    rope_table,
    unembed,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import MEDIA_TOKENS, Config, Positive, Raw, Size, activation, config, derived, fixed, key, masks_of
from .rope_config import OLDER_ROPE_KEYS, fold_rope_or, read_rope
from .tasks import OLD_NAME
from .tensor_layouts import EXAONE_NAMES, MISTRAL_NAMES, PAIRS


@config
class Llama(Config):
    """Hyperparameters of the Llama block, in forward order."""

    # embedding
    vocab_size: Size = key("vocab_size")
    d_model: Size = key("hidden_size")
    # layers
    n_layers: Size = key("num_hidden_layers")
    norm_eps: Positive = key("rms_norm_eps", 1e-6)
    # attention
    n_heads: Size = key("num_attention_heads")
    n_kv_heads: Size = key("num_key_value_heads", lambda c: c.n_heads)
    d_head: Size = key("head_dim", lambda c: c.default_head_dim())
    attention_bias: bool = key("attention_bias", False)
    rope_parameters: Raw = key("rope_parameters", lambda c: {})
    # feed-forward
    d_ff: Size = key("intermediate_size")
    mlp_bias: bool = key("mlp_bias", False)
    activation: str = key("hidden_act", "silu")
    # head
    tied: bool = key("tie_word_embeddings", False)

    rewritten = OLDER_ROPE_KEYS
    ignored = frozenset({"rope_interleaved", "_flash_attn_2_enabled"})

    def default_head_dim(self) -> int:
        """head_dim if the config leaves it out: d_model / n_heads."""
        self.must_divide("n_heads", "d_model")
        return self.d_model // self.n_heads

    def check(self) -> None:
        self.must_divide("n_kv_heads", "n_heads")
        activation(self.activation)

    @property
    def rope(self) -> Rope:
        return read_rope(self.rope_parameters)

    @property
    def masks(self) -> list[Mask]:
        """The mask of each layer, in order."""
        return [Full()] * self.n_layers


@config
class Mistral(Llama):
    """Mistral's: grouped-query attention, and in the first version a sliding window; never a bias."""

    n_kv_heads: Size = key("num_key_value_heads", 8)
    attention_bias: bool = fixed(False)
    mlp_bias: bool = fixed(False)
    sliding_window: Size | None = key("sliding_window", None)

    ignored = Llama.ignored | {"attention_bias", "mlp_bias"}

    @property
    def masks(self) -> list[Mask]:
        return [SlidingWindow(self.sliding_window) if self.sliding_window else Full()] * self.n_layers


@config
class WindowedMistral(Mistral):
    """The first Mistral's, with a window of 4,096 tokens if none is stated; with null, there is no window."""

    sliding_window: Size | None = key("sliding_window", 4096)


@config
class InternLM3(Llama):
    """InternLM3's: one flag for the biases of attention, one for those of the feed-forward network; both have to
    agree."""

    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    n_kv_heads: Size = key("num_key_value_heads", 2)
    d_head: Size = key("head_dim", 128)
    attention_bias: bool = key("attention_bias", False, also=("qkv_bias",))
    mlp_bias: bool = key("mlp_bias", False, also=("bias",))

    def check(self) -> None:
        super().check()
        if self.attention_bias != self.mlp_bias:
            raise Problem(
                f"qkv_bias = {str(self.attention_bias).lower()} and bias = {str(self.mlp_bias).lower()}",
                "use one value for both: no known model has an output projection that differs from the others",
            )


@config
class Cwm(Llama):
    """The Code World Model's: a window in three layers of four, and full attention in the first of each four."""

    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    n_kv_heads: Size = key("num_key_value_heads", 8)
    d_head: Size = key("head_dim", 128)
    attention_bias: bool = fixed(False)
    sliding_window: Size | None = key("sliding_window", 8192)
    layer_types: list[str] = key("layer_types", lambda c: c.default_layer_types())

    ignored = Llama.ignored | {"attention_bias"}

    def default_layer_types(self) -> list[str]:
        """The first of every four layers has full attention, the others a window."""
        return ["sliding_attention" if i % 4 else "full_attention" for i in range(self.n_layers)]

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """A config without a table for its rotary embedding has the published one's."""
        usual: Raw = {
            "rope_type": "llama3",
            "rope_theta": 1_000_000.0,
            "factor": 16.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192,
        }
        return fold_rope_or(raw, usual)

    @property
    def rope(self) -> Rope:
        return read_rope(self.rope_parameters, 1_000_000.0)

    @property
    def masks(self) -> list[Mask]:
        return masks_of(self.layer_types, self.n_layers, self.sliding_window)


@config
class Emu3(Llama):
    """The text model of Emu3, whose images are tokens of its vocabulary."""

    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    n_kv_heads: Size = key("num_key_value_heads", 8)

    ignored = Llama.ignored | {"image_token_id", "vocabulary_map"}

    @property
    def rope(self) -> Rope:
        return read_rope(self.rope_parameters, theta=1_000_000.0)


@config
class PaddleOCR(Llama):
    """The text model of PaddleOCR-VL: in a text without images, all three parts of a position are equal."""

    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    n_kv_heads: Size = key("num_key_value_heads", 2)
    d_head: Size = key("head_dim", 128)
    attention_bias: bool = key("use_bias", False)
    mlp_bias: bool = derived(lambda c: c.attention_bias)
    tied: bool = key("tie_word_embeddings", True)

    ignored = (
        Llama.ignored | MEDIA_TOKENS | {"mlp_bias", "compression_ratio", "freq_allocation", "fuse_rope", "use_rmsnorm"}
    )

    @property
    def rope(self) -> Rope:
        return read_rope(self.rope_parameters, theta=500_000.0)


@config
class IQuestCoder(Llama):
    """IQuest Coder's."""

    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    n_kv_heads: Size = key("num_key_value_heads", 8)
    d_head: Size = key("head_dim", 128)

    ignored = Llama.ignored | {"clip_qkv", "use_sliding_window", "sliding_window", "max_window_layers"}


@config
class Exaone(Llama):
    """EXAONE 3 and 3.5's: Llama's, under other keys and names."""

    n_layers: Size = key("num_layers", also=("num_hidden_layers",))
    norm_eps: Positive = key("layer_norm_epsilon", 1e-5, also=("rms_norm_eps",))
    attention_bias: bool = fixed(False)
    mlp_bias: bool = fixed(False)
    activation: str = key("activation_function", "silu", also=("hidden_act",))

    ignored = Llama.ignored | {"embed_dropout"}


@config
class TeleChat3(Llama):
    """TeleChat 3's, which has a name of its own for YaRN."""

    @property
    def rope(self) -> Rope:
        kind = self.rope_parameters.get("rope_type", self.rope_parameters.get("type"))
        return read_rope(self.rope_parameters | ({"rope_type": "yarn"} if kind == "telechat3-yarn" else {}))


@config
class PanguEmbedded(Llama):
    """openPangu Embedded's: one flag for the biases of attention."""

    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    attention_bias: bool = key("attention_bias", False, also=("bias",))


@config
class InternLM(Llama):
    """InternLM 1's: one flag for the biases of attention; scaled, its rotary embedding is the dynamic one."""

    attention_bias: bool = key("bias", True)
    mlp_bias: bool = fixed(False)

    rewritten = Llama.rewritten | {"rotary"}
    ignored = Llama.ignored | {"attention_bias", "mlp_bias"}

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """`rotary` is a table of the base and the kind."""
        table: object = raw.pop("rotary", None)
        if isinstance(table, dict):
            inside = cast("Raw", table)
            raw.setdefault("rope_theta", inside.get("base", 10000.0))
            if inside.get("type") == "dynamic":
                raw.setdefault("rope_scaling", {"type": "dynamic", "factor": inside.get("scaling_factor", 1.0)})
        return super().prepare(raw)


GGUF = Gguf("llama", seventy=80, in_pairs=True)


@architecture("internlm", config=InternLM)
@architecture("PanguEmbedded", config=PanguEmbedded, gguf=UNREAD)
@architecture("telechat3", config=TeleChat3)
@architecture("exaone", config=Exaone, spellings=EXAONE_NAMES, gguf=Gguf("exaone"))
@architecture(
    "iquestcoder",
    config=IQuestCoder,
    gguf=GGUF,
    classes={"iquestcoder": "LlamaForCausalLM"},  # transformers 5.24, modeling_auto.py: no class of its own
)
@architecture(
    "emu3_text_model",
    config=Emu3,
    rounds_heads={"emu3_text_model": True},
    classes={"emu3_text_model": "Emu3ForCausalLM"},  # transformers 5.24, models/emu3
)
@architecture("paddleocr_vl_text", config=PaddleOCR, gguf=Gguf("paddleocr"))
@architecture(
    "llama", config=Llama, spellings=MISTRAL_NAMES, in_pairs=PAIRS, gguf=GGUF, heads=OLD_NAME, peft=Peft(QUERY_VALUE)
)
@architecture(
    "internlm3",
    config=InternLM3,
    gguf=GGUF,
    classes={"internlm3": "LlamaForCausalLM"},  # transformers 5.24, modeling_auto.py: no class of its own
)
@architecture("cwm", config=Cwm)
@architecture(
    "mistral",
    config=WindowedMistral,
    spellings=MISTRAL_NAMES,
    in_pairs=PAIRS,
    gguf=GGUF,
    peft=Peft(QUERY_VALUE),
    rounds_heads={"mistral": False},
)
def forward(w: Weights, ids: Array, c: Llama, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for mask, w_layer, cache_layer in w.layers("model.layers", c.masks, cache):
        x = layer(x, w_layer, cache_layer, c, mask, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Llama, mask: Mask, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, mask, table)
    return x + feed_forward(rms_norm(x, w, "post_attention_layernorm", c.norm_eps), w.at("mlp"), c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Llama, mask: Mask, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    q = heads(linear(x, w, "q_proj", c.n_heads * c.d_head, bias=c.attention_bias), c.n_heads, c.d_head)
    k = heads(linear(x, w, "k_proj", c.n_kv_heads * c.d_head, bias=c.attention_bias), c.n_kv_heads, c.d_head)
    v = heads(linear(x, w, "v_proj", c.n_kv_heads * c.d_head, bias=c.attention_bias), c.n_kv_heads, c.d_head)
    q, k = apply_rope(q, table), apply_rope(k, table)
    k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, v, mask)
    mixed = attend(q, k, v, causal_mask(cache, q, k, mask), c.d_head**-0.5)
    return linear(mixed, w, "o_proj", c.d_model, bias=c.attention_bias)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: Llama) -> Array:
    """Process each token separately, in a wider space, one half gating the other: [T D] -> [T F] -> [T D]."""
    gate = activation(c.activation)(linear(x, w, "gate_proj", c.d_ff, bias=c.mlp_bias))
    return linear(gate * linear(x, w, "up_proj", c.d_ff, bias=c.mlp_bias), w, "down_proj", c.d_model, bias=c.mlp_bias)
