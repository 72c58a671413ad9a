"""What Megatron-LM, DeepSpeed and SGLang estimate of a model's memory, by running their own functions, in random
settings: `python -m tests.reference.estimators MEGATRON DEEPSPEED SGLANG` writes `tests/golden/estimators.json`.

MEGATRON and DEEPSPEED are clones with their history: a function is taken from the commit of each version. SGLANG is the
folder of the unpacked wheel. Nothing is built: the functions are arithmetic, and are run by themselves.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import json
import math
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent.parent / "golden" / "estimators.json"
MEGATRON = {
    "0.6": "2bfe9beaae",
    "0.12": "d4f9a6f7b4",
    "0.15": "a6c6250f9c",
    "0.16": "9ad5906556",
    "0.18": "a7c9e8c44a",
    "0.20": "HEAD",
}
DEEPSPEED = {"0.8": "91d63e022", "0.14.3": "f4cb866c2", "0.19": "HEAD"}
OF_MEGATRON = "megatron/training/theoretical_memory_usage.py"
ZERO = "deepspeed/runtime/zero/"
SEED, NUMBER = 55, 40


def functions(folder: str, revision: str, path: str) -> dict[str, Any]:
    """The functions of a module that need nothing of others."""
    if revision:
        said = subprocess.run(["git", "-C", folder, "show", f"{revision}:{path}"], capture_output=True, check=True)
        text = said.stdout
    else:
        text = (Path(folder) / path).read_bytes()
    wanted = (
        "compute_",
        "report_",
        "adjust_mem_fraction_for_vlm",
        "estimate_zero2_model_states_mem_needs",
        "estimate_zero3_model_states_mem_needs",
    )
    found = [
        node
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef)
        and (node.name.startswith(wanted[:2]) or node.name in wanted)
        or isinstance(node, ast.Assign)
        and ast.unparse(node).startswith("NUM_BYTES")
    ]
    space: dict[str, Any] = {"math": math, "print_rank_0": lambda _: None, "is_hybrid_model": lambda _: False}
    exec(compile(ast.Module(found, []), path, "exec"), space)
    return space


def random_config(rng: random.Random, kind: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A config of a type, and what Megatron's arguments say of it."""
    layers, heads = rng.choice((4, 6, 8, 12)), rng.choice((8, 16, 24))
    head, width = rng.choice((48, 64, 80)), rng.choice((768, 1024, 1536, 2304))
    inner, vocabulary = rng.choice((1408, 2816, 4864)), rng.choice((32_003, 50_257, 151_936))
    raw: dict[str, Any] = {"vocab_size": vocabulary, "num_hidden_layers": layers, "hidden_size": width}
    args: dict[str, Any] = {
        "num_layers": layers,
        "hidden_size": width,
        "num_attention_heads": heads,
        "kv_channels": head,
        "group_query_attention": False,
        "num_query_groups": heads,
        "ffn_hidden_size": inner,
        "swiglu": True,
        "normalization": "RMSNorm",
        "num_experts": None,
        "moe_shared_expert_intermediate_size": None,
        "moe_layer_freq": 1,
        "moe_ffn_hidden_size": None,
        "moe_router_topk": 2,
        "moe_latent_size": None,
        "add_bias_linear": False,
        "mtp_num_layers": None,
        "multi_latent_attention": False,
        "untie_embeddings_and_output_weights": True,
    }
    if kind == "gpt2":
        sizes = {"n_layer": layers, "n_embd": heads * 64, "n_head": heads, "n_inner": inner, "n_positions": 1024}
        args |= {"hidden_size": heads * 64, "kv_channels": 64, "swiglu": False, "normalization": "LayerNorm"}
        args |= {"untie_embeddings_and_output_weights": False, "add_bias_linear": True}
        return {"model_type": "gpt2", "vocab_size": vocabulary, **sizes}, args
    raw |= {"model_type": kind, "num_attention_heads": heads, "intermediate_size": inner}
    raw |= {"tie_word_embeddings": False, "max_position_embeddings": 4096}
    if kind == "deepseek_v3":
        ranks = {"kv_lora_rank": 192, "qk_rope_head_dim": 32, "qk_nope_head_dim": 96, "v_head_dim": 80}
        q = rng.choice((None, 320))
        dense, experts, small = rng.choice((1, 2)), rng.choice((8, 16)), rng.choice((256, 384))
        raw |= {**ranks, "q_lora_rank": q, "first_k_dense_replace": dense, "n_routed_experts": experts, "n_group": 1}
        raw |= {"moe_intermediate_size": small, "n_shared_experts": 1, "num_experts_per_tok": 2, "topk_group": 1}
        args |= {"multi_latent_attention": True, "q_lora_rank": q, "kv_lora_rank": 192, "qk_pos_emb_head_dim": 32}
        args |= {"qk_head_dim": 96, "v_head_dim": 80, "num_experts": experts, "moe_ffn_hidden_size": small}
        args |= {"moe_layer_freq": [0] * dense + [1] * (layers - dense), "moe_shared_expert_intermediate_size": small}
        return raw, args
    groups = rng.choice((2, 4, 8))
    raw |= {"num_key_value_heads": groups, "head_dim": head}
    args |= {"group_query_attention": True, "num_query_groups": groups}
    if kind == "llama" and rng.random() < 0.5:
        raw["tie_word_embeddings"] = True
        args["untie_embeddings_and_output_weights"] = False
    if kind in ("qwen3_moe", "qwen2_moe"):
        experts, small = rng.choice((8, 16)), rng.choice((256, 384))
        raw |= {"num_experts": experts, "moe_intermediate_size": small, "num_experts_per_tok": 2}
        args |= {"num_experts": experts, "moe_ffn_hidden_size": small}
        if kind == "qwen2_moe":
            raw |= {"shared_expert_intermediate_size": 640, "head_dim": width // heads}
            args |= {"moe_shared_expert_intermediate_size": 640, "moe_shared_expert_gate": True}
            args["kv_channels"] = width // heads
    return raw, args


def of_megatron(folder: str, rng: random.Random) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    versions = {version: functions(folder, revision, OF_MEGATRON) for version, revision in MEGATRON.items()}
    for i in range(NUMBER):
        version = list(MEGATRON)[i % len(MEGATRON)]
        kinds = ("llama", "gpt2") if version == "0.6" else ("llama", "gpt2", "qwen3_moe", "qwen2_moe", "deepseek_v3")
        kind = rng.choice(kinds)
        raw, args = random_config(rng, kind)
        if kind == "qwen2_moe" and raw["hidden_size"] % raw["num_attention_heads"]:
            raw["num_attention_heads"] = args["num_attention_heads"] = 8
            raw["head_dim"] = args["kv_channels"] = raw["hidden_size"] // 8
        tensor, pipeline, data = rng.choice((1, 2)), rng.choice((1, 2)), rng.choice((1, 2, 4, 8))
        experts = rng.choice([n for n in (1, 2, 4) if data % n == 0]) if args["num_experts"] else 1
        step = 128 * tensor
        length, batch = rng.choice((1024, 4096)), rng.choice((1, 3))
        is_parallel, is_shared = rng.random() < 0.5, rng.random() < 0.5
        options = f"--tensor-model-parallel-size {tensor} --pipeline-model-parallel-size {pipeline}"
        options += f" --data-parallel-size {data} --expert-model-parallel-size {experts} --seq-length {length}"
        options += f" --micro-batch-size {batch} --framework-version {version}"
        options += " --sequence-parallel --recompute-granularity selective" if is_parallel else ""
        options += " --use-distributed-optimizer" if is_shared else ""
        args |= {
            "padded_vocab_size": -(-raw["vocab_size"] // step) * step,
            "tensor_model_parallel_size": tensor,
            "pipeline_model_parallel_size": pipeline,
            "virtual_pipeline_model_parallel_size": None,
            "data_parallel_size": data,
            "expert_model_parallel_size": experts,
            "expert_tensor_parallel_size": tensor,
            "world_size": tensor * pipeline * data,
            "use_distributed_optimizer": is_shared,
            "sequence_parallel": is_parallel,
            "recompute_granularity": "selective" if is_parallel else None,
            "seq_length": length,
            "micro_batch_size": batch,
            "is_hybrid_model": False,
        }
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            versions[version]["report_theoretical_memory"](argparse.Namespace(**args), verbose=True)
        printed = {
            key: found[0]
            for key, mark in (
                ("total", "Total number of parameters in billions: "),
                ("shard", "Number of parameters in most loaded shard in billions: "),
                ("others", "Number of parameters in other shards in billions: "),
                ("bytes", "weight and optimizer="),
                ("activations", ", activation="),
                ("sum", " total="),
            )
            if (found := re.findall(re.escape(mark) + r" *([0-9.]+[0-9])", said.getvalue()))
        }
        rows.append({"config": raw, "options": options, "printed": printed})
    return rows


def of_deepspeed(folder: str, rng: random.Random) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for i in range(NUMBER):
        version, revision = list(DEEPSPEED.items())[i % len(DEEPSPEED)]
        second = functions(folder, revision, f"{ZERO}stage_1_and_2.py")["estimate_zero2_model_states_mem_needs"]
        third = functions(folder, revision, f"{ZERO}stage3.py")["estimate_zero3_model_states_mem_needs"]
        total, largest = rng.randrange(10**8, 10**11), rng.randrange(10**6, 10**8)
        gpus, nodes = rng.choice((1, 2, 4, 8, 16)), rng.choice((1, 2, 4, 8))
        row: dict[str, Any] = {
            "parameters": total,
            "largest": largest,
            "gpus": gpus,
            "nodes": nodes,
            "version": version,
        }
        row["zero2"] = [second(total, gpus, nodes, is_off) for is_off in (True, False)]
        row["zero3"] = [
            third(total, largest, gpus, nodes, is_off, has_all, init)[:2]
            for is_off, has_all in ((True, True), (True, False), (False, False))
            for init in (True, False)
        ]
        rows.append(row)
    return rows


def of_sglang(folder: str, rng: random.Random) -> list[dict[str, Any]]:
    """What is left of a share of 0.8 with a tower of this size; None for a size that the config does not state."""
    share = functions(folder, "", "sglang/srt/arg_groups/memory_hook.py")["adjust_mem_fraction_for_vlm"]
    rows: list[dict[str, Any]] = [{"tower": None, "share": share(0.8, _model(None), False, 80 * 1024)}]
    for _ in range(NUMBER // 2):
        sizes = {
            "num_hidden_layers": rng.choice((12, 24, 27, 32, 48, 63)),
            "hidden_size": rng.choice((768, 1152, 1664)),
        }
        rows.append({"tower": sizes, "share": share(0.8, _model(sizes), False, 80 * 1024)})
    depth = {"hidden_size": 1152, "depth": 27}
    return [*rows, {"tower": depth, "share": share(0.8, _model(depth), False, 80 * 1024)}]


def _model(tower: dict[str, int] | None) -> argparse.Namespace:
    said = None if tower is None else argparse.Namespace(**tower)
    return argparse.Namespace(hf_config=argparse.Namespace(vision_config=said))


def main(megatron: str, deepspeed: str, sglang: str) -> None:
    rng = random.Random(SEED)
    found = {"megatron": of_megatron(megatron, rng), "deepspeed": of_deepspeed(deepspeed, rng)}
    found["sglang"] = of_sglang(sglang, rng)
    parts = [
        f' "{key}": [\n' + ",\n".join(f"  {json.dumps(row)}" for row in rows) + "\n ]" for key, rows in found.items()
    ]
    FILE.write_text("{\n" + ",\n".join(parts) + "\n}\n", "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
