"""What torch and transformers said, as the catalogue keeps it, against our counts of the same small configs.

Mend: `python -m tests.reference` writes the file anew; a new type needs a small config or a reason in tests/reference.
"""

from __future__ import annotations

import datetime

import pytest
from reference import TOLERANCE, each_has
from reference.configs import ABSENT, PROMPT, configs, model
from reference.conventions import CACHE, FLOPS, differences, kept

from macros.catalogue.independent import comparison
from macros.engine.architectures import architectures

MADE = comparison()


def test_every_type_is_compared_or_says_why_not():
    why_not = "or say why not in ABSENT of tests/reference/configs.py"
    small = "add one to tests/reference/configs.json"
    each_has(architectures().keys() - configs().keys() - ABSENT.keys(), "has no small config", f"{small}, {why_not}")
    made = "python -m tests.reference TYPE"
    lacking = configs().keys() - MADE.types.keys()
    each_has(lacking, "is not compared in macros/catalogue/independent.toml", f"{made}, {why_not}")
    each_has(MADE.types.keys() - configs().keys(), "has a row in independent.toml", "remove it, or add the type")
    differ = {t for t in MADE.absent.keys() | ABSENT.keys() if MADE.absent.get(t) != ABSENT.get(t)}
    each_has(differ, "has another reason in independent.toml than in ABSENT", "copy the one to the other")
    each_has(ABSENT.keys() - architectures().keys(), "has a reason in ABSENT", "remove it, or add the type")
    assert all(MADE.absent.values())


def test_the_comparison_says_when_and_with_what_it_was_made():
    assert isinstance(MADE.date, datetime.date)
    assert MADE.versions.keys() == {"python", "numpy", "torch", "transformers"}
    assert all(MADE.versions.values())
    assert MADE.tokens == PROMPT


def test_each_convention_explains_a_difference():
    assert MADE.conventions == {name: convention.sentence for name, convention in (FLOPS | CACHE).items()}
    used = {n for t in MADE.types.values() for more in (t.prompt_more, t.step_more, t.cache_more) for n in more}
    assert used == MADE.conventions.keys()


@pytest.mark.parametrize("model_type", MADE.types)
def test_our_counts_are_theirs_but_for_the_conventions(model_type):
    theirs, ours = MADE.types[model_type], model(model_type)
    assert theirs.tensors == sum(1 for _ in ours.counts.tensors())
    assert theirs.parameters == ours.counts.total
    assert 0 < theirs.logits < TOLERANCE
    assert theirs.prompt_more == differences(FLOPS, ours, PROMPT, PROMPT)
    assert theirs.prompt == ours.counts.flops_at(PROMPT, PROMPT) + sum(theirs.prompt_more.values())
    if theirs.step is None:
        assert theirs.cache is None
        assert not theirs.step_more and not theirs.cache_more
        return
    after = PROMPT + 1
    assert theirs.step_more == differences(FLOPS, ours, 1, after)
    assert theirs.step == ours.counts.flops_at(1, after) + sum(theirs.step_more.values())
    assert theirs.cache_more == differences(CACHE, ours, 1, after)
    assert theirs.cache == kept(ours, after) + sum(theirs.cache_more.values())
