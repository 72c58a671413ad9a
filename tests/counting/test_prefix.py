"""A prefix that texts share: what each kind of cache holds of it, by hand and for every model."""

from __future__ import annotations

import pytest

from macros.catalogue import presets
from macros.counting.conditions import Conditions
from macros.counting.costs import Costs
from macros.counting.costs import of as costs_of
from macros.counting.parts import HEAD
from macros.counting.prefix import prefix_cache_bytes, shared_prefix

COUNTED = [slug for slug in presets.paths() if presets.preset(slug).config is not None]


def of(slug: str) -> Costs:
    return costs_of(presets.model(slug).counts)


def test_llama_3_8b_by_hand():
    """Every row of the prefix is held once: 131,072 bytes a token."""
    costs = of("llama3-8b")
    found = shared_prefix(costs, 3000, Conditions(4096, 16))
    assert found.cache_bytes == 16 * 4096 * 131072 and found.saved_bytes == 15 * 3000 * 131072
    head = 2 * 4096 * 128256
    assert found.saved_flops == 15 * (costs.compute.causal_flops(3000, 3000) - head), (
        "the last row's logits are each text's own"
    )


def test_a_window_holds_what_is_still_in_it():
    """Gemma 3 27B: 10 of 62 layers keep all, 52 the last 1,024; 16 heads of 128, keys and values, 2 bytes."""
    row = 2 * 16 * 128 * 2
    costs = of("gemma3-27b")
    full = 10
    assert sum(len(k.layers) for k in costs.counts.kept) == 2 * 62
    for prefix, context in ((4000, 4096), (3000, 4096), (3500, 4096)):
        windowed = max(0, 1024 - (context - prefix))
        assert prefix_cache_bytes(costs, prefix, context) == row * (full * prefix + (62 - full) * windowed)


def test_a_state_is_of_the_whole_text():
    """Mamba shares no byte of its cache, and all of the prefill."""
    costs = of("mamba-2.8b")
    found = shared_prefix(costs, 1000, Conditions(1500, 4))
    assert found.saved_bytes == 0 and 0.66 < found.saved_flops / found.flops * 4 / 3 < 0.67


@pytest.mark.parametrize("slug", COUNTED)
def test_any_model(slug):
    """One text saves nothing; more prefix never saves less, and never more than all of it."""
    costs, context = of(slug), 300
    head = sum(n.flops.at(costs.counts.values(T=1, S=1)) for n in costs.trace.root.children if n.role is HEAD)
    alone = shared_prefix(costs, 200, Conditions(context, 1))
    assert alone.saved_bytes == alone.saved_flops == 0
    before = (0, 0)
    for prefix in (1, 64, 150, 299):
        found = shared_prefix(costs, prefix, Conditions(context, 5))
        assert found.cache_bytes == 5 * costs.counts.cache_bytes(context)
        assert before[0] <= found.saved_bytes <= found.cache_bytes * 4 // 5
        assert before[1] <= found.saved_flops <= found.flops * 4 // 5
        if costs.trace.kept and not costs.compute.reads_source and not costs.compute.latents:
            assert (
                abs(found.saved_flops - 4 * (costs.compute.causal_flops(prefix, prefix) - head))
                <= 4 * found.flops // 1000
            )
        if costs.compute.reads_source or not costs.trace.kept:  # an encoder sees what follows
            assert found.saved_bytes == found.saved_flops == 0
        before = found.saved_bytes, found.saved_flops
