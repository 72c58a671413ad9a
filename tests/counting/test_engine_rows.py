"""Figures that engines printed in public, each against the answer of one command with the engine's own options.

`engine_rows.jsonl` holds facts alone: of each row the call, and the printed numbers by the key of the figure (and the
device). `why` names the cause of those that differ, `given` what a row did not print and the call says instead.
"""

from __future__ import annotations

import json
import shlex
from fractions import Fraction
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from macros.api.deployments import Served, as_printed, served_by
from macros.api.model import read
from macros.api.training import train
from macros.catalogue.presets import preset
from macros.cli.arguments import parser
from macros.cli.commands import engine_words
from macros.counting import frameworks
from macros.counting.conditions import Conditions
from macros.counting.costs import of as costs_of
from macros.counting.deploying import named
from macros.counting.deployments import Figure
from macros.counting.llama_devices import single
from macros.counting.sglang import STATE_TYPES, TOWER, Pools, tower_share
from macros.counting.vllm_options import BITS
from macros.engine.errors import Problem

ROWS = [json.loads(line) for line in (Path(__file__).parent / "engine_rows.jsonl").read_text("utf-8").splitlines()]
# Of further threads, which were read after the rules were written.
THREADS = [json.loads(line) for line in (Path(__file__).parent / "thread_rows.jsonl").read_text("utf-8").splitlines()]
TRAINED = [
    json.loads(line) for line in (Path(__file__).parent / "framework_rows.jsonl").read_text("utf-8").splitlines()
]
ASKED = [row for row in ROWS if row["call"]]
# Figures whose range is an estimate of the engine's, and no rounding of what was given.
ESTIMATES = ("compute", "model CPU")


def laguna() -> dict:
    """48 layers, one in four of which keeps all tokens."""
    raw = dict(preset("laguna-xs-2.1").config)
    for key in ("num_attention_heads_per_layer", "mlp_layer_types"):
        raw[key] = [*raw[key], *raw[key][:8]]
    kinds = ["sliding_attention" if i % 4 else "full_attention" for i in range(48)]
    return {**raw, "num_hidden_layers": 48, "layer_types": kinds}


def gemma_4() -> dict:
    """48 layers, one in six of which keeps all tokens, with one key of 512."""
    raw = dict(preset("gemma-4-31b").config)
    kinds = ["full_attention" if i % 6 == 5 else "sliding_attention" for i in range(48)]
    sizes = {"hidden_size": 3840, "num_attention_heads": 16, "intermediate_size": 15360, "num_key_value_heads": 8}
    return {**raw, **sizes, "num_hidden_layers": 48, "num_global_key_value_heads": 1, "layer_types": kinds}


def embedding_gemma() -> dict:
    """24 layers that look both ways."""
    raw = dict(preset("gemma3-270m").config)
    sizes = {"hidden_size": 768, "num_attention_heads": 3, "intermediate_size": 1152, "num_hidden_layers": 24}
    return {**raw, **sizes, "use_bidirectional_attention": True}


def sheared_llama() -> dict:
    """1.3B: llmshearing/configs/llama2/1.3b.yaml of princeton-nlp/LLM-Shearing."""
    sizes = {"hidden_size": 2048, "num_attention_heads": 16, "num_hidden_layers": 24, "intermediate_size": 5504}
    return {"model_type": "llama", "vocab_size": 32000, "tie_word_embeddings": False, **sizes}


def nemotron_mini() -> dict:
    """4B, with a token more: `Nemotron3Config4B` in nemo/collections/llm/gpt/model/nemotron.py of NVIDIA-NeMo/NeMo."""
    sizes = {"hidden_size": 3072, "num_attention_heads": 24, "num_hidden_layers": 32, "intermediate_size": 9216}
    sizes |= {"num_key_value_heads": 8, "head_dim": 128}
    return {"model_type": "nemotron", "vocab_size": 256_001, "tie_word_embeddings": False, **sizes}


CONFIGS = {"laguna-48.json": laguna, "gemma-4-12b.json": gemma_4, "embeddinggemma.json": embedding_gemma}


# Adapters: rows, model, options, trained parameters, and with them those of the whole model.
LINEAR = {"target_modules": "all-linear"}
NAMED = {"target_modules": "q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj"}
ADAPTERS = [
    (("e035", "e131"), "tinyllama-1.1b", {"rank": 64, **LINEAR}, 50_462_720, 1_150_511_104),
    (("e129",), "llama3.2-3b", {"rank": 64, **LINEAR}, 97_255_424, 3_310_005_248),
    (("e130",), "gemma3-1b", {"rank": 16, **LINEAR}, 13_045_760, 1_012_931_712),
    (("e132",), "deepseek-coder-1.3b", {"rank": 32, "target_modules": "q_proj,v_proj"}, 6_291_456, 1_352_763_392),
    (("e036",), nemotron_mini(), {"rank": 32, **LINEAR}, 46_137_344, 4_236_652_544),
    (
        ("e037",),
        sheared_llama(),
        {"rank": 64, **NAMED, "layers_to_transform": "5"},
        2_498_560,
        1_345_423_360 + 2_498_560,
    ),
]
# A figure of the model alone, each in a test of its own.
ALONE = ("e027", "e039", "e128")


def answer(call: str) -> Served:
    """The answer of a call of `fits`, without the name of the command."""
    model, *words = shlex.split(call)
    rest, own = engine_words(["fits", model, *words])
    options = parser("fits").parse_args(rest)
    given = Conditions(options.context, options.batch, options.weights or "published", options.cache, options.devices)
    described = read(CONFIGS[model]() if model in CONFIGS else model)
    return served_by(described, given, named(options.engine), options.on, own, options.engine_version)


def figures(served: Served, key: str) -> list[Figure]:
    return [f for f in served.deployment.figures if key in (f.key, f"{f.key} {f.place}")]


def is_printed(figure: Figure, number: str) -> bool:
    """Whether a number that was printed is the figure, to its last digit."""
    plain = number.replace(",", "")
    return figure.is_near(Fraction(plain), len(plain.partition(".")[2]))


@pytest.mark.parametrize("row", [row for row in (*ASKED, *THREADS) if row["call"]], ids=lambda row: row["id"])
def test_an_engine_printed_this(row):
    """Equal to the last printed digit, or inside what a rounded input leaves; what differs says why, and still does."""
    served = answer(row["call"])
    for key, number in row["printed"].items():
        found = figures(served, key)
        assert found, key
        assert any(is_printed(f, number) for f in found) == ("why" not in row), (key, number, [f.text for f in found])


def test_most_rows_are_answered_to_the_last_digit():
    """85 of 97, each of the others with its reason; and a range that an answer gives is narrow, unless it says that it
    is an estimate."""
    answered = [row for row in ASKED if "why" not in row]
    other = {row["id"].partition(" ")[0] for row in TRAINED} | {name for ids, *_ in ADAPTERS for name in ids} | {*ALONE}
    assert len({row["id"] for row in ROWS}) == len(ROWS)
    assert not other & {row["id"] for row in ROWS}
    assert len(ROWS) + len(other) == 97
    assert len(answered) + len(other) >= 85
    assert all(row["why"] for row in ROWS if not row["call"])  # what no command answers has its reason
    for row in answered:
        served = answer(row["call"])
        for key in row["printed"]:
            if not key.startswith(ESTIMATES):
                for figure in figures(served, key):
                    assert figure.most <= figure.least * Fraction(102, 100), (row["id"], key)


def test_most_rows_of_further_threads_are_answered_too():
    """Each of the others has its reason."""
    assert all(row["why"] for row in THREADS if not row["call"])
    assert len([row for row in THREADS if "why" not in row]) >= 53


def test_a_figure_that_is_another_is_not_taken_for_it():
    served = answer(ASKED[0]["call"])
    (tokens,) = figures(served, "tokens")
    assert is_printed(tokens, "42,656")
    assert not is_printed(tokens, "42,720")
    assert not is_printed(tokens, "42,592")


@pytest.mark.parametrize("row", TRAINED, ids=lambda row: row["id"])
def test_a_framework_printed_this(row):
    """Parameters, memory and FLOPs by a training framework's own conventions, to the last digit."""
    served = as_printed(row["model"], row["framework"], row["options"])
    for key, number in row["printed"].items():
        (figure,) = figures(served, key)
        assert is_printed(figure, number), (key, number, figure.text)


@pytest.mark.parametrize(
    ("call", "tokens"),
    [
        ("llama3.1-8b --engine vllm --max-model-len 200000", "200,000"),
        ("llama3.1-8b --engine sglang --context-length 200k", "200,000"),
        ("llama3.1-8b --engine llama.cpp --ctx-size 400000 --parallel 2", "200,000"),
        ("llama3.1-8b --engine ollama num_ctx=200000", "200,000"),
        ("bert-base --engine llama.cpp --ctx-size 4096", "4,096"),
    ],
)
def test_a_context_that_the_model_was_not_made_for_is_said(call, tokens):
    """In the words of the engine's own option, with what the engine does then; shorter ones say nothing."""
    note = answer(call).deployment.notes[0]
    assert note.startswith(f"{tokens} tokens per request: the model was made for ")
    shorter = answer(
        call.replace(
            call.split(" ")[-1] if "parallel" not in call else "400000", "num_ctx=512" if "num_ctx" in call else "512"
        )
    )
    assert not any("was made for" in one for one in shorter.deployment.notes)


def test_an_encoder_keeps_nothing_in_vllm_and_a_cache_in_sglang():
    served = answer("bert-base --engine vllm --max-model-len 512 --on 24GB")
    assert [f.key for f in served.deployment.figures] == ["loaded"]
    assert served.deployment.advice == ()
    (row,) = figures(answer("bert-base --engine sglang --context-length 512"), "row")
    assert row.least == 2 * 2 * 768 * 12


def test_a_host_holds_what_the_devices_do_not():
    """Of llama.cpp; an address is the server's, and no memory."""
    rest, own = engine_words(shlex.split("fits llama3.1-8b --engine llama.cpp --host 64GB,2xDDR5-5600 -ngl 20"))
    assert ("--host" in rest, "--host" in own) == (True, False)
    rest, own = engine_words(shlex.split("fits llama3.1-8b --engine llama.cpp --host 0.0.0.0 -ngl 20"))
    assert ("--host" in rest, "--host" in own) == (False, True)
    given = Conditions(4096, 1, "Q4_K_M", "bfloat16")
    roomy, tight = (
        served_by(read("llama3.1-8b"), given, "llama.cpp", "12GB", ["-ngl", "20"], "", size)
        for size in (64 * 10**9, 10**9)
    )
    assert roomy.is_enough and not tight.is_enough
    assert "of the host’s memory" in tight.sentence
    host = roomy.to_dict()["host"]
    assert host["limit_bytes"] == 64 * 10**9
    assert host["least_bytes"] == sum(term["bytes"] for term in host["terms"]) > 10**9
    with pytest.raises(Problem, match="keeps the whole model on the devices"):
        served_by(read("llama3.1-8b"), given, "vllm", "12GB", [], "", 10**9)


@pytest.mark.parametrize(
    ("ids", "model", "options", "trainable", "total"),
    ADAPTERS,
    ids=lambda value: "+".join(value) if isinstance(value, tuple) else None,
)
def test_a_trainer_printed_this_of_adapters(ids, model, options, trainable, total):
    """By PEFT and Unsloth."""
    found = train(model, method="lora", **options)
    assert (found.trainable, found.trainable + found.model.counts.total) == (trainable, total)


def test_a_file_and_a_trainer_printed_this_of_a_model():
    """e027, llama.cpp's parameters of DeepSeek V4 Flash, 284.33 B; e039, torchtitan's with multi-token prediction."""
    model = read("deepseek-v4-flash")
    assert round(model.counts.total / 10**9, 2) == 284.33
    assert model.with_prediction == 290_942_278_866


def test_torchtitan_printed_this():
    """e128: parameters; the memory that it prints has activations, which its own terms leave out."""
    (figure,) = figures(
        as_printed("llama3.1-8b", "torchtitan", "--parallelism.data-parallel-shard-degree 4"), "parameters"
    )
    assert figure.least == 8_030_261_248


def test_shares_of_devices_are_rounded_as_a_float_is():
    """Ties to even, as llama.cpp's sums of `float`s."""
    numbers = [*range(2**24 - 3, 2**24 + 9), 2**25 + 2, 2**25 + 6, 7**11, Fraction(1, 3), Fraction(2**24 + 1, 2**30), 0]
    assert [float(single(Fraction(n))) for n in numbers] == [float(np.float32(float(n))) for n in numbers]


def test_each_row_of_a_pool_is_counted():
    pools = Pools(1, 20, 300, 4_000, 50_000, 0, 600_000, 7_000_000, 0, False, 0)
    assert (pools.full, pools.windowed, pools.slot) == (50_021, 4_300, 7_600_000)


def test_types_of_a_state_are_as_wide_as_they_are_in_numpy():
    names = {"float": "float32", "half": "float16", "bfloat16": ml_dtypes.bfloat16}
    assert STATE_TYPES == {name: np.dtype(names.get(name, name)).itemsize for name in STATE_TYPES}
    assert {name: 8 * np.dtype(names.get(name, name)).itemsize for name in BITS if name != "auto"} | {"auto": 0} == BITS


@pytest.mark.parametrize(
    ("model", "attention", "matrices"),
    [
        ("llama3.1-8b", 32 * 32 * 256, 8_030_261_248 - 128256 * 4096),
        ("qwen3-0.6b", 28 * 16 * 256, 596_049_920),  # its table is the head too
        ("deepseek-v3", 61 * 128 * (128 + 64 + 128), 37_552_282_624 - 129280 * 7168),
    ],
)
def test_torchtitan_counts_these_flops(model, attention, matrices):
    """`get_dense_model_nparams_and_flops` and `get_moe_model_nparams_and_flops` in torchtitan 0.3.0, models/utils.py: 6
    for each parameter of a matrix product, and 6 × layers × heads × (width of keys + of values) × tokens."""
    (flops,) = figures(as_printed(model, "torchtitan", "--training.seq-len 8192"), "flops")
    assert flops.least == 6 * matrices + 6 * attention * 8192


ESTIMATED = json.loads((Path(__file__).parent.parent / "golden" / "estimators.json").read_text("utf-8"))


@pytest.mark.parametrize("row", ESTIMATED["megatron"], ids=lambda row: row["options"].replace(" ", ""))
def test_megatron_estimates_this(row):
    """By its own functions of six versions, in random settings: parameters, shards, and memory, as it prints them."""
    answer = as_printed(row["config"], "megatron", row["options"])
    found = {figure.key: figure for figure in answer.deployment.figures}
    assert row["printed"].keys() >= {"total", "shard", "bytes"}
    for key, said in row["printed"].items():
        figure = found.pop(key)
        unit = {"MB": 2**20}.get(figure.unit, 1)
        digits = len(said.partition(".")[2])
        assert abs(figure.least / unit - Fraction(said)) <= Fraction(51, 100) / 10**digits, (key, said)
    assert not found.keys() & {"others", "activations", "sum"}


@pytest.mark.parametrize("row", ESTIMATED["deepspeed"], ids=lambda row: f"{row['parameters']}-{row['version']}")
def test_deepspeed_estimates_this(row):
    """By its own functions of three versions, in random settings."""
    total, largest, gpus, nodes = (row[key] for key in ("parameters", "largest", "gpus", "nodes"))
    release = tuple(int(n) for n in row["version"].split("."))
    second = {key: size for key, _, size, _ in frameworks.zero_2(total, gpus, gpus * nodes, release)}
    third = {key: size for key, _, size, _ in frameworks.zero_3(total, largest, gpus, gpus * nodes, Fraction(1, nodes))}
    of_cpu, of_gpu = zip(*row["zero2"])
    assert [int(second[key]) for key in ("cpu offload", "cpu")] == list(of_cpu)
    assert [int(second[key]) for key in ("gpu offload", "gpu")] == list(of_gpu)
    names = [f"{key}{end}" for key in ("all", "offload", "") for end in ("", " whole")]
    of_cpu, of_gpu = zip(*row["zero3"])
    assert [int(third[f"cpu {name}".replace("  ", " ").strip()]) for name in names] == list(of_cpu)
    assert [int(third[f"gpu {name.removesuffix(' whole')}".strip()]) for name in names] == list(of_gpu)


@pytest.mark.parametrize(
    ("model", "largest"),
    [("llama3-8b", 128_256 * 4096), ("qwen3-30b-a3b", 128 * 3 * 768 * 2048), ("gpt2", 50_257 * 768)],
)
def test_the_largest_module_is_gathered(model, largest):
    """A table, or the experts of a layer, which are one module."""
    (figure,) = [f for f in as_printed(model, "deepspeed", "--stage 3").deployment.figures if f.key == "gpu all"]
    assert figure.least == 4 * largest


@pytest.mark.parametrize("row", ESTIMATED["sglang"], ids=lambda row: str(row["tower"]))
def test_sglang_leaves_room_for_a_tower_of_images(row):
    """By its own function: what it keeps of a share of 0.8; the command's answer has the note of the same part."""
    sizes = row["tower"] and [row["tower"].get("num_hidden_layers", 24), row["tower"]["hidden_size"]]
    costs = read("qwen3.5-27b").counts
    part = tower_share(costs_of(costs), {TOWER: sizes or []})
    assert part is not None
    assert float(part) * 0.8 == pytest.approx(row["share"], rel=1e-12)


def test_a_tower_takes_a_part_of_the_share():
    """Of the model's own tower; no part of a model without one, or without its images, or whose images are off."""
    cases = (
        ("qwen3.5-27b", [], "with 0.9248 of it for the tower of images"),
        ("qwen3.5-27b", ["--language-model-only"], "here 0.818 to 0.824."),
        ("qwen3-8b", [], "here 0.818 to 0.824."),
        ("gemma3-27b", [], "here 0.818 to 0.824."),
        ("gemma3-27b", ["--enable-multimodal"], "with 0.9097 of it for the tower of images"),
    )
    for slug, words, said in cases:
        notes = served_by(read(slug), Conditions(8192), "sglang", "h100", words).deployment.notes
        assert any(said in note for note in notes), (slug, words, notes)
    unknown = {**read("qwen3.5-27b").whole, "vision_config": {"patch_size": 14}}
    notes = served_by(read(unknown), Conditions(8192), "sglang", "h100", []).deployment.notes
    assert any("for a model that takes images 0.76 to 0.9975 of that" in note for note in notes)
