"""Towers: the parts of a multimodal model that turn an image or a sound into vectors for its text model.

A tower is a forward pass like that of a text model (`architectures`): run on shapes it leaves a trace, on arrays it
gives the vectors. A model's config.json names it by the key of its table, such as `vision_config`, and by the type of
the whole. It is the encoder with everything up to the text model's width: merger, pooling, projector.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, ClassVar, NamedTuple, Protocol, cast

import numpy as np
from msgspec import Struct

from ..architectures.config import Config, config, keys_of
from ..array import arrays_in, stand_in
from ..errors import Problem, shorten
from ..interface import Array, KVCache, Weights
from ..keys import AROUND_TOWER, text_table
from ..trace import Trace
from ..weights import ShapeCache, ShapeWeights

# Wholes with the vision tower of Qwen3-VL.
WITH_QWEN3S = "qwen3_vl", "qwen3_vl_moe", "qwen3_5", "qwen3_5_moe", "qwen4_exp", "cohere_compass", "cosmos3_omni"

# The module of each tower, by the model type of the whole and the key of the tower's table.
MODULES: dict[tuple[str, str], str] = {
    **dict.fromkeys(
        ((whole, "vision_config") for whole in WITH_QWEN3S),
        "qwen3_vl",
    ),
    ("exaone4_5", "vision_config"): "exaone4_5",
    ("qwen2_vl", "vision_config"): "qwen2_vl",
    ("qwen2_5_vl", "vision_config"): "qwen2_5_vl",
    ("qwen2_5_omni_thinker", "vision_config"): "qwen2_5_omni",
    ("qwen3_omni_moe_thinker", "vision_config"): "qwen3_omni",
    ("qwen2_5_omni_thinker", "audio_config"): "qwen2_5_omni_audio",
    ("qwen3_omni_moe_thinker", "audio_config"): "qwen3_omni_audio",
    ("llava", "vision_config"): "clip",
    **dict.fromkeys(((whole, "vision_config") for whole in ("llava_next", "llava_next_video")), "llava_next"),
    ("llava_onevision", "vision_config"): "llava_onevision",
    ("vipllava", "vision_config"): "vipllava",
    ("aria", "vision_config"): "aria",
    ("deepseek_vl", "vision_config"): "deepseek_vl",
    ("janus", "vision_config"): "janus",
    ("ovis2", "vision_config"): "ovis2",
    ("video_llama_3", "vision_config"): "video_llama_3",
    ("lfm2_vl", "vision_config"): "lfm2_vl",
    ("cosmos3_edge", "vision_config"): "cosmos3_edge",
    **dict.fromkeys(((whole, "vision_config") for whole in ("got_ocr2", "pp_chart2table")), "got_ocr2"),
    ("deepseek_ocr2", "vision_config"): "deepseek_ocr2",
    ("hyperclovax_vision_v2", "vision_config"): "hyperclovax_vision_v2",
    **dict.fromkeys(((whole, "vision_config") for whole in ("idefics3", "smolvlm")), "idefics3"),
    ("paligemma", "vision_config"): "paligemma",
    ("cohere2_vision", "vision_config"): "cohere2_vision",
    ("aya_vision", "vision_config"): "aya_vision",
    ("paddleocr_vl", "vision_config"): "paddleocr_vl",
    ("hunyuan_vl", "vision_config"): "hunyuan_vl",
    ("ernie4_5_vl_moe", "vision_config"): "ernie4_5_vl",
    ("minimax_m3_vl", "vision_config"): "minimax_m3_vision",
    ("lighton_ocr", "vision_config"): "lighton_ocr",
    **dict.fromkeys(((whole, "vision_config") for whole in ("mistral3", "mistral_large4")), "pixtral"),
    **dict.fromkeys(((whole, "vision_config") for whole in ("glm4v", "glm4v_moe", "glm46v", "glmga")), "glm4v"),
    ("glm5_next", "vision_config"): "glm5_next",
    ("glm_ocr", "vision_config"): "glm_ocr",
    ("internvl", "vision_config"): "internvl",
    ("qianfan_ocr", "vision_config"): "qianfan_ocr",
    ("gemma3", "vision_config"): "siglip",
    ("llama4", "vision_config"): "llama4",
    ("mllama", "vision_config"): "mllama",
    ("gemma4", "vision_config"): "gemma4_vision",
    ("diffusion_gemma", "vision_config"): "diffusion_gemma",
    ("gemma4", "audio_config"): "gemma4_audio",
    ("qwen2_audio", "audio_config"): "whisper",
    ("voxtral", "audio_config"): "voxtral",
    ("audioflamingo3", "audio_config"): "audioflamingo3",
    ("qwen3_asr", "audio_config"): "qwen3_asr",
    ("glmasr", "audio_config"): "glmasr",
    ("granite_speech", "encoder_config"): "granite_speech",
    ("granite_speech_plus", "encoder_config"): "granite_speech_plus",
    ("musicflamingo", "audio_config"): "musicflamingo",
    ("vibevoice_asr", "acoustic_tokenizer_encoder_config"): "vibevoice_asr",
    ("fun_asr_nano", "audio_config"): "fun_asr_nano",
    ("moss_transcribe_diarize", "audio_config"): "moss_transcribe_diarize",
    ("modernvbert", "vision_config"): "modernvbert",
    ("voxtral_realtime", "audio_config"): "voxtral_realtime",
    ("kimi_k25", "vision_config"): "kimi_k25",
    ("kimi_k3", "vision_config"): "kimi_k3",
    ("molmo2", "vision_config"): "molmo2",
    ("shieldgemma2", "vision_config"): "siglip",
    ("idefics2", "vision_config"): "idefics2",
    ("idefics", "vision_config"): "idefics",
    ("evolla", "protein_encoder_config"): "evolla",
    ("granite_docling", "vision_config"): "granite_docling",
    ("video_llava", "vision_config"): "video_llava",
    ("lfm3_vl", "vision_config"): "lfm3_vl",
    ("blip-2", "vision_config"): "blip_2",
    **dict.fromkeys(((whole, "vision_config") for whole in ("instructblip", "instructblipvideo")), "instructblip"),
    ("granite4_vision", "vision_config"): "granite4_vision",
    ("t5gemma2", "vision_config"): "t5gemma2",
    **dict.fromkeys(
        ((whole, "vision_config") for whole in ("step3p7", "step5_vl", "step3p5v", "step_robotics")), "step3p7"
    ),
    ("muse_glimmer", "vision_config"): "muse_glimmer",
    ("minicpm_ocr", "vision_config"): "minicpm_ocr",
    **dict.fromkeys(((whole, "vision_config") for whole in ("minicpmv4_6", "minicpmv4_7")), "minicpmv4_6"),
    ("gemma4_unified", "vision_config"): "gemma4_unified_vision",
    ("gemma4_unified", "audio_config"): "gemma4_unified_audio",
    ("blip", "vision_config"): "blip",
    ("git", "vision_config"): "git",
    ("kosmos-2", "vision_config"): "kosmos_2",
    ("kosmos-2.5", "vision_config"): "kosmos_2_5",
    ("pix2struct", "vision_config"): "pix2struct",
    ("florence2", "vision_config"): "florence2",
    ("phi4_multimodal", "vision_config"): "phi4_vision",
    ("phi4_multimodal", "audio_config"): "phi4_audio",
    ("fuyu", "vision_config"): "fuyu",
    ("chameleon", "vq_config"): "chameleon",
    ("emu3", "vq_config"): "emu3",
    ("unlimited_ocr", "vision_config"): "unlimited_ocr",
    ("muse_spark", "vision_config"): "muse_spark",
    ("muse_spark", "audio_config"): "muse_spark_audio",
    ("nemotron_h_omni", "vision_config"): "nemotron_h_omni",
    **dict.fromkeys((("nemotron_h_omni", part) for part in ("audio_config", "sound_config")), "parakeet"),
    ("deepseek_vl_hybrid", "vision_config"): "deepseek_vl_hybrid",
    ("inkling_mm_model", "vision_config"): "inkling",
    ("inkling_mm_model", "audio_config"): "inkling_audio",
    ("inkling2", "vision_config"): "inkling2",
    ("gemma3n", "vision_config"): "gemma3n_vision",
    ("gemma3n", "audio_config"): "gemma3n_audio",
    ("dots3_note", "vision_config"): "dots3_note",
    ("perception_lm", "vision_config"): "perception_lm",
    ("fast_vlm", "vision_config"): "fast_vlm",
    ("pp_formulanet", "vision_config"): "pp_formulanet",
    ("dots3_note", "audio_config"): "dots3_note_audio",
    ("udop", "vision_config"): "udop",
    ("seamless_m4t", "audio_config"): "seamless_m4t",
    ("seamless_m4t_v2", "audio_config"): "seamless_m4t_v2",
}

# The same where a whole takes encoders of several types: by that type.
BY_TYPE: dict[tuple[str, str], dict[str, str]] = {
    ("vision-encoder-decoder", "encoder"): {"vit": "vit", "deit": "deit", "donut-swin": "donut_swin"},
}

# Wholes among whose own keys a tower's stand: what its table would be called.
WITHOUT_TABLE = {
    "fuyu": "vision_config",
    "udop": "vision_config",
    "seamless_m4t": "audio_config",
    "seamless_m4t_v2": "audio_config",
}

# Where a whole takes encoders of several types: those that its module has. Without a type it is one of these.
INNER: dict[tuple[str, str], str] = {
    **dict.fromkeys(
        ((whole, "vision_config") for whole in ("llava", "llava_next", "llava_next_video", "vipllava", "video_llava")),
        "clip_vision_model",
    ),
    ("paligemma", "vision_config"): "siglip_vision_model",
    **dict.fromkeys(
        ((whole, "vision_config") for whole in ("cohere2_vision", "aya_vision", "llava_onevision", "deepseek_vl")),
        "siglip_vision_model",
    ),
    ("deepseek_vl_hybrid", "vision_config"): "siglip_vision_model",
    ("aria", "vision_config"): "idefics3_vision",
    ("lfm2_vl", "vision_config"): "siglip2_vision_model",
    ("lighton_ocr", "vision_config"): "pixtral",
    ("mistral3", "vision_config"): "pixtral",
    ("mistral_large4", "vision_config"): "pixtral",
    ("gemma3", "vision_config"): "siglip_vision_model",
    ("shieldgemma2", "vision_config"): "siglip_vision_model",
    ("granite4_vision", "vision_config"): "siglip_vision_model",
    ("t5gemma2", "vision_config"): "siglip_vision_model",
}

# Types that transformers lists as for images and text, and that read text alone.
OF_TEXT_ALONE = frozenset({"mistral4"})

# What a tower's config takes from the text model's, such as its width.
OF_TEXT = "text_config."
TEXT_WIDTH = "text_config.hidden_size"


class Grid(Struct, frozen=True):
    """The input of a tower: patches in rows and columns, or moments of sound, one column of them.

    `count` such pictures or pieces are read one by one: the tiles of an image, the chunks of a sound.
    """

    rows: int
    columns: int = 1
    count: int = 1


@config
class TowerConfig(Config):
    """The base of the towers' configs: what they read, and how an image or a sound becomes patches or moments."""

    reads: ClassVar[str] = "image"  # or "sound", "protein"
    beside: ClassVar[tuple[str, ...]] = ()  # further tables of the whole that are of this tower
    # Keys of the whole that are of this tower, where the text model's stand there, too; elsewhere all that it knows.
    among_text: ClassVar[frozenset[str]] = frozenset()
    of_whole: ClassVar[frozenset[str]] = frozenset()  # keys of which the whole's go before this table's

    def grid(self, height: int, width: int) -> Grid:
        """The patches of an image of so many pixels, as the processor resizes it."""
        raise NotImplementedError

    def grids(self, height: int, width: int) -> list[Grid]:
        """The same where its tiles differ from the whole."""
        return [self.grid(height, width)]

    def moments(self, seconds: float) -> Grid:
        """The moments of a sound."""
        raise NotImplementedError

    def residues(self, length: int) -> Grid:
        """The tokens of a protein of so many amino acids."""
        raise NotImplementedError

    def image_tokens(self, height: int, width: int, tokens: int) -> int:
        """The tokens that an image puts into the text, of those that its tiles give."""
        return tokens

    def sound_tokens(self, seconds: float, tokens: int) -> int:
        """The tokens that a sound puts into the text, of those that its pieces give."""
        return tokens

    def declared(self, grid: Grid, run: Trace) -> Grid:
        """The grid with its sizes as symbols of a trace."""
        return Grid(run.declare("n_rows", grid.rows), run.declare("n_columns", grid.columns), grid.count)

    def input_shape(self, grid: Grid) -> tuple[int, ...]:
        """The shape of what the forward pass gets for one picture or piece."""
        raise NotImplementedError


def theta_of(rope: Mapping[str, Any], usual: float) -> float:
    """The base of a rotary embedding that a table of keys states. Raises `Problem` unless it is a positive number."""
    theta = rope.get("rope_theta", usual)
    if isinstance(theta, bool) or not isinstance(theta, int | float) or not 0 < theta < 1e18:
        raise Problem(f"rope_parameters.rope_theta = {shorten(theta)}: expected a positive number", "correct the value")
    return float(theta)


class Read(Protocol):
    """A tower's forward pass: [P …] -> the vectors for the text, [M D], and any for later layers of it."""

    def __call__(self, w: Weights, x: Array, grid: Grid, c: Any, cache: KVCache) -> list[Array]: ...


class Tower(NamedTuple):
    """A tower: its module's name, its config class, its forward pass, the first line of its module's docstring."""

    name: str
    config: type[TowerConfig]
    forward: Read
    doc: str


def table_around(whole: Mapping[str, Any], name: str) -> tuple[Mapping[str, Any], str]:
    """The table that has a tower's, of a name such as `thinker_config.vision_config`, and its key in that table."""
    around, _, part = name.rpartition(".")
    if not around:
        return (whole if part in whole else {**whole, part: {}}), part
    table = cast("Mapping[str, Any]", whole[around])
    own = {"model_type": whole.get("model_type")} if around in AROUND_TOWER.values() else {}
    return {**table, **own}, part


def find(whole: Mapping[str, Any], part: str) -> Tower | None:
    """The tower in this table of a model; None if there is none here."""
    place = str(whole.get("model_type")), part
    name, inner = MODULES.get(place), whole[part].get("model_type")
    if place in BY_TYPE:
        name = BY_TYPE[place].get(inner) if isinstance(inner, str) else None
    if name is None or (place in INNER and inner not in (None, INNER[place])):
        return None
    return of_module(name)


def modules() -> dict[str, list[tuple[str, str]]]:
    """The module of each tower, with the types of the wholes that have it, and the key of its table in each."""
    found: dict[str, list[tuple[str, str]]] = {}
    for place, name in MODULES.items():
        found.setdefault(name, []).append(place)
    for place, names in BY_TYPE.items():
        for name in names.values():
            found.setdefault(name, []).append(place)
    return found


def has_tower(model_type: str) -> bool:
    """Whether a tower of this type of the whole is known."""
    return any(whole == model_type for whole, _ in (*MODULES, *BY_TYPE))


def of_module(name: str) -> Tower:
    """The tower of a module."""
    module = import_module(f"{__name__}.{name}")
    return Tower(name, module.CONFIG, module.forward, (module.__doc__ or "").partition("\n")[0])


def read_config(tower: Tower, whole: Mapping[str, Any], part: str) -> tuple[TowerConfig, list[str]]:
    """The config of a tower from the keys of a whole config.json, and the keys that it does not know."""
    known = keys_of(tower.config)
    inner = cast("Mapping[str, Any]", whole[part])
    table = text_table(whole)
    text = cast("Mapping[str, Any]", whole[table] if table else whole)
    outside = known if table else tower.config.among_text
    before = tower.config.of_whole
    raw = {name: value for name, value in whole.items() if name in outside and (name in before or name not in inner)}
    of_text = [name for name in known if name.startswith(OF_TEXT)]
    raw |= {name: text[name.removeprefix(OF_TEXT)] for name in of_text if name.removeprefix(OF_TEXT) in text}
    for table in tower.config.beside:
        said = cast("Mapping[str, Any]", whole.get(table) or {})
        raw |= {f"{table}.{name}": value for name, value in said.items() if f"{table}.{name}" in known}
    return tower.config.read(
        {**raw, **{name: value for name, value in inner.items() if name not in before & raw.keys()}}
    )


def trace(tower: Tower, c: TowerConfig, grid: Grid) -> Trace:
    """Run on shapes: one picture or piece of the grid."""
    run = Trace()
    run.symbols |= c.symbols
    grid = c.declared(grid, run)
    x = run.input(c.input_shape(grid), np.float32, c.reads)
    read = tower.forward(ShapeWeights(run), stand_in(x), grid, c, ShapeCache(run, 0, 0))
    run.root.inputs, run.root.outputs = [x], arrays_in(read)
    return run
