"""What holds for every model of the catalog, and that each identity finds what breaks it."""

from __future__ import annotations

import pytest

from macros.catalogue import presets
from macros.counting import identities
from macros.counting.costs import of

EVERY = [slug for slug in presets.paths() if presets.preset(slug).config is not None]


@pytest.mark.parametrize("slug", EVERY)
def test_every_identity_holds(slug):
    model = presets.model(slug)
    assert [*identities.differences(of(model.counts), model.raw)] == []


@pytest.mark.parametrize(
    ("where", "name", "says"),
    [
        ("counts", "total", "parameters: 9, and their formula: 8,030,261,248"),
        ("counts", "flops_at", "FLOPs at 4,096: 9, and their parts"),
        ("counts", "decode_flops", "FLOPs of a step at 4,096: 9, and under the mask"),
        ("compute", "causal_flops", "FLOPs of a step at 2: "),
        ("counts", "cache_bytes", "cache at 4,099: 9, and its entries: 537,264,128"),
        ("counts", "cache_bytes_per_token", "cache per token: 9, and what the last token adds: 131,072"),
        ("traffic", "bytes_moved", "bytes moved: 9, and read and written"),
    ],
)
def test_a_figure_that_is_wrong_is_named(monkeypatch, where, name, says):
    model = presets.model("llama3-8b")
    costs = of(model.counts)
    owner = type(getattr(costs, where))
    wrong = property(lambda self: 9) if name == "total" else lambda self, *given, **options: 9
    monkeypatch.setattr(owner, name, wrong)
    assert any(line.startswith(says) for line in identities.differences(costs, model.raw))
