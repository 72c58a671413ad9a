"""What quantizers write, tensor by tensor, against what the libraries themselves wrote for small models
(tests/reference/quantizers.py).
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest
from reference.quantized_settings import MORE, SCALED

from macros.catalogue import presets
from macros.counting.costs import of as costs_of
from macros.counting.formats import CACHE_BYTES, WEIGHTS, Format, cache_meant, format_meant
from macros.counting.quantization import METHODS
from macros.counting.quantizers import OTHER_QUANTIZERS, QUANTIZERS
from macros.data import weights
from macros.engine.errors import Problem
from macros.views.costs.weight_files import quantizer_table

GOLDEN = json.loads((Path(__file__).parent.parent / "golden" / "quantizers.json").read_bytes())
BYTES = {"F32": 4, "BF16": 2, "F16": 2, "I64": 8, "I32": 4, "U32": 4, "I8": 1, "U8": 1, "F8_E4M3": 1}
# What stands beside a matrix, by the end of its name.
BESIDE = re.compile(
    r"\.(weight\.(absmax|quant_map|nested_absmax|nested_quant_map)|SCB|weight_format|weight_scale|weight_global_scale|"
    r"input_scale|input_global_scale|weight_shape|weight_packed|qweight|qzeros|scales|g_idx|biases|_weight_(qdata|scale|zero_point))$"
)
DESCRIPTION = ".quant_state."  # of bitsandbytes, in JSON
# Layers of MLX that hold all experts, or what it cuts a matrix into.
OF_MLX = (
    (r"\.switch_mlp\.(gate|down|up)_proj", ".experts"),
    (r"self_attn\.(embed_q|unembed_out)", "self_attn.kv_b_proj"),
)


def read(slug: str) -> presets.Model:
    return presets.make(slug, GOLDEN[slug]["config"])


def module(name: str) -> str:
    """The module that a tensor of a file belongs to, those of all layers and experts together."""
    name = BESIDE.sub("", re.sub(r"\.\d+\.", ".{}.", re.sub(r"\.\d+\.", ".{}.", name))).removesuffix(".weight")
    for theirs, ours in OF_MLX:
        name = re.sub(theirs, ours, name)
    name = name.replace(".block_sparse_moe.", ".mlp.").replace("transformer.", "model.")
    return re.sub(r"\.experts\.({}\.)?\w+(\.bias)?$", ".experts", name)


CASES = [(slug, kind) for slug, said in GOLDEN.items() for kind in said["files"] if kind in QUANTIZERS]


@pytest.mark.parametrize(("slug", "kind"), CASES)
def test_each_module_has_the_bytes_that_the_library_wrote(slug, kind):
    model = read(slug)
    buffers = {module(name) for name, _ in model.counts.tensors(model.counts.buffers)}
    there: dict[str, int] = {}
    for name, dtype, shape, copies in GOLDEN[slug]["files"][kind]:
        if DESCRIPTION not in name and module(name) not in buffers:
            if name.endswith("mlp.gate.weight") and dtype == "F32":
                dtype = "BF16"  # transformers makes this router in 32 bits; what its maker published has 16
            there[module(name)] = there.get(module(name), 0) + BYTES[dtype] * math.prod(shape) * copies
    here: dict[str, int] = {}
    for name, _, size in weights.tensors(costs_of(model.counts), kind):
        here[module(name)] = here.get(module(name), 0) + size
    assert here == there
    assert (
        sum(here.values())
        == costs_of(model.counts).weight_bytes(kind)
        == weights.summary(costs_of(model.counts), kind)["bytes"]
    )


def test_every_format_is_held_against_a_library():
    """Or differs from one that is by the size of a group alone."""
    held = {kind for _, kind in CASES}
    rest = {re.sub(r"g\d+$", "g", name) for name in QUANTIZERS} - {re.sub(r"g\d+$", "g", name) for name in held}
    assert rest == {"fp8-block", "mxfp4-experts", "torchao-int4"}, "published files hold two, its source the third"
    assert len({slug for slug, _ in CASES}) >= 15


def test_published_formats_are_these_names():
    """DeepSeek V3 is published in FP8 with blocks, gpt-oss with its experts in MXFP4."""
    for slug, name in (("deepseek-v3", "fp8-block"), ("gpt-oss-20b", "mxfp4-experts")):
        costs = costs_of(presets.model(slug).counts)
        assert costs.weight_bytes(name) == costs.weight_bytes("published")


@pytest.mark.parametrize("name", ["GPTQ", "gptq-4BIT", "Awq", "NF4-DQ", "LLM.int8", "llm-int8", "MLX-4bit", "bnb-4bit"])
def test_a_name_is_meant_in_any_case(name):
    assert format_meant(name) in QUANTIZERS and set(OTHER_QUANTIZERS.values()) <= set(QUANTIZERS) <= set(WEIGHTS)


def test_what_mlx_makes_of_experts_is_said_only_where_it_is_known():
    costs = costs_of(read("gpt_oss").counts)
    with pytest.raises(Problem, match="how mlx-4bit stores the experts of 'gpt_oss'"):
        costs.weight_bytes("mlx-4bit")
    assert costs.weight_bytes("gptq-4bit-g128") > 0


def test_a_config_that_says_so_is_read_alike():
    """What bitsandbytes and MLX write into a config; experts of transformers 4 are not known."""
    for slug, kind in (("llama", "nf4-dq"), ("llama", "llm.int8"), ("qwen3", "mlx-4bit"), ("qwen3", "torchao-int8")):
        raw = {**GOLDEN[slug]["config"], "quantization_config": QUANTIZERS[kind]}
        published = costs_of(presets.make(slug, raw).counts)
        assert published.weight_bytes("published") == costs_of(read(slug).counts).weight_bytes(kind)
    said = {"quantization_config": QUANTIZERS["nf4"], "transformers_version": "4.46.0"}
    costs = costs_of(presets.make("x", {**GOLDEN["mixtral"]["config"], **said}).counts)
    with pytest.raises(Problem, match="experts.*is not known"):
        costs.weight_bytes("published")
    assert costs.weight_bytes("int4") == costs_of(read("mixtral").counts).weight_bytes("int4")
    listed = {"group_size": 64, "bits": 4, "model.layers.0.mlp.gate_proj": {"group_size": 64, "bits": 8}}
    model = presets.make("x", {**GOLDEN["llama"]["config"], "quantization_config": {**listed, "lm_head": False}})
    found = dict(weights_by_name(model))
    assert found["model.layers.0.mlp.gate_proj.weight"] == "mlx-8bit"
    assert found["model.layers.1.mlp.gate_proj.weight"] == "mlx-4bit"
    assert found["lm_head.weight"] == "bfloat16"


def test_what_torchao_says_in_a_config_is_read():
    """Its 4 bits as its source has them: half a byte a weight, and a scale and a zero point in 16 bits for each group;
    a row that is no whole groups stays in 16 bits. What another layout holds is not guessed.
    """
    layer = ("model.layers.0.self_attn.q_proj.weight", 512, 256)  # of the small Llama, in the shape [out, in]
    for said, rows in (
        (QUANTIZERS["torchao-int4"], 256 // 2 + 256 // 128 * 4),
        (QUANTIZERS["torchao-int8"], 256 + 4 + 1),
        (torchao("Int8WeightOnlyConfig", {"_type": "PerGroup", "_data": {"group_size": 64}}), 256 + 4 * (4 + 1)),
        (torchao("Float8WeightOnlyConfig", {"_type": "PerRow", "_data": {"dim": -1}}), 256 + 4),
        (torchao("Int4WeightOnlyConfig", group_size=96), 256 * 2),
    ):
        sizes = {name: size for name, _, size in weights_of("llama", said)}
        assert sizes[layer[0]] == layer[1] * rows and sizes["lm_head.weight"] == 1024 * 256 * 2
    of_matrix = torchao("Float8DynamicActivationFloat8WeightConfig", [{"_type": "PerTensor"}, {"_type": "PerTensor"}])
    assert {name: size for name, _, size in weights_of("llama", of_matrix)}[layer[0]] == 512 * 256 + 4
    for wrong in (
        torchao("IntxWeightOnlyConfig"),
        torchao("Int4WeightOnlyConfig", int4_packing_format="tile_packed_to_4d"),
        torchao("Int8WeightOnlyConfig", {"_type": "PerBlock"}),
        QUANTIZERS["torchao-int8"] | {"include_input_output_embeddings": True},
        QUANTIZERS["torchao-int8"] | {"quant_type": "int8_weight_only"},
    ):
        with pytest.raises(Problem, match="quant_type|granularity"):
            weights_of("llama", wrong)


def torchao(kind, granularity=None, **more):
    data = {"granularity": granularity, **more}
    return {"quant_method": "torchao", "quant_type": {"default": {"_type": kind, "_version": 2, "_data": data}}}


def weights_of(slug, said):
    model = presets.make("x", {**GOLDEN[slug]["config"], "quantization_config": said})
    return list(weights.tensors(costs_of(model.counts), "published"))


def weights_by_name(model: presets.Model):
    return [(name, kind) for name, kind, _ in weights.tensors(costs_of(model.counts), "published")]


# --- random settings --------------------------------------------------------------------------------------------------

SETTINGS = json.loads((Path(__file__).parent.parent / "golden" / "quantized_settings.json").read_bytes())["cases"]


@pytest.mark.parametrize("library", sorted({case["library"] for case in SETTINGS}))
def test_a_random_setting_has_the_bytes_that_the_library_wrote(library):
    """Schemes, groups, targets and lists (tests/reference/quantized_settings.py)."""
    for case in SETTINGS:
        if case["library"] == library and "bytes" in case:
            counts = presets.make("x", configured(case)).counts
            assert costs_of(counts).weight_bytes("published") == case["bytes"], case


def configured(case):
    said = {"quantization_config": case["quantization_config"]} if case["quantization_config"] else {}
    raw = (MORE | SCALED).get(case["model"]) or GOLDEN[case["model"]]["config"]
    return {**raw, "dtype": "bfloat16", **said}


WHOLE_FP8 = {"dtype": "fp8_e4m3", "qscheme": "per_tensor"}
FP8 = {"g": {"targets": ["Linear"], "weights": {"num_bits": 8, "type": "float", "strategy": "channel"}}}


def sparse(ignore=()):
    return {"quant_method": "compressed-tensors"} | {
        "sparsity_config": {"format": "sparse-24-bitmask", "targets": ["Linear"], "ignore": list(ignore)}
    }


def quark(**weight):
    return {"quant_method": "quark", "global_quant_config": {"weight": weight}}


def test_each_method_is_on_the_page_with_what_it_refuses():
    page = (Path(__file__).parents[2] / "docs" / "costs" / "formats.md").read_text("utf-8")
    rows = [row for row in page.splitlines() if row.startswith("| `")]
    named = {name for row in rows for name in row.split("|")[1].split("`")[1::2]}
    assert named == {*METHODS, "quant_method"}


def test_awq_scales_an_activation_whatever_its_lists_say():
    """One number of 16 bits for each of the outputs before it, in each layer."""
    raw, said = MORE["starcoder2"] | {"dtype": "bfloat16"}, {"quant_method": "awq", "bits": 4, "group_size": 64}
    kept = {**said, "modules_to_not_convert": ["_proj", "c_fc"]}
    costs = costs_of(presets.make("x", {**raw, "quantization_config": kept}).counts)
    plain = costs_of(presets.make("x", raw).counts)
    assert costs.weight_bytes("published") - plain.weight_bytes("published") == 2 * 2 * raw["intermediate_size"]


def test_rows_of_a_sparse_matrix_end_in_whole_bytes():
    """20 of 2 bytes are 10 and 3 bytes of their places; the shape is two whole numbers of 64 bits."""
    form = Format("x", 16, matrix_bits=128, is_sparse=True)
    assert form.size((3, 20)) == 3 * (10 * 2 + 3) + 16 and form.bits_per_weight == 9


def test_random_settings_are_of_many_types_and_libraries():
    made = [case for case in SETTINGS if "bytes" in case]
    assert len({case["model"] for case in made}) >= 35 and len({case["library"] for case in made}) >= 9
    assert len(made) >= 870


@pytest.mark.parametrize(
    "said",
    [
        {"quant_method": "compressed-tensors", "sparsity_config": {"format": "sparse-bitmask"}, "config_groups": {}},
        sparse() | {"sparsity_config": {"format": "sparse-24-bitmask", "targets": ["re:.*mlp.*"]}},
        sparse(["lm_head"]) | {"config_groups": FP8, "ignore": []},
        sparse() | {"config_groups": {"g": {"targets": ["Linear"], "weights": {"num_bits": 4, "group_size": 128}}}},
        {"quant_method": "compressed-tensors", "format": "marlin-24"}
        | {"config_groups": {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 4}}}},
        quark(),
        quark(dtype="int3", qscheme="per_group", group_size=32),
        quark(dtype="fp8_e4m3", qscheme="per_group", group_size=32),
        quark(dtype="fp8_e4m3", qscheme="per_tensor", scale_format="e8m0"),
        quark(dtype="fp8_e4m3", qscheme="per_tensor", is_dynamic=True),
        quark(dtype="int8", qscheme="per_channel", ch_axis=1),
        quark(dtype="fp4", qscheme="per_group", group_size=16, scale_format="e4m3"),
        quark(**WHOLE_FP8) | {"export": {"weight_format": "fake_quantized"}},
        quark(**WHOLE_FP8) | {"exclude": ["layers.[01].*"]},
        quark(**WHOLE_FP8) | {"algo_config": [{"name": "rotation"}]},
        quark(**WHOLE_FP8) | {"layer_type_quant_config": {"Linear": {}}},
        {"quant_method": "quark"}
        | {"global_quant_config": {"weight": WHOLE_FP8, "input_tensors": {"qscheme": "per_channel"}}},
        {"quant_method": "quark", "global_quant_config": {"weight": WHOLE_FP8, "bias": WHOLE_FP8}},
        quark(**WHOLE_FP8) | {"layer_quant_config": {"*embed_tokens": {"weight": WHOLE_FP8}}},
        quark(**WHOLE_FP8) | {"global_quant_config": {"weight": WHOLE_FP8, "input_tensors": {"dtype": "int4"}}},
        {"quant_method": "quark", "global_quant_config": {"weight": WHOLE_FP8, "output_tensors": WHOLE_FP8}},
        quark(**WHOLE_FP8) | {"kv_cache_quant_config": {"*k_proj": {"weight": WHOLE_FP8}}},
    ],
)
def test_what_no_reader_here_counts_is_refused_in_one_line(said):
    """Forms that the page on formats lists."""
    model = presets.make("x", {**GOLDEN["llama"]["config"], "quantization_config": said})
    with pytest.raises(Problem, match="is not known; ") as error:
        costs_of(model.counts).weight_bytes("published")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("said", "rows"),
    [
        ({"modules_in_block_to_quantize": [["self_attn.q_proj"], ["mlp.down_proj"]]}, {"q_proj": 4, "down_proj": 4}),
        ({"modules_in_block_to_quantize": ["k_proj"]}, {"k_proj": 4}),
        ({"dynamic": {r"-:.*\.mlp\..*": {}}}, dict.fromkeys(("q_proj", "k_proj", "v_proj", "o_proj"), 4)),
        ({"dynamic": {r"+:.*q_proj": {"bits": 8}, r".*_proj$": {"bits": 3}}}, {"q_proj": 8, "down_proj": 3}),
        ({"quant_method": "awq", "modules_to_not_convert": ["_proj"]}, {}),
        ({"quant_method": "awq", "modules_to_not_convert": ["model.layers.0"]}, {"q_proj": 4}),
    ],
)
def test_gptq_and_awq_quantize_what_their_lists_say(said, rows):
    """By the ends of names inside of a layer (optimum), by expressions (GPTQModel), by transformers' list (AWQ)."""
    keys = {"quant_method": "gptq", "bits": 4, "group_size": 64} | said
    found = weights_by_name(presets.make("x", {**GOLDEN["llama"]["config"], "quantization_config": keys}))
    last = {name.split(".")[-2]: form for name, form in found if ".layers.1." in name and "_proj" in name}
    first = {name.split(".")[-2]: form for name, form in found if ".layers.0." in name and "_proj" in name}
    for name, bits in rows.items():
        assert last[name] == ("int8" if bits == 8 else "int4"), name
    if "model.layers.0" in said.get("modules_to_not_convert", ()):
        assert set(first.values()) == {"bfloat16"}
    elif len(rows) < 3 and "dynamic" not in said:
        assert {name for name, form in last.items() if form != "bfloat16"} == rows.keys()


def test_a_name_that_is_no_module_is_said():
    listed = {"quant_method": "bitsandbytes", "load_in_8bit": True, "llm_int8_skip_modules": ["lm_head", "gate_prj"]}
    model = presets.make("x", {**GOLDEN["llama"]["config"], "quantization_config": listed})
    assert any("no module's: 'gate_prj'" in line for line in model.warnings)
    right = {**listed, "llm_int8_skip_modules": ["lm_head", "gate_proj", "model.layers.0"]}
    assert not presets.make("x", {**GOLDEN["llama"]["config"], "quantization_config": right}).warnings


# --- the cache in llama.cpp's types -----------------------------------------------------------------------------------

# Bytes of a block of 32 numbers, by the type: sizes of llama.cpp's structs (ggml-common.h).
BLOCKS = {"q8_0": 34, "q5_1": 24, "q5_0": 22, "q4_1": 20, "q4_0": 18, "iq4_nl": 18}


@pytest.mark.parametrize("name", BLOCKS)
def test_a_cache_has_the_scales_of_its_blocks(name):
    """Keys and values of 32 layers, 8 heads of 128; a latent of 512 and a rotated key of 64 in 61 layers."""
    item = CACHE_BYTES[cache_meant(name.upper())]
    assert presets.model("llama3-8b").counts.cache_bytes(4096, item) == 2 * 32 * 4096 * 8 * 128 // 32 * BLOCKS[name]
    latent = presets.model("deepseek-v3")
    assert latent.counts.cache_bytes_per_token(item) == 61 * (512 + 64) // 32 * BLOCKS[name]
    costs = costs_of(latent.counts)
    expanded = 61 * 128 * (128 + 128 + 64) * 4096 // 32 * BLOCKS[name]
    assert costs.cache.expanded_cache_bytes(4096, item) == expanded
    assert (
        costs.traffic.cache_bytes_read(1, 4096, 1, item) == costs.traffic.cache_bytes_read(1, 4096) // 64 * BLOCKS[name]
    )


def test_rows_that_are_no_whole_blocks_are_refused_as_llama_cpp_does():
    with pytest.raises(Problem, match="rows of 80, not a multiple of 32"):
        presets.model("phi-2").counts.cache_bytes(4096, CACHE_BYTES["q8_0"])
    assert cache_meant("F16") == "float16" and cache_meant("bf16") == "bfloat16" and cache_meant("q9") == "q9"


def test_a_model_of_which_nothing_is_quantized_says_so():
    """GPT-2's layers are stored [in, out], which torchao leaves as they are."""
    assert "nothing" in quantizer_table("gpt2", formats=("torchao-int8",))
    costs = costs_of(presets.model("gpt2").counts)
    assert costs.weight_bytes("torchao-int8") == costs.weight_bytes("bfloat16")
