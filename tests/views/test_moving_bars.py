"""Bars that move: formulas of a page as data, evaluated as the macros evaluate them, and drawn to one scale."""

import html
import re

import pytest

from macros.catalogue import presets
from macros.counting.accelerators import accelerator
from macros.engine.errors import Problem
from macros.views.charts.bar_values import bars, evaluate, largest
from macros.views.guide.ask_first import ask_first
from macros.views.guide.moving_bars import moving_bars
from macros.views.kit.formula_trees import formula_tree
from macros.views.kit.values import number

MODELS = "llama3.1-8b", "deepseek-v3", "gemma3-27b", "jamba-v0.1", "falcon-mamba-7b", "gpt-oss-20b"


@pytest.mark.parametrize("slug", MODELS)
@pytest.mark.parametrize("name", ["cache_bytes", "decode_flops"])
def test_a_cost_moves_with_the_context(slug, name):
    model = presets.model(slug)
    tree = formula_tree(f"users * m.{name} + 7", {"m": model}, {"users": (1, 3), "context": (1, 5)})
    for context in (1, 5, 4099, 131_072):
        assert evaluate(tree, [3, context]) == 3 * number(model, name, context) + 7


def test_flops_are_those_of_weights_and_of_tokens():
    model = presets.model("llama3.1-8b")
    parts = [
        formula_tree(f"m.decode_flops_of_{of}", {"m": model}, {"context": (1, 1000)}) for of in ("weights", "tokens")
    ]
    weights, tokens = (evaluate(tree, [1000]) for tree in parts)
    assert weights + tokens == model.counts.decode_flops(1000)
    assert tokens == 4 * 32 * 32 * 128 * 1000  # scores and weighted sums, 2 FLOPs each: layers, heads, width of a head


def test_an_image_moves_with_its_side():
    """Qwen3-VL makes a token of each 32 × 32 pixels; Gemma 3 of any image the same number."""
    owners = {"q": presets.model("qwen3-vl-2b"), "g": presets.model("gemma3-4b"), "t": presets.model("gpt2")}
    sides = {"side": (224, 448, 1024)}
    for side in sides["side"]:
        assert evaluate(formula_tree("q.image_tokens", owners, sides), [side]) == (side // 32) ** 2
        assert evaluate(formula_tree("g.image_tokens", owners, sides), [side]) == 256
    with pytest.raises(Problem, match="reads no images"):
        formula_tree("t.image_tokens", owners, sides)


BLOCKS = 32 * (2 * 4096 * 5120 + 3 * 4096 * 14336) // 64  # of Llama 3.1 8B’s linear layers, of 64 weights


@pytest.mark.parametrize(
    "source, value",
    [
        ("(x + 3) * 5 - y", (7 + 3) * 5 - 2),
        ("100 // x % 5", 100 // 7 % 5),
        ("x ** 3 - (-y)", 7**3 + 2),
        ("2 * g.memory_bytes // x", 2 * accelerator("rtx-4090").memory_bytes // 7),
        ("x * m.lora_per_rank", 7 * 32 * (4 * 4096 + 2 * (4096 + 1024) + 3 * (4096 + 14336))),
        ("m.weights_in_Q8_0", 8_532_934_656),  # 34 bytes for 32 weights of a matrix, 4 bytes for a weight of a norm
        ("m.read_in_bfloat16", 2 * (8_030_261_248 - 128_255 * 4096)),  # of the embedding, one row
        # a block's scale in 1 byte instead of 4; 256 of these share 4 bytes, and a matrix has a table of 256 steps
        ("m.weights_in_nf4 - m.weights_in_nf4_dq", BLOCKS * 3 - BLOCKS // 256 * 4 - 32 * 7 * 256 * 4),
    ],
)
def test_a_formula_is_evaluated_as_python_evaluates_it(source, value):
    owners = {"g": accelerator("rtx-4090"), "m": presets.model("llama3.1-8b")}
    assert evaluate(formula_tree(source, owners, {"x": (1, 7), "y": (1, 2)}), [7, 2]) == value


@pytest.mark.parametrize(
    "source, said",
    [
        ("m.totl", "did you mean"),
        ("layers * x", "no model, machine or size"),
        ("x / 2", "//"),
        ("g.flops", "flops_per_second"),
        ("x * ", "not a formula"),
    ],
)
def test_a_wrong_formula_is_told(source, said):
    owners = {"g": accelerator("h100"), "m": presets.model("gpt2")}
    with pytest.raises(Problem) as raised:
        formula_tree(source, owners, {"x": (1, 2)})
    assert said in str(raised.value)


def test_bars_are_to_one_scale():
    x, n = ["x", 0], ["n", 10]
    rows = [["one", [[0, x], [1, n]]], ["two", [[0, ["*", x, x]]]]]
    assert largest(rows, [1, 4, 6], [4]) == 36
    first, second = bars(rows, [6], 36)
    assert (first.label, first.total, second.total) == ("one", 16, 36)
    assert [(s.kind, s.amount) for s in first.segments] == [(0, 6), (1, 10)]
    assert first.segments[1].start == pytest.approx(100 * 6 / 36) == first.segments[0].width
    assert second.segments[0].width == pytest.approx(100)


def test_the_figure_has_its_states_and_the_numbers_of_the_command_line():
    """`every-parameter fits llama3.1-8b --on rtx-4090 --context 32768`: 16.1 GB and 4.29 GB."""
    rows = {"Memory": {"Weights": "2 * m.total", "KV cache": "m.cache_bytes"}}
    made = moving_bars(
        rows, {"context": (4096, 32768, 131072)}, (4096, 32768, 131072), lines=("rtx-4090",), m="llama3.1-8b"
    )
    assert re.findall(r'ep-panel-title">([^<]*)', made) == ["Context 4,096", "Context 32,768", "Context 131,072"]
    assert made.count("ep-bars lit") == 1 and made.index("ep-bars lit") > made.index("Context 4,096")
    said = html.unescape(str(made))
    assert "Context 32,768: Weights 16.1 GB; KV cache 4.29 GB; together 20.4 GB." in said
    assert made.count('class="device"') == 3 + 1  # a line in each bar, and in the key


@pytest.mark.parametrize(
    "call, said",
    [
        (lambda: moving_bars({}), "map each label"),
        (lambda: moving_bars({"a": "x"}, {"x": (1,)}, (1,)), "two or more"),
        (lambda: moving_bars({"a": "x"}, {"x": (1, 2)}, (3,)), "among the stops"),
        (lambda: moving_bars({"a": "x"}, {"x": (1, 2)}, (2,), unit="byte"), "bytes"),
        (lambda: moving_bars({"a": "m.total"}, m=("gpt2", "gpt2-xl"), n=("gpt2", "gpt2-xl")), "at most"),
        (lambda: ask_first("?", {"a": "b"}, right="a"), "2 to 4"),
        (lambda: ask_first("?", {"a": "b", "c": "d"}, right="e"), "one of the answers"),
        (lambda: ask_first("?", {"a": "b", "c": ""}, right="a"), "explain"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(call, said):
    with pytest.raises(Problem) as raised:
        call()
    assert said in str(raised.value)


def test_an_answer_opens_alone_and_says_whether_it_is_right():
    made = ask_first("Wider or deeper?", {"wider": "It has four.", "deeper": "It has two."}, right="wider")
    names = re.findall(r'<details name="([^"]+)" class="([^"]+)">', made)
    assert len({name for name, _ in names}) == 1 and [cls for _, cls in names] == ["ep-choice right", "ep-choice"]
    assert re.findall(r"<b>(\w+)", made) == ["Right", "No"]
