"""A folder's files decide about bytes, and a line says how they differ from config.json."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import pytest
from reference.configs import all_configs

from macros.__main__ import main
from macros.api.changes import changed
from macros.catalogue import presets
from macros.counting.costs import of as costs_of
from macros.counting.quantizers import QUANTIZERS

LLAMA = {
    "model_type": "llama",
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "num_hidden_layers": 3,
    "vocab_size": 101,
    "tie_word_embeddings": False,
    "dtype": "bfloat16",
}
WIDTHS = {"F32": 4, "BF16": 2, "F16": 2, "I64": 8, "I32": 4, "U32": 4, "I8": 1, "U8": 1, "F8_E4M3": 1}
GOLDEN = json.loads((Path(__file__).parent.parent / "golden" / "quantizers.json").read_bytes())

Tensors = dict[str, tuple[str, tuple[int, ...]]]


def folder(path: Path, raw: dict, tensors: Tensors, files: int = 1) -> int:
    """A config.json, and the headers of files with these tensors; the bytes of all of them."""
    path.mkdir(parents=True, exist_ok=True)
    (path / "config.json").write_text(json.dumps(raw), "utf-8")
    total = 0
    for n in range(files):
        at, listed = 0, {}
        for name, (dtype, shape) in itertools.islice(tensors.items(), n, None, files):
            size = math.prod(shape) * WIDTHS[dtype]
            listed[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + size]}
            at += size
        header = json.dumps(listed).encode()
        name = "model.safetensors" if files == 1 else f"model-{n + 1:05}-of-{files:05}.safetensors"
        (path / name).write_bytes(len(header).to_bytes(8, "little") + header)
        total += at
    return total


def tensors(raw: dict, dtype: str = "BF16") -> Tensors:
    return {name: (dtype, tuple(map(int, shape))) for name, shape in presets.make("x", raw).counts.tensors()}


HEAD = "lm_head.weight"
TOWER: Tensors = {f"vision_tower.{i}.weight": ("BF16", (30, 7)) for i in range(4)}
# What config.json says, what the files hold, and a part of the line about it.
CASES = {
    "narrower": (LLAMA | {"intermediate_size": 112}, tensors(LLAMA), "9 tensors of another shape"),
    "without a head": (
        LLAMA,
        {name: of for name, of in tensors(LLAMA).items() if name != HEAD},
        "asked for and not there: lm_head.weight",
    ),
    "with a tied head": (LLAMA | {"tie_word_embeddings": True}, tensors(LLAMA), "there and not asked for: lm_head"),
    "with a tower": (LLAMA, tensors(LLAMA) | TOWER, "there and not asked for: vision_tower.{i}.weight × 4"),
    "in another type": (LLAMA, tensors(LLAMA, "F32"), "in other bytes: model.embed_tokens.weight 19,392 and not 9,696"),
    "quantized in the config alone": (
        LLAMA | {"quantization_config": QUANTIZERS["gptq-4bit-g32"]},
        tensors(LLAMA),
        "in other bytes: model.layers.{i}.self_attn.q_proj.weight",
    ),
    "with fewer layers": (LLAMA | {"num_hidden_layers": 4}, tensors(LLAMA), "asked for and not there: model.layers.3"),
}


@pytest.mark.parametrize("files", [1, 3])
@pytest.mark.parametrize("name", CASES)
def test_the_files_decide_and_a_line_says_so(tmp_path, capsys, name, files):
    raw, there, said = CASES[name]
    total = folder(tmp_path, raw, there, files)
    model = presets.load(str(tmp_path))
    costs = costs_of(model.counts)
    assert costs.weight_bytes("published") == total
    assert model.stored == sum(math.prod(shape) for _, shape in there.values()) and not model.is_stored_computed
    assert said in model.file_difference and f"the files decide: {total:,} bytes" in model.file_difference
    for command in (("describe",), ("fits", "--on", "24GB")):
        assert main([*command, str(tmp_path)]) == 0
        assert capsys.readouterr().err.count("the files decide") == 1
        assert main([*command, "--strict", str(tmp_path)]) == 1
        assert f"{total:,}" in capsys.readouterr().out


@pytest.mark.parametrize("model_type", sorted(all_configs()))
def test_what_is_missing_is_said_of_each_type(tmp_path, model_type):
    """Every other tensor, among them routers and parts of experts."""
    raw = all_configs()[model_type] | {"dtype": "bfloat16"}
    raw.pop("torch_dtype", None)
    there = tensors(raw)
    for first in (0, 1):
        total = folder(tmp_path, raw, dict(itertools.islice(there.items(), first, None, 2)))
        model = presets.load(str(tmp_path))
        assert "asked for and not there" in model.file_difference
        assert costs_of(model.counts).weight_bytes("published") == total


def test_files_that_agree_are_not_spoken_of(tmp_path, capsys):
    total = folder(tmp_path, LLAMA, tensors(LLAMA))
    assert main(["describe", "--strict", str(tmp_path)]) == 0
    said = capsys.readouterr()
    assert said.err == "" and f"{total:,}" in said.out
    assert main(["describe", "--strict", "gpt2"]) == 0 == main(["fits", "--strict", "gpt2", "--on", "24GB"])


def test_files_that_cannot_be_read_are_said(tmp_path, capsys):
    folder(tmp_path, LLAMA, tensors(LLAMA), 3)
    (tmp_path / "model-00002-of-00003.safetensors").unlink()
    assert main(["describe", str(tmp_path)]) == 0
    assert "config.json alone is counted" in (said := capsys.readouterr().err) and "00002-of-00003" in said
    assert main(["describe", "--strict", str(tmp_path)]) == 1


def test_a_changed_model_has_the_types_of_the_files_and_its_own_bytes(tmp_path):
    folder(tmp_path, LLAMA, tensors(LLAMA, "F32"))
    other = changed(presets.load(str(tmp_path)), {"vocab_size": 201})
    assert costs_of(other.counts).weight_bytes("published") == 4 * other.counts.total
    assert other.file_difference == ""


# The layers of these are not all alike, and the record does not tell which is which.
UNEVEN = ("deepseek_v3", "glm4_moe", "qwen3_next")
WRITTEN = [(slug, kind) for slug, of in GOLDEN.items() for kind in of["files"] if kind in QUANTIZERS]


@pytest.mark.parametrize(("slug", "kind"), [case for case in WRITTEN if case[0] not in UNEVEN])
def test_what_a_library_wrote_is_what_its_config_says(tmp_path, slug, kind):
    """Each module of the files is found, whatever a quantizer calls its parts, and has the bytes that the config's
    quantization gives (tests/reference/quantizers.py)."""
    there: Tensors = {}
    for name, dtype, shape, copies in GOLDEN[slug]["files"][kind]:
        experts = 4 if name.count("{}") > 1 else 1
        for layer, expert in itertools.product(range(copies // experts), range(experts)):
            there[name.replace("{}", str(layer), 1).replace("{}", str(expert), 1)] = dtype, tuple(shape)
    raw = GOLDEN[slug]["config"] | {"dtype": "bfloat16", "quantization_config": QUANTIZERS[kind]}
    total = folder(tmp_path, raw, there)
    model = presets.load(str(tmp_path))
    assert model.file_difference == ""
    assert costs_of(model.counts).weight_bytes("published") == total
