"""Layers and experts in the host's memory: by hand, and for every model."""

from __future__ import annotations

from fractions import Fraction

import pytest

from macros.catalogue import presets
from macros.counting.accelerators import accelerator, accelerators
from macros.counting.conditions import Conditions
from macros.counting.costs import Costs
from macros.counting.costs import of as costs_of
from macros.counting.offload import Offload, least_offload, placed
from macros.counting.own_machine import named

COUNTED = [slug for slug in presets.paths() if presets.preset(slug).config is not None]
PC = named("64GB,2xDDR5-5600,link:64GB/s", accelerators()).accelerator


def of(slug: str) -> Costs:
    return costs_of(presets.model(slug).counts)


def test_llama_3_70b_by_hand():
    """30 of 80 layers in the host's memory, with their cache: 855,654,400 numbers a layer, 8 key/value heads of 128."""
    D, F, N, K, H = 8192, 28672, 64, 8, 128
    layer = 2 * D * N * H + 2 * D * K * H + 3 * D * F + 2 * D
    costs, given = of("llama3-70b"), Conditions(1000, 3)
    found = placed(costs, given, Offload(layers=30))
    row = 2 * K * H * 2
    assert found.host == {"weights": 30 * layer * 2, "cache": 3 * 30 * 1000 * row}
    assert found.host_read == 30 * layer * 2 + 3 * 30 * 999 * row, "the new row is not read from memory"
    whole = costs.memory.inference_bytes(1, given)
    assert sum(found.device.values()) + sum(found.host.values()) == sum(whole.values())


def test_experts_of_mixtral_by_hand():
    """All routed experts on the host: a text reads 2 of 8 in each layer, two texts 8·(1 − (6/8)²) = 3.5 at a guess."""
    costs = of("mixtral-8x7b")
    experts = 32 * 8 * 3 * 4096 * 14336 * 2
    for texts, used in ((1, Fraction(2)), (2, Fraction(7, 2))):
        found = placed(costs, Conditions(100, texts), Offload(expert_layers=32))
        assert found.host == {"weights": experts, "cache": 0}
        assert found.host_read == experts * used / 8


def test_least_times_by_hand():
    """A layer waits for the one before it where the processor computes; what is moved may come while others work."""
    costs, card = of("llama3-8b"), accelerator("rtx-4090")
    found = placed(costs, Conditions(4096), Offload(layers=8))
    assert PC is not None and PC.bytes_per_second == 2 * 5600 * 10**6 * 8
    device, host = Fraction(found.device_read, 1008 * 10**9), Fraction(found.host_read, 2 * 5600 * 8 * 10**6)
    assert found.computed_seconds(card, PC) == device + host
    assert found.moved_seconds(card, PC) == max(device, Fraction(found.host_read, 32 * 10**9))
    assert found.moved_seconds(card, card) is None, "no link, nothing is moved"


@pytest.mark.parametrize(
    "slug, format, expected",
    [
        ("llama3-8b", "bfloat16", Offload()),
        ("llama3-70b", "int4", Offload(layers=30)),
        ("mixtral-8x7b", "int8", Offload(expert_layers=17)),
    ],
)
def test_the_fewest_that_leave_room(slug, format, expected):
    """24 GB: one layer, or the experts of one layer, less would not fit."""
    costs, given, room = of(slug), Conditions(4096, 1, format), 24 * 10**9
    assert least_offload(costs, given, room) == expected
    assert placed(costs, given, expected).fits(room)
    if expected != Offload():
        fewer = Offload(max(expected.layers - 1, 0), max(expected.expert_layers - 1, 0))
        assert not placed(costs, given, fewer).fits(room)


@pytest.mark.parametrize("slug", COUNTED)
def test_any_model_is_somewhere_as_a_whole(slug):
    """Accelerator and host together hold and read what one device would; with all layers gone the tables are left."""
    costs, given = of(slug), Conditions(64, 2)
    whole = costs.memory.inference_bytes(1, given)
    read = costs.traffic.weight_bytes_read(1, 2) + costs.traffic.cache_bytes_read(1, 64, 2)
    before = None
    for n in (0, 1, costs.devices.n_layers // 2, costs.devices.n_layers):
        for offload in (Offload(n), Offload(0, n)):
            found = placed(costs, given, offload)
            assert {k: found.device[k] + found.host.get(k, 0) for k in whole} == whole
            assert found.device_read + found.host_read == read or given.format == "published"
            assert min(*found.device.values(), *found.host.values(), found.device_read, found.host_read) >= 0
        if before is not None:
            assert sum(placed(costs, given, Offload(n)).host.values()) >= before
        before = sum(placed(costs, given, Offload(n)).host.values())
    nothing = placed(costs, given, Offload())
    assert set(nothing.host.values()) == {0} and nothing.host_read == 0
    everywhere = placed(costs, given, Offload(costs.devices.n_layers))
    assert everywhere.device["cache"] == 0
    assert least_offload(costs, given, sum(whole.values())) == Offload()
    least = least_offload(costs, given, sum(everywhere.device.values()))
    assert least is not None and placed(costs, given, least).fits(sum(everywhere.device.values()))
    assert least_offload(costs, given, 1) is None
