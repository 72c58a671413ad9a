"""Turns the metadata of a GGUF file into the keys of a config.json: sizes by llama.cpp's names, the rest from the
tensors.

A file names llama.cpp's architecture, which several model types are converted to (`gguf_types_of`). Each of them is
tried: with the sizes in the metadata its forward pass requests tensors, and the model's type is the one whose tensors
match the file's. Does no I/O: the browser has this module too, with its own reader of headers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from ..counting.gguf import GgufFile
from ..engine.architectures import find
from ..engine.architectures.config import Key, fields_of
from ..engine.errors import Problem
from ..engine.forward import trace
from ..engine.rules import ShapeError

if TYPE_CHECKING:
    from .gguf_header import Gguf

Raw = dict[str, Any]
Shapes = Mapping[str, tuple[int, ...]]

# Fields of configs here, and the keys of a file that state them; the first key found counts.
SIZES: dict[str, tuple[str, ...]] = {
    "d_model": ("embedding_length",),
    "n_layers": ("block_count",),
    "n_encoder_layers": ("block_count",),
    "n_decoder_layers": ("decoder_block_count", "block_count"),
    "d_ff": ("feed_forward_length",),
    "d_ff_dense": ("feed_forward_length",),
    "n_heads": ("attention.head_count",),
    "n_kv_heads": ("attention.head_count_kv",),
    "published_kv_heads": ("attention.head_count_kv",),
    "d_head": ("attention.key_length",),
    "head_dim": ("attention.key_length",),
    "d_global_head": ("attention.key_length",),
    "norm_eps": ("attention.layer_norm_rms_epsilon", "attention.layer_norm_epsilon"),
    "rms_eps": ("attention.layer_norm_rms_epsilon",),
    "n_experts": ("expert_count",),
    "n_experts_per_token": ("expert_used_count",),
    "d_ff_expert": ("expert_feed_forward_length",),
    "d_ff_shared": ("expert_shared_feed_forward_length",),
    "shared_width": ("expert_shared_feed_forward_length",),
    "n_shared_experts": ("expert_shared_count",),
    "dense_layers": ("leading_dense_block_count",),
    "routed_scale": ("expert_weights_scale",),
    "normalise": ("expert_weights_norm",),
    "n_expert_groups": ("expert_group_count",),
    "n_groups_kept": ("expert_group_used_count",),
    "d_latent": ("moe_latent_size",),
    "sliding_window": ("attention.sliding_window",),
    "window": ("attention.sliding_window",),
    "q_lora_rank": ("attention.q_lora_rank",),
    "kv_lora_rank": ("attention.kv_lora_rank",),
    "qk_rope_head_dim": ("rope.dimension_count",),
    "v_head_dim": ("attention.value_length_mla", "attention.value_length"),
    "attention_cap": ("attn_logit_softcapping",),
    "logit_cap": ("final_logit_softcapping",),
    "final_cap": ("final_logit_softcapping",),
    "router_cap": ("router_logit_softcapping",),
    "logit_scale": ("logit_scale",),
    "logits_divisor": ("logit_scale",),
    "residual_multiplier": ("residual_scale",),
    "embedding_multiplier": ("embedding_scale",),
    "attention_multiplier": ("attention.scale",),
    "clip": ("attention.clamp_kqv",),
    "clip_qkv": ("attention.clamp_kqv",),
    "parallel": ("use_parallel_residual",),
    "d_conv": ("ssm.conv_kernel", "shortconv.l_cache"),
    "d_state": ("ssm.state_size",),
    "d_inner": ("ssm.inner_size",),
    "mamba_width": ("ssm.inner_size",),
    "dt_rank": ("ssm.time_step_rank",),
    "n_mamba_heads": ("ssm.time_step_rank",),
    "n_groups": ("ssm.group_count",),
    "n_linear_k_heads": ("ssm.group_count",),
    "n_linear_v_heads": ("ssm.time_step_rank",),
    "d_linear_k_head": ("ssm.state_size",),
    "n_linear_heads": ("attention.head_count",),
    "d_linear_head": ("kda.head_dim",),
    "full_attention_interval": ("full_attention_interval",),
    "moe_interval": ("interleave_moe_layer_step",),
    "index_n_heads": ("attention.indexer.head_count",),
    "index_head_dim": ("attention.indexer.key_length",),
    "index_topk": ("attention.indexer.top_k",),
    "n_buckets": ("attention.relative_buckets_count",),
    "n_positions": ("context_length",),
    "n_source": ("context_length",),
    "shared_layers": ("attention.shared_kv_layers",),
    "d_per_layer": ("embedding_length_per_layer_input",),
    "n_streams": ("altup.num_inputs", "hyper_connection.count"),
    "active_stream": ("altup.active_idx",),
    "n_segments": ("token_type_count", "tokenizer.ggml.token_type_count"),
}
# Tensors that the converter computes from the config.
COMPUTED = ("rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight")
MOST_TRIED = 48  # configs of one type


def shapes_of(file: Gguf) -> dict[str, tuple[int, ...]]:
    """The tensors that hold the model's weights, with their shapes."""
    return {name: tensor.shape for name, tensor in file.tensors.items() if not name.endswith(COMPUTED)}


class Reading:
    """One model type's config from a file's metadata."""

    def __init__(self, file: Gguf, model_type: str):
        self.file, self.model_type = file, model_type
        self.architecture = find(model_type)
        self.keys = {k.field: k for k in fields_of(self.architecture.config) if k.key}
        self.shapes = shapes_of(file)

    def raw(self) -> Raw:
        """The keys that the metadata states."""
        raw: Raw = {"model_type": self.model_type}
        for field, said in SIZES.items():
            if (key := self.keys.get(field)) and (value := self._said(said)) is not None:
                put(raw, key, value)
        self._put(raw, "vocab_size", self._rows("token_embd.weight"))
        self._put(raw, "tied", "output.weight" not in self.shapes)
        self._put(raw, "attention_bias", self._has(".attn_q.bias", ".attn_qkv.bias"))
        self._put(raw, "qkv_bias", self._has(".attn_q.bias", ".attn_qkv.bias"))
        self._put(raw, "mlp_bias", self._has(".ffn_up.bias"))
        self._put(raw, "qk_norm", self._has(".attn_q_norm.weight"))
        self._widths(raw)
        self._latent(raw)
        self._query_scale(raw)
        self._rope(raw)
        self._layers(raw)
        if (context := self._number("context_length")) is not None:
            raw.setdefault("max_position_embeddings", context)
        return raw

    def _said(self, names: tuple[str, ...]) -> Any:
        for name in names:
            value = self.file.of(name)
            if (listed := self.file.listed(name)) is not None:
                numbers = [n for n in listed if isinstance(n, int) and not isinstance(n, bool)]
                if not numbers:
                    return None
                value = max(numbers)
            if value is not None:
                return _exact(value)
        return None

    def _number(self, name: str) -> int | None:
        value = self.file.of(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def _heads(self) -> int | None:
        """The number of query heads, in the layer that has the most."""
        said = self._said(("attention.head_count",))
        return said if isinstance(said, int) and not isinstance(said, bool) and said > 0 else None

    def _put(self, raw: Raw, field: str, value: Any) -> None:
        if field in self.keys and value is not None:
            put(raw, self.keys[field], value)

    def _rows(self, name: str) -> int | None:
        shape = self.shapes.get(name)
        return shape[0] if shape else None

    def may_lack_windows(self) -> bool:
        """Whether a config of this type that states no window has none."""
        window, is_used = self.keys["sliding_window"], self.keys.get("use_sliding_window")
        return window.default is None or (is_used is not None and is_used.default is False)

    def _has(self, *ends: str) -> bool:
        return any(name.endswith(ends) for name in self.shapes)

    def _widths(self, raw: Raw) -> None:
        """Sizes that follow from several keys, or from the tensors."""
        inner, heads = self._number("ssm.inner_size"), self._number("ssm.time_step_rank")
        if inner and heads:
            self._put(raw, "d_linear_v_head", inner // heads)
            self._put(raw, "d_mamba_head", inner // heads)
        experts = self._number("expert_feed_forward_length")
        if "d_ff_dense" in self.keys and "d_ff_expert" not in self.keys:
            self._put(raw, "d_ff", experts)
        self._put(raw, "stated_d_ff", self._number("feed_forward_length"))
        self._put(raw, "adjust_d_ff", False)
        shared = next((shape[0] for name, shape in self.shapes.items() if name.endswith(".ffn_up_shexp.weight")), None)
        if shared:
            self._put(raw, "d_ff_shared", shared)
            self._put(raw, "shared_width", shared)
            if experts and self._number("expert_shared_count") is None:
                self._put(raw, "n_shared_experts", shared // experts)
        if "padding" in self.keys and (context := self._number("context_length")) is not None:
            self._put(raw, "n_positions", context + 2)  # rows before the first position
        if "q_lora_rank" in self.keys and self._number("attention.q_lora_rank") is None:
            put(raw, self.keys["q_lora_rank"], None)

    def _latent(self, raw: Raw) -> None:
        """Keys and values of a latent, which llama.cpp stores as one key for all heads."""
        if "kv_lora_rank" not in self.keys or self._number("attention.kv_lora_rank") is None:
            return
        heads, rope = self._number("attention.head_count"), self._number("rope.dimension_count") or 0
        whole = self._number("attention.key_length_mla") or self._number("attention.key_length")
        self._put(raw, "n_kv_heads", heads)
        if whole is not None:
            self._put(raw, "qk_nope_head_dim", whole - rope)

    def _query_scale(self, raw: Raw) -> None:
        """The number whose square root divides the scores. No key states it: llama.cpp uses the head width or, for the
        27B models, the query width divided by the number of heads."""
        head, width = self._number("attention.key_length"), self._number("embedding_length")
        heads, layers = self._heads(), self._number("block_count")
        if head is not None and width and heads:
            is_largest = layers in (46, 62)
            self._put(raw, "query_scalar", width // heads if is_largest else head)

    def _rope(self, raw: Raw) -> None:
        """RoPE's parameters as transformers 5 has them, if the type reads them that way."""
        base, kind = self.file.of("rope.freq_base"), self.file.of("rope.scaling.type")
        factor = self.file.of("rope.scaling.factor")
        said: Raw = {"rope_type": "default"}
        if isinstance(base, (int, float)):
            said["rope_theta"] = _exact(base)
        if kind in ("linear", "yarn") and isinstance(factor, (int, float)) and factor != 1:
            said |= {"rope_type": kind, "factor": _exact(factor)}
            if kind == "yarn" and (trained := self._number("rope.scaling.original_context_length")) is not None:
                said["original_max_position_embeddings"] = trained
            multiplier = self.file.of("rope.scaling.yarn_log_multiplier")
            if kind == "yarn" and isinstance(multiplier, float):
                said |= dict.fromkeys(("mscale", "mscale_all_dim"), _exact(multiplier * 10))
        if "rope_freqs.weight" in self.file.tensors:
            said |= self._slowed(float(said.get("rope_theta", 10000.0)))
        turned, whole = self._number("rope.dimension_count"), self._width()
        if turned is not None and whole and turned < whole:
            said["partial_rotary_factor"] = turned / whole
        if "rope_parameters" in self.keys and len(said) > 1 and "kv_lora_rank" not in self.keys:
            raw["rope_parameters"] = said
        elif "rope_parameters" in self.keys and "rope_theta" in said:
            raw["rope_parameters"] = {key: value for key, value in said.items() if key != "partial_rotary_factor"}
        if "d_rotary" in self.keys:
            self._put(raw, "d_rotary", turned)
        for field in ("rope_theta", "rope_base"):
            self._put(raw, field, said.get("rope_theta"))

    def _slowed(self, theta: float) -> Raw:
        """Llama 3's RoPE parameters, which a file stores as divisors of the frequencies: 1 for the fast ones, a factor
        for the slow ones, and in between a linear function of the frequency, determined by two points."""
        usual: Raw = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
        usual["original_max_position_embeddings"] = 8192
        placed = self.file.tensors["rope_freqs.weight"]
        divisors = placed.floats()
        if not divisors or not all(0 < d < math.inf for d in divisors) or not 0 < theta < math.inf or theta == 1:
            return usual
        factor = max(divisors)
        usual["factor"] = _exact(factor)
        lengths = [2 * math.pi * theta ** (i / len(divisors)) for i in range(len(divisors))]
        between = [  # the share of the fast angle, by inverse wavelength
            (1 / length, (1 / d - 1 / factor) / (1 - 1 / factor))
            for length, d in zip(lengths, divisors)
            if 1.0001 < d < factor * 0.9999
        ]
        if len(between) < 2:  # the usual line through the one point
            trained = [round((3 * y + 1) / x) for x, y in between]
            return usual | {"original_max_position_embeddings": trained[0] if trained else 8192}
        (x0, y0), (x1, y1) = between[0], between[-1]
        slope = (y0 - y1) / (x0 - x1)
        offset = slope * x0 - y0
        if slope <= 0 or offset <= 0:
            return usual
        high = 1 + 1 / offset
        if not math.isfinite(slope * high):
            return usual
        return usual | {"high_freq_factor": _near(high), "original_max_position_embeddings": round(slope * (high - 1))}

    def _width(self) -> int | None:
        """The number of elements in a head."""
        heads, width = self._heads(), self._number("embedding_length")
        return self._number("attention.key_length") or (width // heads if heads and width else None)

    def _layers(self, raw: Raw) -> None:
        """The kind of each layer, judging by its tensors."""
        key, layers = self.keys.get("layer_types"), self._number("block_count")
        if key is None or layers is None or layers > 10_000:
            return
        have = [
            {name.partition(f"blk.{i}.")[2] for name in self.shapes if name.startswith(f"blk.{i}.")}
            for i in range(layers)
        ]
        kinds: list[str] = []
        is_of_convolutions = any(name.startswith("shortconv") for names in have for name in names)
        is_mixed = any(any(name.startswith(("ssm", "shortconv")) for name in names) for names in have)
        pattern = self.file.of("attention.sliding_window_pattern")
        slides = self.file.listed("attention.sliding_window_pattern")
        if slides is not None and len(slides) == layers:
            kinds = ["sliding_attention" if slide else "full_attention" for slide in slides]
        elif isinstance(pattern, int) and pattern > 1:
            kinds = ["full_attention" if (i + 1) % pattern == 0 else "sliding_attention" for i in range(layers)]
        elif is_mixed:
            for names in have:
                if any(name.startswith("shortconv") for name in names):
                    kinds.append("conv")
                elif any(name.startswith("ssm") for name in names):
                    kinds.append("mamba" if self._is_of_mamba() else "linear_attention")
                else:
                    is_plain = self._is_of_mamba() and not is_of_convolutions
                    kinds.append("attention" if is_plain else "full_attention")
        if kinds:
            put(raw, key, kinds)

    def _is_of_mamba(self) -> bool:
        return "d_linear_k_head" not in self.keys and "d_linear_head" not in self.keys


def put(raw: Raw, key: Key, value: Any) -> None:
    """Set a key of a config, or one inside a table: `ffn_config.moe_top_k`."""
    *tables, last = str(key.key).split(".")
    for table in tables:
        raw = raw.setdefault(table, {})
    raw[last] = value


def _exact(value: Any) -> Any:
    """A number as it was written before it became a 32-bit float: 1e-05 for 9.999999747378752e-06."""
    if not isinstance(value, float) or not math.isfinite(value):
        return value
    for digits in range(1, 9):
        rounded = float(f"{value:.{digits}g}")
        if abs(rounded - value) <= abs(value) * 6e-8:
            return rounded
    return value


def _near(value: float) -> float:
    """A number computed from 32-bit floats, rounded if it is close to a whole one."""
    return float(round(value)) if abs(value - round(value)) < 1e-3 * value else value


def asked_for(reading: Reading, raw: Raw) -> dict[str, tuple[int, ...]]:
    """The tensors that a file of this config has, with their shapes. Raises `Problem`."""
    try:
        config, _ = reading.architecture.config.read(raw)
        run = trace(reading.architecture, config)
    except (ShapeError, AttributeError) as error:
        raise Problem(str(error), "") from None
    made = GgufFile(run.weights.values(), reading.architecture.gguf, reading.model_type, run.symbols)
    if made.architecture != reading.file.architecture:
        raise Problem(f"becomes {made.architecture}", "")
    return {t.named(layer): t.shape for t in made.tensors for layer in t.layers or (None,)}


def apart(here: Shapes, there: Shapes) -> int:
    """The number of tensors that only one side has, or that have different shapes."""
    same = sum(there.get(name) == shape for name, shape in here.items())
    return len(here) + len(there) - 2 * same


def config_of(file: Gguf, types: Iterable[str]) -> Raw:
    """The keys of a config.json that describes a model with the file's tensors, or most of them, of one of these types.
    Raises `Problem`."""
    best: tuple[int, Raw] | None = None
    wrong: Problem | None = None
    for reading in _readings(file, types):
        try:
            left, raw = _fitted(reading, reading.raw())
        except Problem as problem:
            wrong = wrong or problem
            continue
        if best is None or left < best[0]:
            best = left, raw
        if left == 0:
            break
    if best is None:
        assert wrong is not None
        raise Problem(f"its metadata give no model: {wrong.what}", "update llama.cpp and convert the model again")
    return best[1]


def _readings(file: Gguf, types: Iterable[str]) -> Iterator[Reading]:
    """The model types that the file could have been converted from: if the file states a window, those with a window
    first. The others are looked up only if the type of the architecture's own name does not match."""
    is_windowed = file.of("attention.sliding_window") is not None
    others: list[Reading] = []
    for model_type in types:
        reading = Reading(file, model_type)
        is_apt = ("sliding_window" in reading.keys) == is_windowed
        if is_apt or (not is_windowed and model_type == file.architecture and reading.may_lack_windows()):
            yield reading
        else:
            others.append(reading)
    yield from others


def _fitted(reading: Reading, raw: Raw) -> tuple[int, Raw]:
    """The config with the flags that bring its tensors closest to the file's, and how many still differ."""
    left, wrong, tried = None, None, 0
    try:
        left = apart(asked_for(reading, raw), reading.shapes)
    except Problem as problem:
        wrong = problem
    while left != 0 and tried < MOST_TRIED:
        better: tuple[int, Raw] | None = None
        for other in _others(reading, raw):
            tried += 1
            try:
                other_left = apart(asked_for(reading, other), reading.shapes)
            except Problem:
                continue
            if (left is None or other_left < left) and (better is None or other_left < better[0]):
                better = other_left, other
            if other_left == 0:
                break
        if better is None:
            break
        left, raw = better
    if left is None:
        assert wrong is not None
        raise wrong
    return left, raw


def _others(reading: Reading, raw: Raw) -> Iterator[Raw]:
    """The config with one change: a flag flipped, a size left to its default, a head tied or untied."""
    for field, key in reading.keys.items():
        if key.type in (bool, "bool") and not key.is_size:
            other = _copied(raw)
            table = other
            *tables, last = str(key.key).split(".")
            for name in tables:
                table = cast("Raw", table.setdefault(name, {}))
            said = table.get(last)
            if said is None:
                default = key.default
                said = default if isinstance(default, bool) else False
            table[last] = not said
            yield other
        elif field in ("d_head", "n_kv_heads", "layer_types", "v_head_dim", "d_ff_shared") and str(key.key) in raw:
            other = _copied(raw)
            other.pop(str(key.key))
            yield other


def _copied(raw: Raw) -> Raw:
    return {key: dict(value) if isinstance(value, dict) else value for key, value in raw.items()}
