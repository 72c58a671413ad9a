"""Speculative decoding: expected tokens against a simulation, times by hand, every model as target and as draft."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest
from reference import draft

from macros.catalogue import presets
from macros.counting.accelerators import accelerator
from macros.counting.conditions import Conditions
from macros.counting.costs import Costs
from macros.counting.costs import of as costs_of
from macros.counting.speculative import best_length, expected_tokens, speculation, vocabularies_differ
from macros.engine.architectures.drafts import KINDS
from macros.engine.errors import Problem
from macros.views.costs.draft_heads import head_of

COUNTED = [slug for slug in presets.paths() if presets.preset(slug).config is not None]
H100 = accelerator("h100")


def of(slug: str) -> Costs:
    return costs_of(presets.model(slug).counts)


@pytest.mark.parametrize("a, k", [("0", 4), ("0.5", 1), ("0.8", 4), ("0.95", 16), ("1", 7)])
def test_expected_tokens_are_the_closed_form(a, k):
    """(1 − aᵏ⁺¹)/(1 − a), and k + 1 where all are accepted."""
    a = Fraction(a)
    closed = Fraction(k + 1) if a == 1 else (1 - a ** (k + 1)) / (1 - a)
    assert expected_tokens(a, k) == closed


def test_expected_tokens_as_a_simulation_finds_them():
    chance, total, steps = random.Random(7), 0, 200_000
    for _ in range(steps):
        n = 0
        while n < 5 and chance.random() < 0.7:
            n += 1
        total += n + 1
    assert abs(total / steps - float(expected_tokens(Fraction(7, 10), 5))) < 0.02


def test_llama_3_70b_with_a_draft_of_8b_by_hand():
    """Bandwidth limits all three steps: four of the draft, one of the target over five tokens."""
    given = Conditions(4096, 1, "bfloat16", accelerator=H100)
    target, draft = of("llama3-70b"), of("llama3-8b")
    found = speculation(target, draft, Fraction(4, 5), 4, given)
    rate, token = H100.bytes_per_second, 8192 * 2
    rows = 80 * 2 * 8 * 128 * 2
    step = target.traffic.weight_bytes_read(1, 1) + 4095 * rows + rows
    assert found.plain.seconds == Fraction(step, rate)
    assert found.verify.memory_seconds == Fraction(step + 4 * token, rate), "four more rows of the table; cache as long"
    assert found.draft_seconds == 4 * draft.bound(1, given).seconds
    assert found.tokens == 1 + Fraction(4, 5) + Fraction(16, 25) + Fraction(64, 125) + Fraction(256, 625)
    assert found.speedup == found.plain.seconds * found.tokens / (found.draft_seconds + found.verify.seconds)
    assert 1 < found.speedup < found.tokens


def test_the_logits_of_all_checked_tokens_count():
    """Where arithmetic limits, five tokens cost five times the target's FLOPs of one, head included."""
    given, target = Conditions(5, 4096, "bfloat16", accelerator=H100), of("llama3-8b")
    found = speculation(target, None, Fraction(1), 4, given)
    per_token = 2 * (target.counts.total - 128256 * 4096 - 65 * 4096)
    assert found.verify.compute_seconds * H100.peak() > Fraction(5 * per_token * 4096)
    assert found.verify.compute_seconds * H100.peak() < Fraction(5 * per_token * 4096) * Fraction(1001, 1000)
    assert found.verify.limited_by == "compute"


def test_a_mixture_reads_more_experts_to_check_more_tokens():
    """Mixtral reads 2 of 8 experts for a token and 8·(1 − (3/4)⁵) for five: checking is no longer free."""
    given = Conditions(4096, 1, "bfloat16", accelerator=H100)
    dense, sparse = (speculation(of(s), None, Fraction(1, 2), 4, given) for s in ("llama3-70b", "mixtral-8x7b"))
    assert dense.verify.seconds / dense.plain.seconds < 1.001
    experts = 32 * 3 * 4096 * 14336 * 2
    more = (8 * (1 - Fraction(3, 4) ** 5) - 2) * experts + 4 * 4096 * 2
    assert (sparse.verify.memory_seconds - sparse.plain.memory_seconds) * H100.bytes_per_second == pytest.approx(
        float(more), rel=1e-6
    )


def test_the_best_length_grows_with_acceptance():
    given = Conditions(4096, 1, "bfloat16", accelerator=H100)
    lengths = [best_length(of("llama3-70b"), of("llama3.2-1b"), Fraction(a, 10), given).drafted for a in (1, 5, 8, 9)]
    assert lengths == sorted(lengths) and lengths[0] == 1 < lengths[-1]


@pytest.mark.parametrize("slug", COUNTED)
def test_any_model_as_target_and_as_draft(slug):
    """A model that proposes to itself is never faster; free proposals that are all accepted never slower."""
    costs, given = of(slug), Conditions(64, 2, accelerator=H100)
    own = speculation(costs, costs, Fraction(1, 2), 3, given)
    free = speculation(costs, None, Fraction(1), 3, given)
    assert own.speedup < 1 < own.tokens == Fraction(15, 8)
    assert 1 <= free.speedup < 4.01 and free.draft_seconds == 0, "four tokens' rows are not read from the cache"
    refused = speculation(costs, None, Fraction(0), 3, given)
    assert refused.tokens == 1 and refused.speedup < 1.001
    assert best_length(costs, None, Fraction(1), given, 4).drafted >= 1


def test_checking_more_tokens_takes_no_less_than_one_on_its_way_through_all_stages():
    """14 heads over 4 devices: stages, through which one token reads all weights, however many follow it."""
    target = costs_of(presets.model("qwen2.5-0.5b").counts)
    given = Conditions(4096, devices=4, accelerator=accelerator("h100"))
    assert target.split(given, given.machine.memory_bytes).pipeline > 1
    for drafted in (1, 5):
        found = speculation(target, None, Fraction(4, 5), drafted, given)
        assert found.verify.memory_seconds >= found.plain.memory_seconds and found.speedup <= found.tokens
        assert found.verify.compute_seconds >= found.plain.compute_seconds


def head(kind: str) -> Costs:
    return costs_of(head_of(presets.model("llama3.1-8b"), kind).counts)


def test_a_draft_head_by_hand():
    """An EAGLE-3 head reads its weights, its cache and one row of the target's embedding per token; DFlash also the
    target's LM head, 16 rows of the embedding, but no more."""
    given = Conditions(4096, 1, "bfloat16", accelerator=H100)
    eagle3, dflash = head("eagle3"), head("dflash")
    assert eagle3.traffic.bytes_moved(1, given) == 2 * 424_689_664 + 2 * 4096 + 4096 * 2 * 2 * 8 * 128
    assert eagle3.traffic.target_bytes_read(3, "bfloat16") == 3 * 4096 * 2
    read = dflash.counts.total + 128256 * 4096 + 4096
    assert dflash.traffic.weight_bytes_read(1) == 2 * read
    assert dflash.weight_bytes(given.format) == 2 * dflash.counts.total, "the target holds what is the target's"
    target = of("llama3.1-8b")
    found = speculation(target, eagle3, Fraction(4, 5), 4, given)
    assert found.draft_seconds == 4 * Fraction(eagle3.traffic.bytes_moved(1, given), H100.bytes_per_second)
    assert [w.name for w, _ in dflash.trace.borrowed.values()] == ["embed_tokens.weight", "lm_head.weight"]


@pytest.mark.parametrize("kind, most", [("medusa", 5), ("dflash", 15)])
def test_heads_that_propose_at_once_take_one_step(kind, most):
    given, target, draft = Conditions(4096, accelerator=H100), of("llama3.1-8b"), head(kind)
    found = [speculation(target, draft, Fraction(9, 10), k, given) for k in (1, most)]
    assert found[0].draft_seconds == found[1].draft_seconds == draft.bound(1, given).seconds
    assert best_length(target, draft, Fraction(1), given, 40).drafted == most
    with pytest.raises(Problem, match=f"at most {most}"):
        speculation(target, draft, Fraction(9, 10), most + 1, given)


def test_a_head_of_another_target_is_named():
    eagle3 = head("eagle3")
    assert vocabularies_differ(of("llama3.1-8b"), eagle3) == ()
    [width] = vocabularies_differ(of("llama3.1-70b"), eagle3)
    assert width == "hidden states of 8,192 and 4,096 numbers: the head was made for another target"
    assert len(vocabularies_differ(of("gpt2"), eagle3)) == 2
    assert vocabularies_differ(of("llama3.3-70b"), of("llama3.2-1b")) == (), "a model's own width is its own"


def test_a_head_that_scores_few_tokens_reads_only_their_rows():
    """Of the table of a Gemma 4 assistant with centroids, a token's step reads the rows of the tokens that the best
    ones have: as many as its array of rows holds."""
    golden = draft("gemma4_assistant_ordered")
    made, c = costs_of(golden.model.counts), golden.config
    [table] = (w for w in golden.model.counts.weights if w.name == "model.embed_tokens.weight")
    rows = c.n_centroids_kept * (c.vocab_size // c.n_centroids)
    assert made.traffic.rows_per_token == {table: rows} and rows < c.vocab_size
    assert len({int(i) for i in np.nonzero(golden.logits[-1] > golden.logits[-1].min())[0]}) == rows
    whole = 2 * (golden.model.counts.total - int(table.count)) + made.traffic.target_bytes_read(1, "bfloat16")
    assert made.traffic.weight_bytes_read(1) == whole + 2 * rows * c.d_model
    assert costs_of(draft("gemma4_assistant").model.counts).traffic.rows_per_token == {}


@pytest.mark.parametrize("slug", COUNTED)
def test_any_target_has_heads_or_says_why_not(slug):
    for kind in KINDS:
        try:
            made = head_of(presets.model(slug), kind)
        except Problem as problem:
            assert problem.mend
        else:
            assert made.counts.total == made.counts.total_poly.at(made.counts.trace.symbols) > 0
