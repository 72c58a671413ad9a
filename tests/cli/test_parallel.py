"""`split`, `speculative` and `fits --host`: the same answers as the Python API, and one line for what cannot be."""

from __future__ import annotations

import json

import pytest

import macros as ep
from macros.__main__ import main


def asked(capsys, call: str) -> tuple[int, str, str]:
    try:
        status = main(call.split())
    except SystemExit as exit_:
        status = int(exit_.code or 0)
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def test_split_says_what_the_api_says(capsys):
    """Rows for the splits of eight devices, and the messages of one."""
    status, out, _ = asked(capsys, "split llama3-70b --devices 8 --batch 16 --on h100 --format json")
    said, table = json.loads(out), ep.splits("llama3-70b", on="h100", devices=8, batch=16)
    assert status == 0 and [one["split"] for one in said["splits"]] == [row["split"] for row in table]
    assert all(one.items() >= row.items() for one, row in zip(said["splits"], table))
    status, out, _ = asked(capsys, "split llama3-70b --tensor 8 --batch 16 --on h100 --format json")
    assert json.loads(out)["splits"][0]["decode_messages"] == ep.traffic("llama3-70b", tensor=8, batch=16).rows()
    assert json.loads(out)["conditions"]["devices"] == 8
    status, out, _ = asked(capsys, "split deepseek-v3 --data 16 --batch 64 --dispatch fp8 --on h100")
    assert status == 0 and "dispatch after mixture_of_experts" in out and "all-reduce" not in out
    assert asked(capsys, "split llama3-70b --devices 2 --on 24GB")[0] == 1, "no split of two fits"


def test_a_host_says_what_the_api_says(capsys):
    call = "fits gpt-oss-120b --weights published --on rtx-4090 --host 96GB,2xDDR5-5600 --format json"
    status, out, _ = asked(capsys, call)
    answer = ep.offload("gpt-oss-120b", "rtx-4090", "96GB,2xDDR5-5600")
    assert status == 0 and answer and json.loads(out) == answer.to_dict() and str(answer) == answer.sentence
    assert answer.gpu_layers == 36 and 0 < answer.cpu_moe_layers < 36 and answer.moved_seconds is None
    status, out, _ = asked(capsys, "fits llama3-8b --on 8GB --host 4GB --gpu-layers 3")
    assert status == 1 and "29 of 32 layers" in out and "does not fit" in out


def test_speculative_says_what_the_api_says(capsys):
    call = "speculative llama3.3-70b llama3.2-1b --acceptance 0.7 --draft-tokens 3 --on h200 --format json"
    status, out, _ = asked(capsys, call)
    answer = ep.speculative("llama3.3-70b", "llama3.2-1b", on="h200", acceptance=0.7, draft_tokens=3)
    assert status == 0 and json.loads(out) == answer.to_dict() and 1 < answer.speedup < answer.tokens_per_step
    assert answer.tokens_per_step == pytest.approx(1 + 0.7 + 0.49 + 0.343)
    assert asked(capsys, "speculative mixtral-8x7b --on h200")[0] == 0
    assert "vocabularies of" in asked(capsys, "speculative llama3-8b gpt2 --on h200")[2]


def test_a_head_is_a_draft_by_its_config(capsys, tmp_path):
    sizes = {"hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32, "num_key_value_heads": 8}
    raw = {"model_type": "llama", "architectures": ["LlamaForCausalLMEagle3"], "vocab_size": 128256, **sizes}
    (tmp_path / "config.json").write_text(json.dumps(raw | {"num_hidden_layers": 1, "draft_vocab_size": 32000}))
    status, out, warnings = asked(capsys, f"speculative llama3.1-8b {tmp_path} --on h100")
    assert status == 0 and warnings.count("\n") == 1 and "The embedding belongs to its target" in warnings
    assert "849,379,328" in out and "16,777,216" in out and "8,192" in out
    with pytest.warns(UserWarning, match="A draft head"):
        answer = ep.speculative("llama3.1-8b", tmp_path, on="h100", batch=2)
    assert answer.draft_weight_bytes == 2 * 424_689_664 and answer.draft_target_bytes == 2 * 4096 * 2
    assert answer.draft_cache_bytes == 2 * 4096 * 2 * 2 * 8 * 128
    assert asked(capsys, f"speculative llama3.1-70b {tmp_path} --on h200")[2].endswith("for another target\n")


def test_a_shared_prefix(capsys):
    table = ep.shared_prefix("llama3-8b", prefix=1000, context=8192, batch=5)
    assert table[0]["saved"] == 4 * 1000 * 131072 and table[0]["each"] - table[0]["shared"] == table[0]["saved"]
    call = "prefix llama3-8b --prefix 1000 --context 8k --batch 5"
    said = json.loads(asked(capsys, f"{call} --format json")[1])
    assert said["cache_bytes"] == {name: table[0][name] for name in ("each", "shared", "saved")}
    assert f"{said['prefill_flops']['saved']:,}" in asked(capsys, call)[1]


@pytest.mark.parametrize(
    "call, said",
    [
        ("split gpt2 --on h100 --tensor 5", "the sizes allow 1, 2, 3, 4, 6, 12"),
        ("split gpt2 --on h100 --pipeline 5", "--pipeline"),
        ("split mixtral-8x7b --on h100 --data 3 --batch 3", "8 routed experts do not divide by 3 devices"),
        ("split mixtral-8x7b --on h100 --data 2", "more groups than the batch size of 1"),
        ("split llama3-70b --on h100 --devices 7", "no split over 7 devices"),
        ("split llama3-70b --on h100 --tensor 0", "not a whole number above 0"),
        ("prefix gpt2 --prefix 1024 --context 1k", "--prefix 1024: expected a whole number from 1 to 1,023"),
        ("fits gpt2 --on 8GB --gpu-layers 3", "--gpu-layers without --host"),
        ("fits gpt2 --on 8GB --host 4GB --n-cpu-moe 3", "no routed experts"),
        ("fits gpt2 --on 8GB --host 4GB --gpu-layers 30", "the model has 12 layers"),
        ("fits gpt2 --on 8GB --host here", "host"),
        ("fits llama3-8b --on 8GB --host 4GB --devices 2", "--host with --devices"),
        ("speculative gpt2 --on 24GB", "needs a bandwidth"),
        ("speculative gpt2 --on h100 --acceptance 1.2", "expected a share from 0 to 1"),
        ("speculative gpt2 --on h100 --acceptance 1e9", "expected a share from 0 to 1"),
        ("speculative gpt2 --on h100 --draft-tokens 65", "at most 64"),
        ("speculative gpt2 nothing --on h100", "unknown model"),
    ],
)
def test_what_cannot_be_is_one_line(capsys, call, said):
    status, out, err = asked(capsys, call)
    lines = [line for line in err.splitlines() if "beyond" not in line]
    assert status == 2 and not out and len(lines) == 1 and said in lines[0], err
