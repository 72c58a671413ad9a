"""A model's capacity says what its trace says, of every model of the catalogue, under drawn conditions."""

import json
import random

import pytest
from sampling import fewer

from macros.catalogue import presets
from macros.counting import fitting
from macros.counting.accelerators import accelerators
from macros.counting.capacity import Capacity, value_of
from macros.counting.conditions import Conditions
from macros.counting.costs import of as costs_of
from macros.counting.divided import Divided
from macros.counting.formats import CACHE_BYTES
from macros.counting.own_machine import named
from macros.data.capacity import Packing, capacity, divided

MODELS = [slug for slug in presets.paths() if presets.preset(slug).config is not None]
MACHINES = ("8GB", "24GB,1008GB/s,165TFLOPS", "64GB,2xDDR5-5600", "h100", "b200")


@pytest.mark.exhaustive
def test_every_model_answers_as_its_trace_does():
    rng = random.Random("capacity")
    fitted, slugs = 0, fewer(MODELS, 5)
    for slug in slugs:
        data = json.loads(json.dumps(capacity(slug)))
        sized, costs = Capacity(data), costs_of(presets.model(slug).counts)
        for context in (1, 8, 4099):  # in blocks and pools that the newest token begins, fills and is within
            forms = sorted((value_of(maps, context), value_of(pairs, context)) for maps, pairs in sized.forms)
            assert forms == sorted(costs.compute.forms(1, context)), (slug, context)
        on = {1: sized, (n := rng.choice((2, 3))): Divided(sized, json.loads(json.dumps(divided(slug, n))))}
        for devices in (1, n) * 3:
            context = rng.choice((1, 2, 129, 4097, 32_768, rng.randrange(1, 10**6)))
            format, cache = rng.choice([*data["weights"]]), rng.choice([*CACHE_BYTES])
            given = Conditions(context, rng.choice((1, 2, 200)), format, cache, devices)
            machine = named(rng.choice(MACHINES), accelerators())
            here, there = (fitting.answer(one, given, machine) for one in (on[devices], costs))
            assert here == there, (slug, given)
            best, other = (fitting.chosen(one, "best", given, machine.memory_bytes) for one in (on[devices], costs))
            assert best == other, (slug, given)
            fitted += best is not None
    assert fitted > len(slugs)


@pytest.mark.parametrize("slug", ["deepseek-v3", "gpt-oss-20b", "t5-small", "recurrentgemma-2b"])
def test_a_format_outside_the_ladder_is_added(slug):
    costs = costs_of(presets.model(slug).counts)
    for format in fitting.LISTED:
        data = Packing(costs).weights_in(format)
        assert (data is not None) == costs.is_there(format)
        if data is not None:
            sized = Capacity(json.loads(json.dumps(capacity(slug))))
            sized.add(format, data)
            machine = named("h100", accelerators())
            at = Conditions(8192, 3, format)
            assert fitting.answer(sized, at, machine) == fitting.answer(costs, at, machine)


def test_a_polynomial_is_read():
    # 3·S² + 2·min(S, 5)·(S // 4) − 7
    terms = [[3, 2], [2, 0, ["min", [[1, 1]], [[5, 0]]], ["//", [[1, 1]], [[4, 0]]]], [-7, 0]]
    assert value_of(terms, 9) == 3 * 81 + 2 * 5 * 2 - 7 and value_of([[1, 0, ["%", [[1, 1]], [[4, 0]]]]], 7) == 3


def test_as_many_texts_fit_as_are_said_and_no_more():
    for slug, on, devices in (("llama3-8b", "h100", 1), ("deepseek-v3", "h200", 8), ("qwen3-30b-a3b", "h100", 2)):
        costs, machine = costs_of(presets.model(slug).counts), named(on, accelerators())
        given = Conditions(4096, devices=devices)
        most = costs.batch_that_fits(machine.memory_bytes, given)
        assert most > 8
        for batch, fits in ((most, True), (most + 1, False)):
            at = Conditions(4096, batch, devices=devices)
            assert fitting.holds(costs, at, machine.memory_bytes) == fits, (slug, batch)


def test_the_first_format_that_fits_is_the_best():
    costs = costs_of(presets.model("qwen3-14b").counts)
    given, last = Conditions(8192), 10**12
    for format in fitting.LADDER:
        terms = costs.device_bytes(Conditions(8192, format=format))
        assert terms is not None
        if sum(terms.values()) < last:
            last = sum(terms.values())
            assert fitting.chosen(costs, "best", given, last) == format
    assert fitting.chosen(costs, "best", given, last - 1) is None and fitting.smallest(costs) == "Q2_K"


def test_a_mixture_is_named_by_its_types():
    assert fitting.in_words("published", "experts in mxfp4, the rest in bfloat16") == "as published (mxfp4, bfloat16)"
    assert fitting.in_words("published", "bfloat16") == "bfloat16, as published"
    assert fitting.in_words("Q4_K_M", "Q4_K_M") == "Q4_K_M"
