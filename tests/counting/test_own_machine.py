"""A machine of one's own: each part exact, and one line for what it cannot be."""

from __future__ import annotations

from fractions import Fraction

import pytest
from own_machines import WRONG

import macros as ep
from macros.__main__ import main
from macros.api.conditions import accelerator
from macros.api.fits import memory
from macros.counting.accelerators import Accelerator, Link, accelerators
from macros.counting.own_machine import machine
from macros.engine.errors import Problem

TERA = 10**12


def made(text: str) -> Accelerator:
    found = machine(text, accelerators())
    assert found is not None and found.accelerator is not None
    assert found.memory_bytes == found.accelerator.memory_bytes and found.name == found.accelerator.name
    return found.accelerator


@pytest.mark.parametrize(
    "text, size, name",
    [
        ("24GB", 24 * 10**9, "24 GB"),
        ("24gb", 24 * 10**9, "24 GB"),
        ("24 GiB", 24 * 2**30, "24 GiB"),
        ("1.5tib", 3 * 2**39, "1.5 TiB"),
        ("0.000000001TB", 1000, "0.000000001 TB"),
    ],
)
def test_memory_alone(text, size, name):
    found = machine(text, accelerators())
    assert found is not None and (found.memory_bytes, found.name, found.accelerator) == (size, name, None)


@pytest.mark.parametrize(
    "text, memory, bandwidth, peaks",
    [
        ("24GB,1008GB/s,165TFLOPS", 24 * 10**9, 1008 * 10**9, {"bfloat16": 165 * TERA}),
        (" 165.2 TFLOP/s , 24 GB,1.008TB/s", 24 * 10**9, 1008 * 10**9, {"bfloat16": 1652 * 10**11}),
        ("24GB,1008GBps", 24 * 10**9, 1008 * 10**9, {}),
        ("64GiB,2xDDR5-5600", 64 * 2**30, 2 * 5600 * 10**6 * 8, {}),
        ("1TB,12×ddr4-3200", 10**12, 12 * 3200 * 10**6 * 8, {}),
        (
            "1GB,1KiB/s,2TFLOPS,fp8:4tflops,int8:8TOPS,fp4:1PFLOPS",
            10**9,
            1024,
            {"bfloat16": 2 * TERA, "fp8": 4 * TERA, "int8": 8 * TERA, "fp4": 1000 * TERA},
        ),
    ],
)
def test_the_parts_are_exact_in_any_order(text, memory, bandwidth, peaks):
    own = made(text)
    assert (own.memory_bytes, own.bytes_per_second, own.peak_flops) == (memory, bandwidth, peaks)
    assert not own.sources and own.link is None


def test_a_listed_one_with_another_part():
    h100, own = accelerators()["h100"], made("h100,94GB,link:1.2TB/s")
    assert own.name == "H100 SXM, 94 GB, 1.2 TB/s" and own.memory_bytes == 94 * 10**9
    assert (own.bytes_per_second, own.peak_flops) == (h100.bytes_per_second, h100.peak_flops)
    assert own.link == Link(name="link", bytes_per_second=12 * 10**11) and own.link.one_way == 6 * 10**11
    assert made("h100,4TB/s").link == h100.link
    whole = machine("h100", accelerators())
    assert whole is not None and whole.accelerator is h100


def test_a_peak_of_16_bits_takes_the_place_of_both_types():
    """The RTX 4090 has 330 TFLOP/s with sums in float16; who says 165 means 165."""
    own = made("rtx-4090,165TFLOPS")
    assert own.peak() == 165 * TERA and own.peak("fp8") == accelerators()["rtx-4090"].peak_flops["fp8"]


@pytest.mark.parametrize("text", WRONG)
def test_what_cannot_be_is_one_line(text):
    with pytest.raises(Problem) as problem:
        memory(text)
    assert WRONG[text] in str(problem.value) and "\n" not in str(problem.value)
    assert str(problem.value).startswith(f"on = {text!r}: ")
    with pytest.raises(Problem, match="^on = "):
        accelerator(text)


@pytest.mark.parametrize("text", ["", "24", "GB", "24  GB", "²4GB", "1..2GB", "1.GB", ".5GB", "12345678901GB", "h1000"])
def test_what_is_neither_a_machine_nor_parts(text):
    assert machine(text, accelerators()) is None
    with pytest.raises(Problem, match="neither an accelerator nor a size"):
        memory(text)


def test_its_answers_are_those_of_the_parts():
    """The RTX 4090 written out answers as the listed one; a bound without a peak is the bytes over the bandwidth."""
    own = "24GB,1008GB/s,float16:330.3TFLOPS"
    llama = ep.load("llama3-8b")
    for name in ("decode_seconds", "prefill_seconds", "tokens_per_second", "devices_needed"):
        assert llama.figure(name, on=own) == llama.figure(name, on="rtx-4090")
    assert ep.fits(llama, own).to_dict()["left_bytes"] == ep.fits(llama, "rtx-4090").to_dict()["left_bytes"]
    assert "24 GB, 1008 GB/s, float16 330.3 TFLOPS at 4,096" in ep.fits(llama, own).sentence
    moved = llama.figure("bytes_moved")
    assert llama.figure("decode_seconds", on="64GB,2xDDR5-5600") == pytest.approx(
        float(Fraction(moved, 89_600_000_000))
    )
    assert llama.figure("critical_batch", on="64GB,2xDDR5-5600") is None
    with pytest.raises(Problem, match="needs a bandwidth"):
        llama.figure("decode_seconds", on="24GB")


def test_the_command_takes_it(capsys):
    assert main(["fits", "llama3-8b", "--on", "24GB,1008GB/s,165TFLOPS"]) == 0
    assert "fits on 24 GB, 1008 GB/s, 165 TFLOPS" in capsys.readouterr().out
