"""Turns a published `config.json` into an architecture's frozen config: keys, types, defaults, and clear errors.

An architecture declares its hyperparameters in forward order, under this site's names, each with its key in
`config.json`. Every key of a config is either one of these or on the list of keys that change no shape and no number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from typing import (
    Annotated,
    Any,
    ClassVar,
    NamedTuple,
    Self,
    TypeAlias,
    TypeVar,
    cast,
    dataclass_transform,
    get_args,
    get_type_hints,
)

import msgspec

from ..dims import Dim
from ..errors import Problem, closest_key, nearest, shorten
from ..interface import Mask
from ..ops import ACTIVATIONS, Activation, Full, Rope, SlidingWindow
from ..validation import plain_words
from .otherwise import ROUNDED, Otherwise, rounded_head, window_of_one
from .rope_config import OLDER_ROPE_KEYS, fold_rope

Size = Annotated[int, msgspec.Meta(gt=0, le=2**31)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**31)]
# The maximum width of a convolution, whose forward pass has a term per token.
Taps = Annotated[int, msgspec.Meta(gt=0, le=256)]
Positive = Annotated[float, msgspec.Meta(gt=0, le=1e18)]
Interval = Annotated[int, msgspec.Meta(gt=0)]
Offset = Annotated[int, msgspec.Meta(ge=0)]
LARGEST_SIZE = 2**31

# The keys of a config.json, or of a table in it, as they come: nothing is known of the values.
Raw: TypeAlias = dict[str, Any]

# The value where a config leaves a key out, or a function of the fields above it.
Default: TypeAlias = Callable[[Any], Any] | float | str | None
REQUIRED: Any = MISSING

# Configs list layers one by one; a wrong number makes at most this many.
MOST_LAYERS = 10_000

# Keys of any config.json that change no shape, no count and no logit of inference here.
COMMON_IGNORED = frozenset(
    """
    architectures auto_map torch_dtype dtype transformers_version _name_or_path _attn_implementation_autoset
    name_or_path bos_token_id eos_token_id pad_token_id sep_token_id cls_token_id unk_token_id
    decoder_start_token_id bad_words_ids use_cache pretraining_tp initializer_range gradient_checkpointing
    output_attentions output_hidden_states return_dict torchscript use_return_dict is_decoder is_encoder_decoder
    add_cross_attention tokenizer_class task_specific_params attention_dropout attn_dropout attn_pdrop embd_pdrop
    resid_pdrop hidden_dropout hidden_dropout_prob dropout embedding_dropout residual_dropout resid_dropout
    summary_activation summary_first_dropout summary_proj_to_labels summary_type summary_use_proj
    chunk_size_feed_forward cross_attention_hidden_size early_stopping finetuning_task id2label label2id
    problem_type max_length min_length num_beams num_return_sequences do_sample temperature top_k top_p typical_p
    repetition_penalty length_penalty no_repeat_ngram_size pruned_heads quantization_config unsloth_version
    unsloth_fixed neftune_noise_alpha keys_to_ignore_at_inference max_position_embeddings model_max_length
    max_sequence_length use_flash_attn attn_implementation router_aux_loss_coef output_router_logits
    router_jitter_noise aux_loss_alpha seq_aux router_z_loss_coef hub initializer_factor embedding_initializer_range
    rope_interleaved_note reference_compile prefix remove_invalid_values cache_implementation
    original_max_position_embeddings num_labels num_beam_groups num_logits_to_keep encoder_no_repeat_ngram_size
    is_causal pooling begin_suppress_tokens suppress_tokens diversity_penalty exponential_decay_length_penalty
    forced_bos_token_id forced_eos_token_id output_scores return_dict_in_generate tf_legacy_loss tie_encoder_decoder
    use_bfloat16
""".split()
) | {ROUNDED}

# Keys next to a language model's own in a multimodal config: ids that stand for an image, a video or a sound.
MEDIA_TOKENS = frozenset(
    """
    image_token_id video_token_id audio_token_id vision_start_token_id vision_end_token_id vision_token_id
    image_start_token_id image_end_token_id video_start_token_id video_end_token_id audio_start_token_id
    audio_end_token_id boi_token_id eoi_token_id image_token_index
""".split()
)


# Suffixes of classes with bidirectional attention.
BOTH_WAYS_CLASS = "Bidirectional"

READS_AT_ONCE = (
    "An encoder reads a whole text in one step and generates nothing. "
    "Figures of a decode step are for a text of one token."
)

ConfigT = TypeVar("ConfigT", bound="Config")


class Key(NamedTuple):
    """One field of a config: its name here, its key in config.json (None for a derived one), its type and default."""

    field: str
    key: str | None
    type: Any
    default: Default
    is_size: bool
    also: tuple[str, ...] = ()


def key(name: str, default: Default = REQUIRED, *, also: tuple[str, ...] = ()) -> Any:
    """A hyperparameter under its `config.json` key; a function as default computes it from the fields above it.

    `also`: other spellings of the same key in published files.
    """
    return field(
        default=None if default is REQUIRED else default, metadata={"key": name, "default": default, "also": also}
    )


def derived(compute: Callable[[Any], Any]) -> Any:
    """A size that no key states, computed from the fields above it; it has its own symbol."""
    return field(default=compute, metadata={"key": None, "default": compute})


def fixed(value: float | str | tuple[str, ...] | None, *, init: bool = False) -> Any:
    """Constants of the architecture, which no key sets; not hyperparameters."""
    return field(default=value, init=init)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(key, derived, fixed))
def config(cls: type[ConfigT]) -> type[ConfigT]:
    """Make a class of keys a frozen config. Nothing compares two, or prints one: no class needs functions for that."""
    return dataclass(frozen=True, kw_only=True, repr=False, eq=False)(cls)


@config
class Config:
    """The base of every architecture's config. Fields of types `Size`, `Count` and `Taps` become dimensions.

    `looks_both_ways`: each token sees those after it, too, whatever the type's own attention does; `is_bidirectional`:
    the name of its class says so.
    """

    looks_both_ways: bool = fixed(False, init=True)
    is_bidirectional: bool = fixed(False, init=True)

    # Keys of published files that `prepare` turns into those of the fields, and keys that change nothing.
    rewritten: ClassVar[frozenset[str]] = frozenset()
    ignored: ClassVar[frozenset[str]] = frozenset()
    otherwise: ClassVar[tuple[Otherwise, ...]] = ()  # keys that transformers reads differently
    source_kind: ClassVar[str] = "the vectors of an image"  # which are read beside the text, if numbers are
    caveat: ClassVar[str] = ""  # costs that are not counted for models of this architecture
    # Properties that read a table or a list by layer: computed with the config, so that a wrong one is refused with it.
    checked: ClassVar[tuple[str, ...]] = ("rope", "scale", "masks", "mixed", "kinds")

    def __post_init__(self) -> None:
        for k in fields_of(type(self)):
            value: Any = getattr(self, k.field)
            if value is k.default and callable(value):
                value = value(self)
            if k.is_size and k.field.endswith("_layers"):
                check_layers(k.key or k.field, value)
            if k.is_size and value is not None:
                what = f"{k.key or k.field} = {int(value)}, as follows from other sizes"  # one that was read is right
                if value > LARGEST_SIZE:
                    raise Problem(f"{what}: expected at most {LARGEST_SIZE}", "correct those")
                if value < 1 and Size in (k.type, *get_args(k.type)):
                    raise Problem(f"{what}: expected at least 1", "correct those")
                value = Dim(int(value), k.field)
            object.__setattr__(self, k.field, value)
        try:
            self.check()
        except Problem as problem:
            raise self._with_key(problem) from None
        for name in self.checked:
            getattr(self, name, None)

    def _with_key(self, problem: Problem) -> Problem:
        """A problem with the key of the unknown activation that it is about, if it is about one."""
        if not isinstance(problem, UnknownActivation):
            return problem
        keys = [k.key for k in fields_of(type(self)) if k.key and getattr(self, k.field) == problem.name]
        return Problem(f"{keys[0]}: {problem.what}", problem.mend) if keys else problem

    def check(self) -> None:
        """Raise `Problem` if values that are each possible do not fit together."""

    @property
    def position_reach(self) -> int | None:
        """The tokens that a learned position table has rows for; None without one."""
        return self.symbols.get("n_positions")

    def must_run(self) -> None:
        """Raise `Problem` for a model that transformers builds but cannot run: rounded heads with an odd number of
        elements."""
        table: object = getattr(self, "rope_parameters", None)
        if isinstance(table, Mapping) and ROUNDED in table:
            rope: object = getattr(self, "rope", None)
            if isinstance(rope, Rope):
                rope.turning(self.size("d_head"), counted=False)

    @property
    def said_of_costs(self) -> str:
        """The costs that this model's figures leave out of account, in words; empty if there are none."""
        return self.caveat or (READS_AT_ONCE if self.looks_both_ways else "")

    @property
    def source_shape(self) -> tuple[int, int] | None:
        """The shape of a second input in addition to the text; None for token ids, or without one."""
        return None

    @property
    def symbols(self) -> dict[str, int]:
        """The value of each dimension, by its symbol."""
        values = {k.field: getattr(self, k.field) for k in fields_of(type(self)) if k.is_size}
        return {name: int(v) for name, v in values.items() if v is not None}

    @property
    def readable_ids(self) -> int:
        """The number of token ids: the vocabulary's, and those of tokens added after it."""
        return self.symbols["vocab_size"] + self.symbols.get("n_added", 0)

    def key_of(self, field: str) -> str:
        """The config.json key of a field: `n_heads` -> `num_attention_heads`; a derived one has its own name."""
        return next(k.key or field for k in fields_of(type(self)) if k.field == field)

    def size(self, field: str) -> int:
        """The value of a size that not every config of this architecture has. Raises `Problem` if it is missing."""
        value: int | None = getattr(self, field)
        if value is None:
            raise Problem(f"{self.key_of(field)} is missing", "add it; sizes have no defaults")
        return value

    def must_divide(self, divisor: str, whole: str) -> None:
        """Raise unless the field `divisor` divides the field `whole`."""
        a, b = self.size(divisor), self.size(whole)
        if int(b) % int(a):
            raise Problem(
                f"{self.key_of(divisor)} = {int(a)} does not divide {self.key_of(whole)} = {int(b)}",
                "correct one of the two",
            )

    def must_not_exceed(self, part: str, whole: str) -> None:
        """Raise unless the field `part` is at most the field `whole`."""
        a, b = self.size(part), self.size(whole)
        if int(a) > int(b):
            raise Problem(
                f"{self.key_of(part)} = {int(a)} exceeds {self.key_of(whole)} = {int(b)}", "correct one of the two"
            )

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """The raw keys in one spelling. Override for an architecture whose configs have several, and list the others as
        `rewritten`."""
        return fold_rope(raw) if cls.rewritten.issuperset(OLDER_ROPE_KEYS) else raw

    @classmethod
    def read_otherwise(cls, raw: Mapping[str, Any]) -> list[str]:
        """A line for each key with which transformers computes something other than the forward pass here."""
        differs = [
            f"{row.key} {_value(row.key, raw)}: {row.says}; its logits are not these"
            for row in cls.otherwise
            if row.differs(raw)
        ]
        return rounded_head(raw) + window_of_one(raw) + differs

    @classmethod
    def read(cls, raw: Mapping[str, Any]) -> tuple[Self, list[str]]:
        """The config, and the keys that this architecture does not know. Raises `Problem` naming the key."""
        for name, value in raw.items():
            if name.endswith("layers"):  # before a list with an entry per layer is made
                check_layers(name, value)
        given, raw = raw, cls.prepare({name: _with_numbers(value) for name, value in raw.items()})
        known = [(k.key, k) for k in fields_of(cls) if k.key]
        for name, k in known:
            for spelling in k.also:
                value = raw.pop(spelling, None)
                if raw.get(name) is None and value is not None:
                    raw[name] = value
        # For unlimited windows, transformers writes null, and for some types 0.
        for name in ("sliding_window", "attention_chunk_size"):
            if type(raw.get(name)) is int and raw[name] == 0:
                raw[name] = None
        # null, as against left out, is published for "one for each query head".
        if raw.get("num_key_value_heads", 0) is None:
            raw["num_key_value_heads"] = raw.get("num_attention_heads")
        # And for the width divided by the heads.
        wide, n = raw.get("hidden_size"), raw.get("num_attention_heads")
        if raw.get("head_dim", 0) is None and type(wide) is int and type(n) is int and n > 0:
            raw["head_dim"] = wide // n
        unknown = [name for name in {**given, **raw} if name not in keys_of(cls)]
        values: dict[str, Any] = {}
        for name, k in known:
            value = raw.get(name)
            # A flag that is null is off.
            if value is None and name in raw and (k.type is bool or any(one is True for one in get_args(k.type))):
                value = False
            if value is None:
                if k.default is REQUIRED:
                    near = closest_key(name, unknown)
                    mend = f'the file has "{near}": rename it' if near else "add it; sizes have no defaults"
                    raise Problem(f"{name} is missing", mend)
                # A missing optional key has its default; null means none.
                if name in raw and type(None) in get_args(k.type):
                    values[k.field] = None
                continue
            if isinstance(value, float) and not math.isfinite(value):
                raise Problem(f"{name} = {value}: expected a finite number", "correct the value")
            try:
                values[k.field] = msgspec.convert(value, k.type)
            except msgspec.ValidationError as error:
                raise Problem(
                    f"{name} = {shorten(value)}: {plain_words(str(error), k.type)}", "correct the value"
                ) from None
        classes = listed(given.get("architectures")) or [None]
        values["looks_both_ways"] = raw.get("is_causal") is False
        values["is_bidirectional"] = isinstance(classes[0], str) and BOTH_WAYS_CLASS in classes[0]
        return cls(**values), unknown


def check_layers(name: str, value: object) -> None:
    """Raise `Problem` for more layers than any model has."""
    if isinstance(value, int | float) and value > MOST_LAYERS:
        raise Problem(f"{name} = {shorten(value)}: expected at most {MOST_LAYERS:,} layers", "correct the value")


def _with_numbers(value: object) -> Any:
    """A value with infinity as a number again, which transformers 5 writes as {"__float__": "Infinity"}."""
    if isinstance(value, list):
        return [_with_numbers(one) for one in cast("list[object]", value)]
    if isinstance(value, Mapping):
        table = cast("dict[str, Any]", value)
        return math.inf if table == {"__float__": "Infinity"} else table
    return value


@cache
def fields_of(cls: type[Config]) -> tuple[Key, ...]:
    """The hyperparameters of a config class, in order, without fixed values."""
    types = get_type_hints(cls, include_extras=True)
    return tuple(
        Key(
            f.name,
            f.metadata["key"],
            types[f.name],
            f.metadata["default"],
            any(t in (Size, Count, Taps) for t in (types[f.name], *get_args(types[f.name]))),
            f.metadata.get("also", ()),
        )
        for f in fields(cast("Any", cls))
        if f.metadata
    )


@cache
def keys_of(cls: type[Config]) -> frozenset[str]:
    """Every key that a config of a class may have: any other is unknown."""
    spellings = [name for k in fields_of(cls) if k.key for name in (k.key, *k.also)]
    return frozenset({"model_type", *spellings, *cls.rewritten, *cls.ignored, *COMMON_IGNORED})


class UnknownActivation(Problem):
    """An activation function by a name that is not known."""

    def __init__(self, name: str):
        self.name = name
        mend = nearest(name, ACTIVATIONS, f"known ones: {', '.join(ACTIVATIONS)}")
        super().__init__(f"unknown activation {name!r}", mend)


def activation(name: str) -> Activation:
    """The activation function that a config names. Raises `Problem` for an unknown one."""
    if name not in ACTIVATIONS:
        raise UnknownActivation(name)
    return ACTIVATIONS[name]


def full_every(interval: int, n_layers: int) -> list[str]:
    """Layer types in which every `interval`-th layer has full attention and the others a window."""
    return ["sliding_attention" if (i + 1) % interval else "full_attention" for i in range(n_layers)]


def masks_of(layer_types: Sequence[str], n_layers: int, window: int | None) -> list[Mask]:
    """The mask of each layer, from the names of `layer_types`.

    Raises `Problem` for an unknown one, or for a window without a size.
    """
    check_layer_types(layer_types, n_layers, ("full_attention", "sliding_attention"))
    if window is None:
        if "sliding_attention" in layer_types:
            raise Problem("sliding_window is missing", "layer_types has sliding_attention, which needs its size")
        return [Full() for _ in layer_types]
    full, near = Full(), SlidingWindow(window)
    return [near if name == "sliding_attention" else full for name in layer_types]


def mixers_of(layer_types: Sequence[str], n_layers: int, recurrent: str) -> list[str]:
    """The `layer_types` of a hybrid model in short: "attention", or the name of its `recurrent` layers.

    Raises `Problem` for an unknown one.
    """
    return short_names(
        layer_types,
        n_layers,
        {"full_attention": "attention", "attention": "attention", "linear_attention": recurrent, "mamba": recurrent},
    )


def short_names(layer_types: Sequence[str], n_layers: int, short: Mapping[str, str]) -> list[str]:
    """The architecture's names for the `layer_types`. Raises `Problem` for an unknown one."""
    check_layer_types(layer_types, n_layers, short)
    return [short[name] for name in layer_types]


def expert_layers(n_layers: int, n_experts: int, step: int, dense: Collection[int]) -> list[bool]:
    """Whether each layer has experts: every `step`-th except those listed as dense; none without an expert."""
    return [n_experts > 0 and i not in dense and (i + 1) % step == 0 for i in range(n_layers)]


def listed(value: object) -> list[Any] | None:
    """The value of a raw key if it is a list."""
    return cast("list[Any]", value) if isinstance(value, list) else None


def tabled(value: object) -> Mapping[str, Any] | None:
    """The value of a raw key if it is a table."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else None


def sparse_layers(mlp_layer_types: Sequence[str], n_layers: int) -> list[bool]:
    """Whether each layer has experts, from the words dense and sparse. Raises `Problem` for others."""
    must_name("mlp_layer_types", mlp_layer_types, ("dense", "sparse"), n_layers)
    return [word == "sparse" for word in mlp_layer_types]


def must_name(name: str, entries: Sequence[str], known: Sequence[str], n_layers: int) -> None:
    """Raise `Problem` unless a list has one of the known words for each layer."""
    if len(entries) != n_layers or not set(known).issuperset(entries):
        words = f": {', '.join(sorted(set(entries)))}" if entries else ""
        mend = f"give {' or '.join(known)} for each of the {int(n_layers)} layers"
        raise Problem(f"{name} has {len(entries)} entries{words}", mend)


def dense_first(dense: int, n_layers: int) -> list[str]:
    """The `mlp_layer_types` of a model whose first layers have no experts."""
    return ["dense" if i < dense else "sparse" for i in range(n_layers)]


def check_layer_types(layer_types: Sequence[str], n_layers: int, known: Collection[str]) -> None:
    """Raise `Problem` unless there is one of the known words for each layer."""
    if len(layer_types) != n_layers:
        raise Problem(
            f"layer_types has {len(layer_types)} entries, and num_hidden_layers = {int(n_layers)}",
            "correct one of the two",
        )
    for name in layer_types:
        if name not in known:
            raise Problem(f"layer_types has {shorten(name)}", nearest(name, known, f"known ones: {', '.join(known)}"))


def fold_table(raw: Raw, name: str) -> Raw:
    """An inner table's keys with its name in front, `attn_config.clip_qkv`; such a key next to the table takes
    precedence."""
    table = raw.pop(name, None)
    if table is not None and not isinstance(table, Mapping):
        raise Problem(f"{name} = {shorten(table)}: expected a table of keys", "correct the value")
    inside = cast("Raw", table or {})
    left_out = {"model_type", *COMMON_IGNORED}
    return {f"{name}.{k}": v for k, v in inside.items() if k not in left_out} | raw


def take_table(raw: Raw, name: str) -> Raw:
    """Take a table of keys out of a config; empty if it has none. Raises `Problem` if it is not a table."""
    table: object = raw.pop(name, None) or {}
    if not isinstance(table, Mapping):
        raise Problem(f"{name} = {shorten(table)}: expected a table of keys", "correct the value")
    return dict(cast("Mapping[str, Any]", table))


def _value(name: str, raw: Mapping[str, Any]) -> str:
    """The value of a key in a config."""
    return f"= {shorten(raw[name])}" if name in raw else "is left out"
