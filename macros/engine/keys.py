"""The raw keys of a config.json: those of the language model, and how a list per layer is extended to another number of
layers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple, cast

from .architectures.config import BOTH_WAYS_CLASS, COMMON_IGNORED, MOST_LAYERS, listed
from .errors import Problem, shorten

# Tables of a language model's own keys whose names look like parts.
OWN_TABLES = frozenset(
    {
        "attn_config",
        "dflash_config",
        "eagle_config",
        "ffn_config",
        "init_config",
        "linear_attn_config",
        "per_layer_config",
        "sparse_attention_config",
        "sparse_config",
    }
)


# Likewise, depending on the type of the wrapper config.
OWN_OF_TYPE = {"blt": ("patcher_config", "encoder_config", "global_config", "decoder_config")}

# Tables of towers from which the text model also takes sizes.
OF_BOTH = {"idefics": ("vision_config", "perceiver_config")}

# Likewise for a table that contains a tower's keys.
AROUND_TOWER = {"t5gemma2": "encoder"}

# Top-level keys for the format of the weights, which the language model inherits.
FORMATS = "quantization_config", "dtype", "torch_dtype"

# Prefixes and suffixes of keys that hold a size or a count.
SIZES_BEGIN, SIZES_END = ("num_", "n_"), ("_size", "_dim", "_layers", "_experts")

# Wrappers whose text model attends to images bidirectionally, by type; within text, attention is causal.
OF_IMAGES = {"paligemma": ("num_image_tokens", "use_bidirectional_attention")}

# Wrappers whose head is their text model's: the text model's keys say whether it is tied. And those for which it is
# enough that the text model says so.
TIED_INSIDE = frozenset(
    """
    audioflamingo3 blip-2 instructblip instructblipvideo llama4 mllama musicflamingo nemo_speechlm nemotron_h_omni
    qwen2_audio vibevoice_asr voxtral
    """.split()
)
TIED_BY_EITHER = frozenset(
    """
    fast_vlm glm4v glm4v_moe glm_ocr hunyuan_vl llava llava_next_video llava_onevision minimax_m3_vl paddleocr_vl
    qwen2_5_vl qwen2_vl shieldgemma2 video_llama_3
    """.split()
)

# Wrappers whose head is untied by default. And those whose head transformers 5.24 ties by default, although files of
# models whose text model says nothing, or says that it is not tied, have a head.
APART_UNLESS_SAID = frozenset({"cohere_compass", "qianfan_ocr", "qwen2_5_omni_thinker", "qwen3_vl_moe"})
TIED_UNLESS_SAID = frozenset(
    """
    deepseek_vl deepseek_vl_hybrid glmasr got_ocr2 hyperclovax_vision_v2 internvl janus kimi_k25 lighton_ocr minicpm_ocr
    mistral3 ovis2 paligemma pp_chart2table
    """.split()
)

# Wrappers whose text model has an encoder: its tables are tied according to that model's keys, and the head according
# to the wrapper's.
OF_TWO_STACKS = frozenset({"florence2"})

# Wrappers whose head has sizes of its own next to the parts.
HEAD_OF_WHOLE = frozenset({"ovis2"})

# What transformers' classes for these wrappers put into the text model's table if it says nothing: other numbers than
# the defaults of the text model's own class.
DEFAULTS_OF_TEXT: dict[str, dict[str, object]] = {
    "voxtral": {
        "num_key_value_heads": 8,
        "head_dim": 128,
        "rms_norm_eps": 1e-5,
        "rope_theta": 100000000.0,
        "max_position_embeddings": 131072,
    },
    "voxtral_realtime": {
        "num_key_value_heads": 8,
        "head_dim": 128,
        "rms_norm_eps": 1e-5,
        "rope_theta": 1000000.0,
        "sliding_window": 8192,
        "max_position_embeddings": 131072,
    },
    "glmasr": {"num_key_value_heads": 4, "rms_norm_eps": 1e-5, "max_position_embeddings": 8192},
}

# The keys under which wrappers have the language model's config, in order of precedence; and the key of the
# text-generating part in a wrapper that also speaks.
TEXT_TABLES = "text_config", "llm_config", "language_config"
WRITER = "thinker_config"


# Wrappers of two models of arbitrary types: the tables of the text model and of the tower.
OF_TWO_MODELS = {"vision-encoder-decoder": ("decoder", "encoder")}

# The sides of an image and of a patch if a tower's table does not state them, for wrappers whose text model has to know
# how many vectors it attends to: by the type of the wrapper, or of its encoder if that may be any.
SIDES = {"vit": (224, 16), "deit": (224, 16), "donut-swin": (224, 4), "pp_formulanet": (512, 16)}

# Generation settings that transformers 4 also wrote into the table of each part.
DUMPED = frozenset(
    """
    begin_suppress_tokens cross_attention_hidden_size diversity_penalty encoder_no_repeat_ngram_size
    exponential_decay_length_penalty forced_bos_token_id forced_eos_token_id output_scores return_dict_in_generate
    sep_token_id suppress_tokens tf_legacy_loss tie_encoder_decoder use_bfloat16
    """.split()
)

# transformers' name for a model that is used as a decoder and attends to the encoder's output. transformers makes it
# attend if its table says so; the last two always do.
LOOKING = {
    "bert": "bert_decoder",
    "roberta": "roberta_decoder",
    "xlm-roberta": "roberta_decoder",
    "camembert": "roberta_decoder",
    "bert-generation": "bert_generation_decoder",
    "gpt2": "gpt2_decoder",
    "mbart": "mbart_decoder",
    "trocr": "trocr",
}
ALWAYS_LOOKING = frozenset({"mbart", "trocr"})


# Suffixes of types with bidirectional attention.
BOTH_WAYS = "_bidirec", "_bidirectional"


# Types that only the class distinguishes, because config.json files have one name for several types, or a special name
# for one.
TYPE_OF_CLASS = {
    ("bailing_hybrid", "BailingMoeV2_5ForCausalLM"): "bailing_moe_v2_5",
    ("gemma3_text", "Rnj1ForCausalLM"): "rnj1",
    ("step3p7", "Step3p7FlashForCausalLM"): "step3p5",  # flat, as in aiconfigurator: the text model only
    ("deepseek_ref", "DeepseekV4ForCausalLM"): "deepseek_v4",  # sgl-project/DeepSeek-V4-Flash-FP8, config.json
}


class Parts(NamedTuple):
    """For a config.json with several parts: the key of the part that is described, or None if its keys are at the top
    level; the keys of the other parts, each with its model type if it has one."""

    described: str | None
    left_out: tuple[tuple[str, str | None], ...]

    def __str__(self) -> str:
        described = self.described or "the language model’s own keys"
        left_out = (f"{key} ({model_type})" if model_type else key for key, model_type in self.left_out)
        return f"described: {described}; left out: {', '.join(left_out)}"


def language_part(raw: Mapping[str, Any]) -> tuple[Mapping[str, Any], Parts | None]:
    """The keys of the language model, and which parts it was found among: if a config has several (an image tower), the
    keys of `text_config`, or without one those next to the other parts. The wrapper's keys about tied tables take
    precedence over the part's; its keys about the format of weights apply if the part has none.
    """
    if (writer := _writer(raw)) is not None:
        keys, parts = language_part(writer)
        others = [(name, _model_type(part)) for name, part in raw.items() if _is_part(name, part) and name != WRITER]
        beside = [*[(f"{WRITER}.{name}", kind) for name, kind in (parts.left_out if parts else ())], *others]
        return keys, Parts(f"{WRITER}.{text_table(writer)}", tuple(beside))
    described = text_table(raw)
    own = (described, *OWN_OF_TYPE.get(str(raw.get("model_type")), ()))
    towers = OF_TWO_MODELS.get(str(raw.get("model_type")), ())[1:]
    left_out: dict[str, Mapping[str, Any]] = {
        name: part
        for name, part in raw.items()
        if (_is_part(name, part) or (name in towers and isinstance(part, Mapping))) and name not in own
    }
    around = AROUND_TOWER.get(str(raw.get("model_type")), "")
    inside: object = raw.get(around)
    if isinstance(inside, Mapping):
        part = cast("Mapping[str, Any]", inside).get("vision_config")
        left_out |= {f"{around}.vision_config": part} if isinstance(part, Mapping) else {}
    parts = Parts(described, tuple((name, _model_type(part)) for name, part in left_out.items())) if left_out else None
    if described is None:
        both_read = OF_BOTH.get(str(raw.get("model_type")), ())
        return {name: value for name, value in raw.items() if name in both_read or name not in left_out}, parts
    if str(raw.get("model_type")) in OF_TWO_MODELS and described != "text_config":
        return _beside_encoder(raw, raw[described]), parts
    of_images = OF_IMAGES.get(str(raw.get("model_type")), ())
    inner: Mapping[str, Any] = {name: value for name, value in raw[described].items() if name not in of_images}
    defaults = DEFAULTS_OF_TEXT.get(str(raw.get("model_type")), {})
    unsaid = {key: value for key, value in defaults.items() if key != "rope_theta" or "rope_parameters" not in inner}
    both = {"model_type": raw.get("model_type"), **unsaid, **inner}
    tied = _tied(raw, inner)
    return {**both, **image_vectors(raw), **tied, **_formats(raw, inner)}, parts


def _decoder(table: Mapping[str, Any]) -> Mapping[str, Any]:
    """The keys of a decoder that attends to an encoder's output, under its type. Raises `Problem` for another."""
    kind = table.get("model_type")
    if not isinstance(kind, str) or kind not in LOOKING:
        raise Problem(
            f"decoder.model_type = {shorten(kind)}: not known as a decoder of an encoder's output",
            f"known are {', '.join(LOOKING)}",
        )
    if kind not in ALWAYS_LOOKING and not table.get("add_cross_attention"):
        raise Problem(
            "decoder.add_cross_attention is not true",
            "set it: without it, the decoder sees nothing of the encoder's output",
        )
    dropped = {"architectures", *DUMPED} - {"cross_attention_hidden_size"}  # of the model that its weights came from
    keys = {name: value for name, value in table.items() if name not in dropped}
    return {**keys, "model_type": LOOKING[kind]}


def _beside_encoder(raw: Mapping[str, Any], table: Mapping[str, Any]) -> Mapping[str, Any]:
    """The keys of the decoder of an encoder-decoder model, with the number of vectors that it attends to. Raises
    `Problem` if that number is not known."""
    encoder: object = raw.get("encoder")
    if not isinstance(encoder, Mapping):
        raise Problem(f"encoder = {shorten(encoder)}: expected a table", "write its keys below it")
    keys = {**_formats(raw, table), **_decoder(table), **image_vectors(raw)}
    if keys.get("num_image_tokens") is None:
        kind = cast("Mapping[str, Any]", encoder).get("model_type")
        raise Problem(
            f"encoder.model_type = {shorten(kind)}: how many vectors it makes of an image is not known",
            f"known are {', '.join(list(SIDES)[:3])}, with their sizes; or add decoder.num_image_tokens",
        )
    return keys


def _formats(raw: Mapping[str, Any], inner: Mapping[str, Any]) -> dict[str, Any]:
    """The weight format of the wrapper, if the part states none."""
    return {name: raw[name] for name in FORMATS if raw.get(name) is not None and inner.get(name) is None}


def image_vectors(raw: Mapping[str, Any]) -> dict[str, int]:
    """The number of image vectors that a text model attends to, from the encoder's sizes; empty if those do not yield a
    possible one."""
    whole = str(raw.get("model_type"))
    part: object = raw.get("encoder" if whole in OF_TWO_MODELS else "vision_config")
    if not isinstance(part, Mapping):
        return {}
    table = cast("Mapping[str, Any]", part)
    kind = table.get("model_type")
    name = whole if whole not in OF_TWO_MODELS else kind
    if not isinstance(name, str) or name not in SIDES:
        return {}
    image, patch = (_sides(table.get(key, default)) for key, default in zip(("image_size", "patch_size"), SIDES[name]))
    depths = table.get("depths", [2, 2, 6, 2])
    if image is None or patch is None or not isinstance(depths, list):
        return {}
    return {"num_image_tokens": n} if (n := _vectors(name, image, patch, len(cast("list[Any]", depths)))) else {}


def _vectors(kind: str, image: tuple[int, int], patch: tuple[int, int], stages: int) -> int:
    """The number of vectors that an encoder turns an image into: one per patch, or per block of them, plus extra
    ones."""
    if kind in ("vit", "deit"):
        return (image[0] // patch[0]) * (image[1] // patch[1]) + (1 if kind == "vit" else 2)
    halvings = 2 if kind == "pp_formulanet" else stages - 1
    rows, columns = (-(-size // side) for size, side in zip(image, patch))
    for _ in range(min(halvings, 32)):
        rows, columns = -(-rows // 2), -(-columns // 2)
    return rows * columns


def _sides(value: object) -> tuple[int, int] | None:
    """A pair of sides, from a pair or from one number for both; None for anything else."""
    both = [value, value] if type(value) is int else listed(value)
    if both is None or len(both) != 2 or not all(type(side) is int and side > 0 for side in both):
        return None
    return both[0], both[1]


def named_keys(raw: Mapping[str, Any], known: Collection[str]) -> Mapping[str, Any]:
    """The keys with `is_causal` = false if the name of the class or of the type says that attention is bidirectional,
    and with the type's name without that part; or with the type that the class distinguishes."""
    model_type, classes = raw.get("model_type"), listed(raw.get("architectures"))
    one: object = classes[0] if classes else None
    types = [model_type.removesuffix(end) for end in BOTH_WAYS] if isinstance(model_type, str) else []
    plain = next((name for name in types if name != model_type and name in known), None)
    if isinstance(model_type, str) and isinstance(one, str) and (model_type, one) in TYPE_OF_CLASS:
        return {**raw, "model_type": TYPE_OF_CLASS[model_type, one]}
    if plain is None and not (isinstance(one, str) and BOTH_WAYS_CLASS in one):
        return raw
    return {**raw, "model_type": model_type if plain is None else plain, "is_causal": False}


def _tied(raw: Mapping[str, Any], inner: Mapping[str, Any]) -> dict[str, Any]:
    """What a wrapper says about its head, if it takes precedence over the text model. Raises `Problem` where both have
    to agree but do not."""
    said, whole = raw.get("tie_word_embeddings"), raw.get("model_type")
    said = False if said is None and "tie_word_embeddings" in raw else said  # null, as opposed to missing
    both = [keys.get("tie_word_embeddings") is not False for keys in (raw, inner)]
    if whole in OF_TWO_STACKS and both[0] != both[1]:
        raise Problem(
            f"tie_word_embeddings is {both[0]} for the whole and {both[1]} in its text model",
            "give both the same: the stacks of the text model share a table with the head, or nothing does",
        )
    for name in ("hidden_size", "vocab_size") if whole in HEAD_OF_WHOLE and said is False else ():
        if raw.get(name) is not None and inner.get(name) is not None and raw[name] != inner[name]:
            raise Problem(
                f"{name} = {shorten(raw[name])} for the head and {shorten(inner[name])} in the text model",
                "give both the same",
            )
    if said is None and whole in APART_UNLESS_SAID:
        return {"tie_word_embeddings": False}
    if said is None or whole in TIED_INSIDE or (whole in TIED_BY_EITHER and not said):
        return {}
    return {"tie_word_embeddings": said}


def head_read_otherwise(whole: Mapping[str, Any], config: object) -> tuple[str, ...]:
    """A line if transformers ties the head of a multimodal model that does not mention it, and the head is counted."""
    kind = whole.get("model_type")
    if getattr(config, "tied", True) or whole.get("tie_word_embeddings") is not None or kind not in TIED_UNLESS_SAID:
        return ()
    return (f"tie_word_embeddings is missing beside the parts: in that case transformers 5.24 ties the head of {kind}",)


def parts_read_otherwise(whole: Mapping[str, Any], there: Mapping[str, Any]) -> tuple[str, ...]:
    """A line if transformers reads a text model's keys only in a table that the whole config lacks."""
    kind, classes = str(whole.get("model_type")), listed(whole.get("architectures"))
    if classes and (kind, classes[0]) in TYPE_OF_CLASS:
        return ()
    if text_table(whole) or kind in there["flat"] or kind not in {*there["text_types"], *there["only_text_types"]}:
        return ()
    return (f"text_config is missing: without it, transformers 5.24 takes the defaults of its class for {kind}",)


def text_table(raw: Mapping[str, Any]) -> str | None:
    """The key of the table with a language model's keys; None if they are next to the other parts."""
    writer = _writer(raw)
    tables = (*TEXT_TABLES, *OF_TWO_MODELS.get(str(raw.get("model_type")), ())[:1])
    return next((name for name in tables if isinstance((writer or raw).get(name), Mapping)), None)


def _writer(raw: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The text-generating part of a model that also speaks."""
    part: object = raw.get(WRITER)
    if not isinstance(part, Mapping):
        return None
    table = cast("Mapping[str, Any]", part)
    return table if isinstance(table.get("text_config"), Mapping) else None


def sizes_among(names: Iterable[str], raw: Mapping[str, Any]) -> list[str]:
    """The keys that have a value and whose names mean a size or a count."""
    return [name for name in names if _names_a_size(name) and raw.get(name) is not None]


def _names_a_size(name: str) -> bool:
    return any(name.startswith(begin) for begin in SIZES_BEGIN) or any(name.endswith(end) for end in SIZES_END)


def _is_part(name: str, value: object) -> bool:
    """Whether a key of a config.json holds the config of a part."""
    return isinstance(value, Mapping) and name.endswith("_config") and name not in COMMON_IGNORED | OWN_TABLES


def _model_type(part: Mapping[str, Any]) -> str | None:
    name = part.get("model_type")
    return name if isinstance(name, str) and name else None


def continued(value: Any, before: int, layers: int) -> Any:
    """A list with an entry for each layer, extended to another number of layers: its shortest pattern continues; a list
    without a pattern, and any other value, stays unchanged."""
    if not _is_sequence(value) or len(value) != before or not 0 < layers <= MOST_LAYERS:
        return value
    for period in range(1, before // 2 + 1):
        if all(value[i] == value[i % period] for i in range(before)):
            return (value[:period] * (layers // period + 1))[:layers]
    return value


def _is_sequence(value: object) -> bool:
    return isinstance(value, list | str)
