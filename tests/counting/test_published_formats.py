"""The format that a maker published: bytes held against published files, and what a `quantization_config` may say."""

from __future__ import annotations

import json
import math
import time

import pytest
from quantizations import HEAD, LLAMA, NORMS, SAID, SHAPES, TABLE, UNKNOWN, D, F, L, V

from macros.api.changes import changed
from macros.catalogue import presets
from macros.counting.costs import of as costs_of
from macros.counting.formats import FORMATS, PUBLISHED
from macros.counting.modules import Modules
from macros.counting.parameters import Counts
from macros.data import weights
from macros.engine.errors import Problem

EXPERT_AND_REST = "experts in mxfp4, the rest in bfloat16"

# Bytes of published files, as others state them: the sum of all tensors, and which of them no weight of the model is.
# A router's bias is a float32 for each expert of each layer.
TOTALS = {
    # model.safetensors.index.json, total_size
    "gpt-oss-20b": (13_761_264_768, 0, EXPERT_AND_REST),
    "gpt-oss-120b": (65_248_815_744, 0, EXPERT_AND_REST),
    # index.json; the module for multi-token prediction, tables of a hash in int64, routers' biases
    "deepseek-v4-flash": (
        159_609_485_896,
        3_593_787_756 + 18_616_320 + 40 * 256 * 4,
        "experts in mxfp4, other linear layers in fp8, the rest in bfloat16",
    ),
}


@pytest.mark.parametrize("slug", TOTALS)
def test_bytes_are_those_of_the_published_files(slug):
    total, besides, said = TOTALS[slug]
    counts = presets.model(slug).counts
    assert costs_of(counts).weight_bytes(PUBLISHED) == total - besides
    assert counts.formats.said(PUBLISHED) == said


# Numbers of values by type, as the Hugging Face Hub counts them: of DeepSeek with its module for multi-token prediction
# (a layer, a map of [D, 2 D], norms, second copies of table and head), of Kimi K2 with tables of rotations.
HIDDEN, VOCABULARY = 7168, 129280
BY_TYPE = {
    "deepseek-v3": {"fp8": 680_571_043_840, "bfloat16": 3_918_786_560, "scales": 41_555_600 - 14_848 - 256},
    "kimi-k2": {"fp8": 1_023_893_241_856, "bfloat16": 2_514_970_968, "scales": 62_495_192},
    "kimi-k2.5": {"int4": (1_014_687_129_600 - 60 * 384 * 3 * 2 * 8)},  # the shapes of each matrix, counted eight times
    "mimo-v2-flash": {"fp8": 306_655_002_624 - 3 * 262_144_000},
}


@pytest.mark.parametrize("slug", BY_TYPE)
def test_each_type_has_as_many_values_as_the_hub_counts(slug):
    counts = presets.model(slug).counts
    values: dict[str, int] = {}
    scales = 0
    for w in counts.weights:
        each = 1
        if slug == "deepseek-v3" and w.layers is not None and 60 in w.layers:
            each = (len(w.layers) + 1) / len(w.layers)  # one more layer like the last
        for form, copies in counts.formats.published(w):
            n = round(copies * each)
            values[form.name] = values.get(form.name, 0) + int(w.count) // int(w.copies) * n
            scales += (form.size(w.shape) * 8 - int(w.count) // int(w.copies) * form.bits) // 32 * n
    if slug == "deepseek-v3":
        values["bfloat16"] += 2 * HIDDEN * HIDDEN + 2 * HIDDEN * VOCABULARY + 3 * HIDDEN
    if slug == "kimi-k2":
        values["bfloat16"] += 61 * 56
    for name, number in BY_TYPE[slug].items():
        assert (scales if name == "scales" else values[name]) == number, name


# --- what a config may say --------------------------------------------------------------------------------------------


def counted(quantization: object, **keys: object) -> Counts:
    return presets.make("llama", {**LLAMA, "quantization_config": quantization, **keys}).counts


@pytest.mark.parametrize("name", SAID)
def test_a_quantization_gives_payload_and_scales(name):
    said, size = SAID[name]
    linear = L * sum(size(*shape) for shape in SHAPES.values())
    assert costs_of(counted(said)).weight_bytes(PUBLISHED) == linear + 2 * (NORMS + TABLE + HEAD)


def test_what_is_not_quantized_has_the_type_of_the_config():
    fp8 = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    wide = costs_of(counted(fp8, torch_dtype="float32")).weight_bytes(PUBLISHED)
    assert wide - costs_of(counted(fp8)).weight_bytes(PUBLISHED) == 2 * (NORMS + TABLE + HEAD)
    assert counted(None, dtype="float32").formats.said(PUBLISHED) == "float32"
    assert counted(None, dtype="torch.float16").formats.said(PUBLISHED) == "float16"
    assert costs_of(counted(None, dtype="float32")).weight_bytes(PUBLISHED) == 4 * counted(None).total
    assert not counted(None).formats.is_stated


@pytest.mark.parametrize(
    ("names", "left"),
    [
        (["model.layers.1.self_attn"], {1: "self_attn"}),
        (["language_model.model.layers.1.self_attn", "lm_head"], {1: "self_attn"}),
        (["model.layers.1.mlp.gate_proj", "model.layers.12.mlp"], {1: "mlp.gate_proj"}),
        (["down_proj"], dict.fromkeys(range(L), "mlp.down_proj")),
        (["model.layers.*.mlp"], dict.fromkeys(range(L), "mlp.")),
        ([".*.self_attn.q.*"], dict.fromkeys(range(L), "self_attn.q_proj")),
        (["q_pro", "layers.1.mlp.gate", "odel.layers.1.mlp"], {}),
        (["_proj"], dict.fromkeys(range(L), "")),  # the end of a name, with or without a dot before
    ],
)
def test_modules_that_are_not_converted_keep_their_type(names, left):
    said = {"quant_method": "fp8", "weight_block_size": [128, 128], "modules_to_not_convert": names}
    kept = sum(o * i for layer in left for name, (o, i) in SHAPES.items() if name.startswith(left[layer]))
    counts = counted(said)
    found = sum(
        int(w.count) // int(w.copies) * copies
        for w in counts.weights
        if w.layers is not None and "proj" in w.name
        for form, copies in counts.formats.published(w)
        if form.name == "bfloat16"
    )
    assert found == kept


def test_layers_may_have_formats_of_their_own():
    said = {
        "quant_method": "modelopt",
        "quant_algo": "MIXED_PRECISION",
        "quantized_layers": {
            "model.layers.0.mlp.gate_proj": {"quant_algo": "NVFP4", "group_size": 16},
            "model.layers.2.mlp.gate_proj": {"quant_algo": "NVFP4", "group_size": 16},
            "model.layers.0.self_attn.q_proj": {"quant_algo": "FP8"},
        },
    }
    counts = counted(said)
    found = {w.name: [(f.name, n) for f, n in counts.formats.published(w)] for w in counts.weights}
    assert found["model.layers.{i}.mlp.gate_proj.weight"] == [("nvfp4", 2), ("bfloat16", 3)]
    assert found["model.layers.{i}.self_attn.q_proj.weight"] == [("fp8", 1), ("bfloat16", 4)]
    assert found["model.layers.{i}.mlp.up_proj.weight"] == [("bfloat16", 5)]


def test_a_format_that_is_published_is_taken_as_published():
    counts = presets.model("deepseek-v3").counts
    costs = costs_of(counts)
    assert costs.weight_bytes("fp8") == costs.weight_bytes(PUBLISHED) != costs.memory.converted_weight_bytes("fp8")
    assert costs.weight_bytes("int4") == costs.memory.converted_weight_bytes("int4")
    assert costs.devices.split_weight_bytes(1, "fp8") == costs.weight_bytes(PUBLISHED)
    everything = costs.traffic.weight_bytes_read(10**6, 10**6, PUBLISHED, first=True)
    assert everything == costs.weight_bytes(PUBLISHED)


def test_what_describe_and_the_data_had_stays():
    costs = costs_of(presets.model("gpt-oss-20b").counts)
    assert [costs.memory.converted_weight_bytes(name) for name in ("bfloat16", "mxfp4")] == [
        41_829_514_368,
        11_121_203_328,
    ]
    assert set(FORMATS) >= {"float32", "bfloat16", "float16", "fp8", "int8", "int4", "mxfp4", "nvfp4"}


@pytest.mark.parametrize(("said", "names"), UNKNOWN)
def test_a_format_that_is_not_known_is_one_line_and_never_taken_for_another(said, names):
    model = presets.make("llama", {**LLAMA, "quantization_config": said})
    with pytest.raises(Problem) as wrong:
        costs_of(model.counts).weight_bytes(PUBLISHED)
    assert names in str(wrong.value) and "say in which format" in str(wrong.value)
    assert any("published format of the weights is not known" in line for line in model.warnings)
    assert costs_of(model.counts).weight_bytes("int4") > 0


@pytest.mark.parametrize(
    ("expression", "name", "is_held"),
    [
        (r"re:.*mlp\.(gate|up|gate_up|down)_proj.*", "model.layers.3.mlp.gate_up_proj", True),
        (r"re:.*mlp\.(gate|up|gate_up|down)_proj.*", "model.layers.3.mlp.experts.7.gate_proj", False),
        (r"re:model\.layers\.(1|2)\..*", "model.layers.2.mlp.up_proj", True),
        (r"re:model\.layers\.(1|2)\..*", "model.layers.12.mlp.up_proj", False),
        (r"re:^model\.layers\.[0-9]+\.mlp$", "model.layers.30.mlp", True),
        (r"re:^model\.layers\.[0-9]+\.mlp$", "model.layers.30.mlp.up_proj", False),
        (r"re:.*o_proj", "model.layers.0.self_attn.o_proj", True),
        (r"re:o_proj", "model.layers.0.self_attn.o_proj", False),
        (r"re:model\.layers\.\d\d?\.x", "model.layers.07.x", True),
        (r"re:language_model\.model\.layers\.\d+\.x", "model.layers.7.x", True),
    ],
)
def test_an_expression_is_read_as_a_regular_expression(expression, name, is_held):
    assert Modules([expression]).holds([name]) == is_held


@pytest.mark.parametrize(
    ("glob", "name", "is_held"),
    [
        ("model.layers.3.self_attn*", "model.layers.3.self_attn.q_proj", True),
        ("model.layers.3.self_attn*", "model.layers.13.self_attn.q_proj", False),
        ("*.gate", "model.layers.3.mlp.gate", True),
        ("*.gate", "model.layers.3.mlp.gate_proj", False),
        ("mlp.*.up", "model.layers.3.mlp.experts.2.up", True),
        ("lp.*", "model.layers.3.mlp.experts", False),
        ("layers.*", "language_model.model.layers.3", True),
        ("x***y", "a.x.y.b", True),
        ("*", "a", True),
    ],
)
def test_a_name_with_stars_is_parts_of_a_name(glob, name, is_held):
    assert Modules(["none*", glob, "other.*"]).holds([name]) == is_held


def test_a_long_expression_takes_no_time():
    assert not Modules(["re:" + ".*a" * 200]).holds(["model.layers.0." + "a" * 150 + "b"])


@pytest.mark.parametrize(
    "name", ["(" * 500, "(" * 5000, ".*" * 5000, "(a|b)" * 9 + "x" * 900, "a*b*" * 99, "x" * 31_000 + "*", "(a|b)" * 11]
)
def test_a_name_that_would_take_long_is_not_understood(name):
    with pytest.raises(Problem, match="is not understood; say in which format"):
        Modules([name if name.startswith("x") else f"re:{name}"])


MOST = pytest.param(2500, True, marks=pytest.mark.slow("looks for 80,000 modules"))


@pytest.mark.parametrize(("experts", "is_known"), [(8, True), MOST, (2501, False)])
def test_more_modules_than_any_model_has_are_not_looked_for(experts, is_known):
    """32 layers of so many experts, and a list that may name each; the other formats are known."""
    said = {"quant_method": "fp8", "ignore": [r"re:.*experts\.\d+x"]}
    raw = {**presets.preset("mixtral-8x7b").config, "num_local_experts": experts, "quantization_config": said}
    costs = costs_of(presets.make("x", raw).counts)
    assert costs.weight_bytes("int4") > 0
    if is_known:
        assert costs.weight_bytes("published") > 0
    else:
        with pytest.raises(Problem, match="stands for 80,032 modules, too many to look up"):
            costs.weight_bytes("published")


def test_many_layers_of_a_gguf_file_take_no_time():
    """What a split over devices asks, of the most layers that a config may have."""
    raw = {**presets.preset("llama3-8b").config, "num_hidden_layers": 10_000}
    counts = presets.make("x", raw).counts
    layers = tuple(range(10_000))
    [w] = [w for w in counts.weights if w.name.endswith("q_proj.weight")]
    start = time.process_time()
    assert counts.formats.part_size(w, "Q8_0", w.shape, layers, 1) == 10_000 * 4096 * 4096 // 32 * 34
    assert time.process_time() - start < 1


def test_patterns_of_many_layers_take_no_time():
    """No list of layers is made anew for each layer, which took a second."""
    counts = presets.make("x", {**presets.preset("llama3-8b").config, "num_hidden_layers": 10_000}).counts
    costs, start = costs_of(counts), time.process_time()
    rows, layers = weights.patterns(costs, "bfloat16")
    assert layers[1] == [[0, 9_999, 1]] and sum(size for *_, size in rows) == 2 * counts.total
    assert time.process_time() - start < 0.75


def test_lists_of_names_with_stars_take_no_time():
    """One for each layer, as Model Optimizer writes them, on 60 layers of 256 experts."""
    names = [f"model.layers.{i}.self_attn*" for i in range(61)] + ["model.layers.3.mlp.experts.7.*"]
    raw = {**presets.preset("deepseek-v3").config, "quantization_config": {"quant_method": "fp8", "ignore": names}}
    start = time.process_time()
    counts = presets.make("deepseek-v3", raw).counts
    kept = sum(w.count for w in counts.weights if ".self_attn." in w.name and len(w.shape) == 2) + 3 * 2048 * 7168
    raw["quantization_config"] = {"quant_method": "fp8"}
    whole = costs_of(presets.make("deepseek-v3", raw).counts).weight_bytes(PUBLISHED)
    assert costs_of(counts).weight_bytes(PUBLISHED) - whole == kept - 4 * (61 * 5 + 3)  # a scale of each
    assert time.process_time() - start < 10  # before, a minute


def test_a_file_beside_the_config_says_it_too(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(LLAMA), "utf-8")
    assert presets.load(str(tmp_path)).counts.formats.said(PUBLISHED) == "bfloat16"
    said = {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "NVFP4", "exclude_modules": ["lm_head"]}}
    (tmp_path / "hf_quant_config.json").write_text(json.dumps(said), "utf-8")
    for name in (tmp_path, tmp_path / "config.json"):
        counts = presets.load(str(name)).counts
        assert counts.formats.said(PUBLISHED) == "linear layers in nvfp4, the rest in bfloat16"


def test_what_the_whole_says_holds_for_the_language_model():
    whole = {"model_type": "llava", "text_config": LLAMA, "quantization_config": SAID["blocks"][0], "dtype": "float16"}
    counts = presets.make("whole", whole).counts
    assert counts.formats.said(PUBLISHED) == "linear layers in fp8, the rest in float16"


def stored(types: dict[str, str]) -> bytes:
    """A safetensors file of these tensors of a Llama, of which only the header is of interest."""
    listed, at = {}, 0
    for name, shape in counted(None).tensors():
        kind = next((kind for end, kind in types.items() if name.endswith(end)), "BF16")
        size = math.prod(shape) * {"F32": 4, "BF16": 2, "F16": 2, "F8_E4M3": 1}[kind]
        listed[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    header = json.dumps(listed).encode()
    return len(header).to_bytes(8, "little") + header


def test_the_headers_of_a_folder_say_the_types_where_the_config_does_not(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({**LLAMA, "torch_dtype": "float16"}), "utf-8")
    file = tmp_path / "model.safetensors"

    def formats(types: dict[str, str]):
        file.write_bytes(stored(types))
        return presets.load(str(tmp_path)).counts

    counts = formats({".weight": "F32"})
    assert counts.formats.said(PUBLISHED) == "float32" and counts.formats.is_stated
    assert costs_of(counts).weight_bytes(PUBLISHED) == 4 * counts.total
    counts = formats({"norm.weight": "F32", "layers.1.mlp.up_proj.weight": "F32"})
    assert counts.formats.said(PUBLISHED) == "bfloat16 and float32"
    assert costs_of(counts).weight_bytes(PUBLISHED) == 2 * counts.total + 2 * (NORMS + D * F)
    assert costs_of(changed(presets.load(str(tmp_path)), {"vocab_size": V + 1}).counts).weight_bytes(PUBLISHED) == (
        2 * counts.total + 2 * (NORMS + D * F) + 4 * D
    )
    counts = formats({"up_proj.weight": "F8_E4M3"})
    assert costs_of(counts).weight_bytes(PUBLISHED) == 2 * counts.total - L * D * F
    with pytest.raises(Problem, match="is stored as F8_E4M3"):
        costs_of(changed(presets.load(str(tmp_path)), {"vocab_size": V + 1}).counts).weight_bytes(PUBLISHED)
    file.write_bytes(b"nothing")
    assert presets.load(str(tmp_path)).counts.formats.said(PUBLISHED) == "float16"
