"""The command `train`, and `train` in Python: the same answers, and one line for what cannot be."""

from __future__ import annotations

import json

import every_parameter as ep
import pytest

from macros.__main__ import main


@pytest.fixture
def run(capsys):
    """`run("…")` -> (exit status, standard output, standard error)."""

    def call(line: str):
        try:
            status = main(["train", *line.split()])
        except SystemExit as exit_:
            status = exit_.code
        return status, *capsys.readouterr()

    return call


def test_the_command_and_python_give_the_same(run):
    line = (
        "llama3-8b --on h100 --devices 8 --zero 3 --method qlora --rank 16 --target-modules q_proj,v_proj "
        "--optimizer adamw-8bit --recompute selective --sequence 4096 --micro-batch 1 --tokens 1.5B --format json"
    )
    status, out, _ = run(line)
    data = json.loads(out)
    answer = ep.train(
        "llama3-8b",
        on="h100",
        devices=8,
        zero=3,
        method="qlora",
        rank=16,
        target_modules=["q_proj", "v_proj"],
        optimizer="adamw-8bit",
        recompute="selective",
        tokens=1_500_000_000,
    )
    assert status == 0 and data == json.loads(json.dumps(answer.to_dict()))
    assert data["trainable_parameters"] == 6_815_744 == answer.trainable
    assert data["total_bytes"] == sum(data["bytes"].values()) == answer.total
    assert data["left_bytes"] == 80 * 10**9 - answer.total and data["fits"] and bool(answer)
    assert data["run"]["watts"] == 700 and data["run"]["tokens"] == 1_500_000_000


def test_exit_status_1_where_it_does_not_fit(run):
    status, out, _ = run("llama3-8b --on 24GB")
    assert status == 1 and "does not fit on 24 GB" in out and "No micro-batch fits." in out


def test_the_largest_micro_batch_is_the_last_that_fits():
    n = ep.train("llama3-8b", on="24GB", method="qlora", recompute="full", sequence=512).largest_micro_batch
    fits = [
        bool(ep.train("llama3-8b", "24GB", 1, "qlora", recompute="full", sequence=512, micro_batch=b))
        for b in (n, n + 1)
    ]
    assert fits == [True, False]


@pytest.mark.parametrize(
    "line, said",
    [
        ("llama3-8b --method lora --target-modules ,", "no names of modules"),
        ("llama3-8b --rank 8", "full training has no adapters"),
        ("llama3-8b --method lora --rank 0", "above 0"),
        ("llama3-8b --method lora --target-modules q_prj", "did you mean"),
        ("llama3-8b --zero 4", "invalid choice"),
        ("llama3-8b --tokens 5T", "needs a machine"),
        ("llama3-8b --on h100 --tokens 1.5X", "not a number of tokens"),
        ("llama3-8b --utilization 2", "--utilization: expected a share above 0, up to 1"),
        ("llama3-8b --tensor 3 --devices 3", "heads and widths"),
        ("llama3-8b --method lora --tensor 2 --devices 2", "adapters under tensor"),
        ("nothing-of-that-name", "nothing-of-that-name"),
    ],
)
def test_what_cannot_be_is_one_line(run, line, said):
    status, out, wrong = run(line)
    assert (status, out) == (2, "") and said in wrong
    assert wrong.count("\n") == 1 and "Traceback" not in wrong


@pytest.mark.parametrize(
    "options",
    [{"utilization": 0}, {"zero": 5}, {"rank": 3}, {"method": "lora", "rank": True}, {"on": "h100", "tokens": 0}],
)
def test_what_cannot_be_is_a_problem_in_python(options):
    with pytest.raises(ep.Problem):
        ep.train(
            "gpt2", sequence=64, **{"tokens": 10, "on": "h100", **options} if "utilization" in options else options
        )
