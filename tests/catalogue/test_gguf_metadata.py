"""The metadata that llama.cpp's converter writes, read back into configs (tests/reference/gguf_headers.py)."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from macros.catalogue import presets
from macros.catalogue.gguf_config import Reading, config_of
from macros.catalogue.gguf_header import Gguf, Placed, Value, Values
from macros.catalogue.gguf_types_of import likeliest, names, types_of
from macros.engine.errors import Problem

TESTS = Path(__file__).parent.parent
RECORD = json.loads((TESTS / "golden" / "gguf_headers.json").read_bytes())
CONFIGS = json.loads((TESTS / "reference" / "gguf_configs.json").read_bytes())
# Whose metadata and tensors do not give every size: a line says which tensors differ, or what is missing.
PARTLY = frozenset(
    """
    bamba camembert chatglm deepseek-v4-flash eurobert gemma-4-26b-a4b gemma-4-e2b gemma3n gemma4_unified glm5_next_text
    granitemoe_swa hy_v4 laguna-xs-2.1 ling-3.0-flash mimo_v2 minimax_m1 minimax_m3 minimax_text_01
    nemotron-3-nano-30b-a3b nemotron-nas qwen4_exp_text roberta step3p5 unlimited_ocr_text xlm-roberta
    """.split()
)
WINDOWLESS = frozenset({"starcoder2-3b"})  # its file does not state the window


def listed(value) -> Value:
    if not isinstance(value, list):
        return value
    kind, form = (7, "?") if value and isinstance(value[0], bool) else (12, "d") if 0.5 in value else (11, "q")
    if any(isinstance(one, str) for one in value):
        return Values(b"", 8, 0, 0)
    kind, form = (12, "d") if any(isinstance(one, float) for one in value) else (kind, form)
    return Values(struct.pack(f"<{len(value)}{form}", *value), kind, len(value), 0)


def converted(slug: str) -> tuple[presets.Model, Gguf]:
    """A model, and the file that llama.cpp makes of it: our list of tensors, which test_gguf holds against its own."""
    ours = presets.make(slug, CONFIGS[slug]) if slug in CONFIGS else presets.model(slug)
    tensors = {
        tensor.named(layer): Placed("F16", tensor.shape, 0, Path("x.gguf"), 0)
        for tensor in ours.counts.formats.gguf.tensors
        for layer in tensor.layers or (None,)
    }
    said = {key: listed(value) for key, value in RECORD[slug]["keys"].items()}
    return ours, Gguf(Path("x.gguf"), {"general.architecture": RECORD[slug]["architecture"], **said}, tensors, 1)


@pytest.mark.parametrize("slug", RECORD)
def test_the_model_is_read_back(slug):
    ours, file = converted(slug)
    try:
        made = presets.make("x", config_of(file, likeliest(file.architecture)))
    except Problem:
        assert slug in PARTLY
        return
    same = made.counts.total == ours.counts.total and made.counts.cache_bytes(4096) == ours.counts.cache_bytes(4096)
    assert same == (slug not in PARTLY), f"{slug} is read as {made.model_type}"
    if same and slug not in WINDOWLESS:
        assert made.counts.cache_bytes(131072) == ours.counts.cache_bytes(131072)
        assert made.counts.decode_flops(4096) == ours.counts.decode_flops(4096)


@pytest.mark.parametrize("model_type", ["qwen2", "qwen3"])
def test_the_type_of_the_architectures_name_needs_no_other(model_type):
    """Looking up the others reads two hundred modules, which takes as long as the rest of `describe`."""

    def types():
        yield model_type
        pytest.fail("others are looked up")

    slug = {"qwen2": "qwen2.5-7b", "qwen3": "qwen3-8b"}[model_type]
    ours = presets.model(slug)
    tensors = {
        tensor.named(layer): Placed("F16", tensor.shape, 0, Path("x.gguf"), 0)
        for tensor in ours.counts.formats.gguf.tensors
        for layer in tensor.layers or (None,)
    }
    sizes = {"embedding_length": "hidden_size", "block_count": "num_hidden_layers"}
    sizes |= {"feed_forward_length": "intermediate_size", "attention.head_count": "num_attention_heads"}
    sizes |= {"attention.head_count_kv": "num_key_value_heads"}
    said: dict[str, Value] = {f"{model_type}.{key}": ours.raw[name] for key, name in sizes.items()}
    file = Gguf(Path("x.gguf"), {"general.architecture": model_type, **said}, tensors, 1)
    assert presets.make("x", config_of(file, types())).counts.total == ours.counts.total


def test_the_likeliest_types_are_all_types_and_registered():
    """`llama4` is read as `llama4_text`: a browser has the registered name alone."""
    for name in names():
        types = list(likeliest(name))
        assert sorted(types) == sorted(types_of(name)), name
    assert list(likeliest("llama4")) == ["llama4_text"]


def test_the_record_has_most_architectures():
    assert len(RECORD) >= 140 and len({said["architecture"] for said in RECORD.values()}) >= 80
    assert PARTLY <= RECORD.keys()


def read_as(model_type: str, **said: Value) -> dict[str, Any]:
    """The keys of a config that a file of a type states, dots in names as two underscores."""
    metadata = {f"x.{key.replace('__', '.')}": value for key, value in said.items()}
    return Reading(Gguf(Path("x.gguf"), {"general.architecture": "x", **metadata}, {}, 1), model_type).raw()


def test_numbers_that_no_key_states():
    """Gemma's 27-billion models divide the scores by the query width per head; YaRN's factor of the scores stands ten
    times smaller in a file; RoBERTa's table has two rows before the first position."""
    heads = {"attention__head_count": 32, "attention__key_length": 128}
    for layers, width, divisor in ((46, 4608, 144), (62, 5376, 168), (42, 4608, 128), (48, 5376, 128)):
        for model_type in ("gemma2", "gemma3_text"):
            raw = read_as(model_type, embedding_length=width, block_count=layers, **heads)
            assert raw["query_pre_attn_scalar"] == divisor
    yarn = {"rope__scaling__type": "yarn", "rope__scaling__factor": 40.0, "rope__freq_base": 1e4}
    said = read_as("deepseek_v2", rope__scaling__yarn_log_multiplier=0.0707, **yarn)["rope_parameters"]
    assert said["mscale"] == said["mscale_all_dim"] == 0.707 and said["factor"] == 40
    assert "mscale" not in read_as("deepseek_v2", **yarn)["rope_parameters"]
    assert read_as("roberta", context_length=512)["max_position_embeddings"] == 514
    assert read_as("bert", context_length=512)["max_position_embeddings"] == 512
