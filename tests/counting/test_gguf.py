"""GGUF files tensor by tensor, against what llama.cpp's converter and quantizer make of the same models."""

from __future__ import annotations

import json
import tomllib

import pytest
from reference import golden
from reference.gguf import CONFIGS, FILE, OF_OTHERS, spelled
from reference.gguf_classes import FILE as LLAMA_CPP

from macros.catalogue import presets
from macros.counting.costs import of as costs_of
from macros.counting.formats import GGUF, format_meant
from macros.counting.gguf import GgufFile, Stored
from macros.data import weights
from macros.engine.architectures import architectures, find
from macros.engine.class_names import class_names
from macros.engine.dims import Dim
from macros.engine.errors import Problem
from macros.engine.facts import NO_CLASS, UNREAD
from macros.engine.files import PACKAGE
from macros.engine.tensors import Weight

GOLDEN = {path.stem: json.loads(path.read_bytes()) for path in (FILE, OF_OTHERS)}


def file_of(slug: str, raw: dict | None = None) -> GgufFile:
    model = presets.make(slug, raw) if raw else presets.model(slug)
    counts = model.counts
    return GgufFile((*counts.weights, *counts.buffers), model.architecture.gguf, model.model_type, model.trace.symbols)


def types_in(gguf: GgufFile, format: str) -> dict[str, str]:
    """The types by tensor, as the golden files spell them."""
    found: dict[str, list[Stored]] = {}
    for stored in gguf.stored(format):
        found.setdefault(stored.tensor.name, []).append(stored)
    return {name: which[0].type if len(which) == 1 else spelled(by_type(which)) for name, which in found.items()}


def by_type(which: list[Stored]) -> dict[str, list[int]]:
    layers: dict[str, list[int]] = {}
    for stored in which:
        layers.setdefault(stored.type, []).extend(stored.layers or ())
    return layers


@pytest.mark.parametrize(("file", "slug"), [(stem, slug) for stem, made in GOLDEN.items() for slug in made])
def test_each_tensor_has_the_type_that_llama_cpp_gives_it(file, slug):
    there = GOLDEN[file][slug]
    here = file_of(slug, CONFIGS.get(slug))
    assert here.architecture == there["architecture"]
    always = {there["names"][p]: kind for kind, where in there["always"].items() for p in where}
    for format, (size, types) in there["formats"].items():
        expected = always | {there["names"][p]: kind for kind, where in types.items() for p in where}
        assert types_in(here, format) == expected, format
        assert here.size(format) == size, format
    shapes: dict[str, set] = {}
    for tensor in here.tensors:
        shapes.setdefault(tensor.name, set()).add(tensor.shape)
    if "shapes" in there:
        assert [sorted(shapes[name]) for name in there["names"]] == [[*map(tuple, s)] for s in there["shapes"]]
        needing = [format for format in there["formats"] if here.needs_matrix(format)]
        assert needing == there["needs_matrix"]


def test_a_checkpoints_tensors_add_up_to_its_file():
    """Weight by weight, buffers too; and split over one device, where each part is the whole."""
    for slug, format in (
        ("deepseek-v3", "Q2_K"),
        ("deepseek-v4-flash", "Q4_K_M"),
        ("bert-base", "F16"),
        ("gpt2-xl", "Q4_K_M"),
        ("mistral-small-4-119b", "IQ3_M"),
        ("t5-base", "Q4_K_M"),
    ):
        model = presets.model(slug)
        file, costs = model.counts.formats.gguf, costs_of(model.counts)
        assert costs.weight_bytes(format) == file.size(format) == costs.devices.split_weight_bytes(1, format)
        listed = list(weights.tensors(costs, format))
        assert len({name for name, _, _ in listed}) == len(listed), "a name that stands twice"
        rows, layers = weights.patterns(costs, format)
        assert sum(size for *_, size in listed) == sum(size for *_, size in rows) == file.size(format)
        assert len(layers) == len(rows)


@pytest.mark.parametrize("name", ["q4_k_m", "Q4_K_M", "Q4_k", "iq4_xs", "mxfp4_moe", "BF16"])
def test_a_format_is_meant_in_any_case(name):
    assert format_meant(name) in GGUF
    assert format_meant("MXFP4") == "mxfp4", "which is no GGUF format"
    assert format_meant(7) == 7


def test_bits_are_per_weight_of_the_file():
    """An encoder's file lacks the head; one that keeps all in float32 has 32 bits per weight."""
    for slug in ("bert-base", "llama3-8b"):
        assert weights.summary(costs_of(presets.model(slug).counts), "F32")["bits_per_weight"] == 32


def test_what_has_no_file_says_so():
    with pytest.raises(Problem, match="no GGUF format is known for 'opt': llama.cpp's converter has no class for it"):
        presets.model("opt-125m").counts.formats.size(presets.model("opt-125m").counts.weights[0], "Q4_0")
    with pytest.raises(Problem, match="this is RWKV 4"):
        file_of("rwkv-4-169m")
    with pytest.raises(Problem, match="no more decoder layers than encoder layers"):
        file_of("t5", golden("t5").raw)


def plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def test_a_type_without_a_file_has_no_class_in_the_converter():
    """By the class that transformers, or its maker, has for it; and the other way round what was not read has one."""
    there = {plain(name) for name in json.loads(LLAMA_CPP.read_bytes())}
    named = tomllib.loads((PACKAGE / "catalogue/independent.toml").read_text("utf-8"))["types"]
    has = {}
    for name, this in architectures().items():
        whole = name.removesuffix("_text")
        names = [f"{whole}{end}" for end in ("ForCausalLM", "ForConditionalGeneration", "LMHeadModel")]
        names += class_names().get(name, [])
        names += [named[name]["class"]] if name in named else []
        has[name] = any(plain(one) in there for one in names) or whole in ("dflash", "eagle3")  # several classes
        if this.gguf == NO_CLASS:
            assert not has[name] or name == "gpt2_decoder", name  # GPT-2's own class, and no decoder of a whole
    assert all(has[name] for name, this in architectures().items() if this.gguf == UNREAD)


def test_a_tensor_without_a_counterpart_is_named():
    weights = [Weight("model.layers.{i}.self_attn.novel.weight", (Dim(8), Dim(8)), (0,))]
    with pytest.raises(Problem, match="novel"):
        GgufFile(weights, find("llama").gguf, "llama", {"n_layers": 1})


def test_an_importance_matrix_changes_what_it_guards():
    """The first down projections of Q4_0; what IQ4_XS keeps better without one."""
    file = file_of("llama3-8b")
    with_matrix = {s.type for s in file.stored("Q4_0", has_matrix=True) if "ffn_down" in s.tensor.name}
    without = {s.type for s in file.stored("Q4_0") if "ffn_down" in s.tensor.name}
    assert (with_matrix, without) == ({"Q4_1", "Q4_0"}, {"Q4_0"})
    assert {s.type for s in file.stored("IQ4_XS", has_matrix=True) if "ffn_down" in s.tensor.name} == {"IQ4_XS"}


def test_a_published_file_has_these_bytes_and_its_header():
    """Llama 3 8B Instruct in Q4_K_M, as published: 4,920,734,272 bytes, of which the tokenizer and keys are 7.8 MB."""
    assert 0 < 4_920_734_272 - file_of("llama3-8b").size("Q4_K_M") < 8_000_000
