"""Rotary embedding: every published scaling against a second derivation, one pair of numbers at a time."""

from __future__ import annotations

import math

import numpy as np
import pytest

from macros.catalogue.presets import make
from macros.engine.architectures.rope_config import fold_rope, fold_rope_by_layer_type, read_rope
from macros.engine.dims import Dim
from macros.engine.errors import Problem
from macros.engine.ops import Rope, apply_rope, apply_rope_pairs, rope_table
from macros.engine.trace import Trace

POSITIONS = np.array([0, 1, 7, 30, 31, 100])
WIDTH = 22
THETA = 499.0


def plain(i: int) -> float:
    """Radians per position of pair i, without scaling."""
    return math.exp(-2 * i / WIDTH * math.log(THETA))


def dynamic(i: int, factor=3.0, trained=32, reached=101) -> float:
    grown = THETA * (factor * reached / trained - factor + 1) ** (WIDTH / (WIDTH - 2))
    return grown ** (-2 * i / WIDTH)


def llama3(i: int, factor=5.0, low=1.5, high=6.0, trained=600) -> float:
    f = plain(i)
    wavelength = 2 * math.pi / f
    if wavelength < trained / high:
        return f
    if wavelength > trained / low:
        return f / factor
    mix = (trained / wavelength - low) / (high - low)
    return (1 - mix) * f / factor + mix * f


def yarn(i: int, factor=6.0, trained=64, fast=20.0, slow=1.5, whole=True) -> float:
    def at(turns):  # the pair, as a fraction of an index, that turns so often within the trained length
        return WIDTH / 2 * math.log(trained / (2 * math.pi * turns), THETA)

    first, last = (math.floor(at(fast)), math.ceil(at(slow))) if whole else (at(fast), at(slow))
    first, last = max(first, 0), min(last, WIDTH - 1)
    ramp = min(max((i - first) / (last - first), 0), 1)
    return plain(i) * (1 - ramp) + plain(i) / factor * ramp


SHORT, LONG = [1 + 0.1 * i for i in range(WIDTH // 2)], [2 + 0.3 * i for i in range(WIDTH // 2)]
YARN = {"rope_type": "yarn", "factor": 6, "original_max_position_embeddings": 64, "beta_fast": 20, "beta_slow": 1.5}
LONGROPE = {"type": "longrope", "short_factor": SHORT, "long_factor": LONG, "attention_factor": 1.25}
CASES = {
    "default": ({}, plain, 1.0),
    "linear": ({"type": "linear", "factor": 8.0}, lambda i: plain(i) / 8, 1.0),
    "dynamic": ({"type": "dynamic", "factor": 3.0, "max_position_embeddings": 32}, dynamic, 1.0),
    "dynamic, within the trained length": (
        {"type": "dynamic", "factor": 3.0, "max_position_embeddings": 101},
        plain,
        1.0,
    ),
    "llama3": (
        {
            "rope_type": "llama3",
            "factor": 5,
            "low_freq_factor": 1.5,
            "high_freq_factor": 6,
            "original_max_position_embeddings": 600,
        },
        llama3,
        1.0,
    ),
    "yarn": (YARN, yarn, 1 + math.log(6) / 10),
    "yarn, not cut to whole pairs": (YARN | {"truncate": False}, lambda i: yarn(i, whole=False), 1 + math.log(6) / 10),
    "yarn, with mscale": (
        YARN | {"mscale": 2.0, "mscale_all_dim": 0.5},
        yarn,
        (1 + 0.2 * math.log(6)) / (1 + 0.05 * math.log(6)),
    ),
    "yarn, with a factor of its own": (YARN | {"attention_factor": 1.75}, yarn, 1.75),
    "longrope, long": (
        LONGROPE | {"original_max_position_embeddings": 100, "factor": 2},
        lambda i: plain(i) / LONG[i],
        1.25,
    ),
    "longrope, short": (
        LONGROPE | {"original_max_position_embeddings": 101, "factor": 2},
        lambda i: plain(i) / SHORT[i],
        1.25,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_angles(case):
    table, frequency, amplitude = CASES[case]
    cos, sin = rope_table(POSITIONS, WIDTH, read_rope(table, theta=THETA))
    angles = np.array([[p * frequency(i) for i in range(WIDTH // 2)] for p in POSITIONS])
    np.testing.assert_allclose(cos, amplitude * np.cos(angles), atol=1e-6)
    np.testing.assert_allclose(sin, amplitude * np.sin(angles), atol=1e-6)


@pytest.mark.parametrize("case", CASES)
def test_shapes_agree_with_arrays(case):
    run = Trace()
    rope = read_rope(CASES[case][0], theta=THETA)
    traced = rope_table(run.input((Dim(len(POSITIONS), "T"),)), Dim(WIDTH, "d_head"), rope)
    for shape_only, real in zip(traced, rope_table(POSITIONS, WIDTH, rope)):
        assert tuple(map(int, shape_only.shape)) == real.shape and shape_only.dtype == real.dtype


def test_published_amplitudes():
    """Olmo 3 publishes 1.2079… for YaRN by 8; Phi-3's code has √(1 + ln 32 / ln 4096) for 128K from 4K."""
    olmo = {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 8192}
    assert read_rope(olmo).amplitude == pytest.approx(1.2079441541679836, abs=1e-15)
    phi = {
        "type": "longrope",
        "short_factor": SHORT,
        "long_factor": LONG,
        "original_max_position_embeddings": 4096,
        "max_position_embeddings": 131072,
    }
    assert read_rope(phi).amplitude == pytest.approx(math.sqrt(17 / 12), abs=1e-15)


def turned_by_hand(x, pairs, frequency=plain):
    """Each pair (a, b) as the complex number a + b·i, times e^(i·angle)."""
    out = x.astype(np.float64)
    for t, position in enumerate(POSITIONS):
        for number, (a, b) in enumerate(pairs):
            z = (x[t, :, a] + 1j * x[t, :, b]) * np.exp(1j * position * frequency(number))
            out[t, :, a], out[t, :, b] = z.real, z.imag
    return out


HALVES = [(i, i + WIDTH // 2) for i in range(WIDTH // 2)]
NEIGHBOURS = [(2 * i, 2 * i + 1) for i in range(WIDTH // 2)]


@pytest.mark.parametrize("function, pairs", [(apply_rope, HALVES), (apply_rope_pairs, NEIGHBOURS)])
@pytest.mark.parametrize("head", [WIDTH, WIDTH + 11])
def test_rotation(function, pairs, head):
    """A head wider than the table keeps its last numbers."""
    x = np.random.default_rng(3).normal(size=(len(POSITIONS), 3, head)).astype(np.float32)
    table = rope_table(POSITIONS, WIDTH, Rope(THETA))
    turned = function(x, table)
    np.testing.assert_allclose(turned, turned_by_hand(x, pairs), atol=1e-5)
    np.testing.assert_array_equal(turned[..., WIDTH:], x[..., WIDTH:])
    np.testing.assert_array_equal(turned[0], x[0])


@pytest.mark.parametrize("function", [apply_rope, apply_rope_pairs])
def test_scores_depend_on_the_distance_only(function):
    q, k = np.random.default_rng(4).normal(size=(2, 1, 1, WIDTH))
    near, far = (
        function(q, rope_table(np.array([p]), WIDTH, Rope(THETA))).ravel()
        @ function(k, rope_table(np.array([p - 5]), WIDTH, Rope(THETA))).ravel()
        for p in (6, 77)
    )
    assert near == pytest.approx(far, abs=1e-4)


@pytest.mark.parametrize(
    "partial, head, turning", [(1.0, 22, 22), (0.5, 44, 22), (0.4, 80, 32), (0.25, 64, 16), (0.75, 128, 96)]
)
def test_partial(partial, head, turning):
    rope = read_rope({"partial_rotary_factor": partial})
    assert rope.turning(head) == turning
    assert rope_table(POSITIONS, head, rope)[0].shape == (len(POSITIONS), turning // 2)


def test_partial_keeps_its_symbol():
    assert str(read_rope({"partial_rotary_factor": 0.25}).turning(Dim(64, "d_head"))) in ("1/4·d_head", "d_head/4")


def test_both_generations_of_keys():
    """`rope_theta` and `rope_scaling`, or one `rope_parameters`; a key inside goes before one beside."""
    scaling = {"factor": 4.0, "rope_type": "linear"}
    old = fold_rope({"rope_theta": 77.0, "rope_scaling": scaling, "partial_rotary_factor": 0.5})
    new = fold_rope(
        {"rope_theta": 11.0, "rope_parameters": scaling | {"rope_theta": 77.0, "partial_rotary_factor": 0.5}}
    )
    assert read_rope(old["rope_parameters"]) == read_rope(new["rope_parameters"]) == Rope(77.0, "linear", 4.0, {}, 0.5)
    assert read_rope(fold_rope({"rope_scaling": None})["rope_parameters"], theta=5.0) == Rope(5.0)


def test_the_trained_length():
    """Beside the table it goes before one inside; without either it is `max_position_embeddings`."""
    llama = {"rope_type": "llama3", "factor": 2.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    inside = llama | {"original_max_position_embeddings": 32}
    for raw, expected in [
        ({"rope_scaling": llama, "max_position_embeddings": 128}, 128),
        ({"rope_scaling": inside, "max_position_embeddings": 128}, 32),
        ({"rope_scaling": inside, "original_max_position_embeddings": 64}, 64),
    ]:
        assert read_rope(fold_rope(raw)["rope_parameters"]).more["original_max_position_embeddings"] == expected


def test_a_table_for_each_layer_type():
    nested = {
        "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
        "sliding_attention": {"rope_theta": 1e4},
    }
    once = {"rope_theta": 1e6, "rope_scaling": {"type": "linear", "factor": 8.0}}
    for raw in ({"rope_parameters": nested}, once):
        table = fold_rope_by_layer_type(dict(raw), sliding_theta=1e4)["rope_parameters"]
        assert read_rope(table, layer_type="full_attention") == Rope(1e6, "linear", 8.0)
        assert read_rope(table, layer_type="sliding_attention") == Rope(1e4)
    assert read_rope(fold_rope_by_layer_type({})["rope_parameters"], 5.0, "sliding_attention") == Rope(5.0)
    with pytest.raises(Problem, match="has a table for each of"):
        read_rope(nested)


@pytest.mark.parametrize(
    "table, message",
    [
        ({"rope_type": "exponential"}, "rope_type = 'exponential': unknown"),
        ({"rope_type": "yarm", "factor": 2}, 'did you mean "yarn"'),
        ({"type": "linear"}, "factor is missing"),
        ({"type": "linear", "factor": "8"}, "factor = '8': expected a positive number"),
        ({"type": "linear", "factor": True}, "factor = True: expected a positive number"),
        ({"type": "yarn", "factor": 4}, "original_max_position_embeddings is missing"),
        ({"type": "dynamic", "factor": 4}, "max_position_embeddings is missing"),
        (
            {"type": "longrope", "factor": 4, "original_max_position_embeddings": 9, "short_factor": SHORT},
            "long_factor is missing",
        ),
        (
            {
                "type": "longrope",
                "factor": 4,
                "original_max_position_embeddings": 9,
                "short_factor": SHORT,
                "long_factor": [1, 0],
            },
            "long_factor = 0",
        ),
        ({"type": "longrope", "factor": 4, "short_factor": 5}, "short_factor = 5: expected a list of numbers"),
        ({"partial_rotary_factor": 1.5}, "at most 1"),
        ({"rope_theta": -3}, "rope_theta = -3"),
    ],
)
def test_clear_problems(table, message):
    with pytest.raises(Problem) as found:
        read_rope(table)
    assert message in str(found.value)


def test_widths_that_do_not_fit():
    with pytest.raises(Problem, match="a head of 21 numbers"):
        rope_table(POSITIONS, 21, Rope())
    with pytest.raises(Problem, match="short_factor has 11 numbers"):
        rope_table(POSITIONS, 20, read_rope(LONGROPE | {"original_max_position_embeddings": 9, "factor": 2}))


def test_a_stretched_embedding_may_have_an_amplitude_for_each_length():
    """Phi-3-small for 128K tokens: one amplitude within the trained 8,192 tokens, another beyond."""
    sizes = dict(model_type="phi3small", vocab_size=61, hidden_size=24, num_hidden_layers=1, num_attention_heads=6)
    table = dict(type="su", original_max_position_embeddings=8192, short_factor=[1.0, 1.5], long_factor=[3.0, 9.0])
    table |= dict(short_mscale=1.05, long_mscale=1.19)
    rope = make(
        "it",
        sizes
        | dict(num_key_value_heads=2, ff_intermediate_size=40, max_position_embeddings=131072)
        | {"rope_scaling": table},
    ).config.rope
    for longest, amplitude in ((8191, 1.05), (8192, 1.19)):
        cos, sin = rope_table(np.array([0, longest]), 4, rope)
        assert np.allclose(cos**2 + sin**2, amplitude**2, rtol=1e-6)
