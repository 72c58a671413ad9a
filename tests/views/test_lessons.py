"""The pages that teach from the ground: small products, one head, the shapes on the way, a model for a budget."""

from __future__ import annotations

import html
import re

import numpy as np
import pytest

from macros.catalogue import presets
from macros.engine.errors import Problem
from macros.views.guide import arithmetic, designs, matmul, model_size
from macros.views.trace import walkthrough


def plain(markup: object) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", str(markup))).split())


def numbers(markup: object) -> list[int]:
    return [int(n.replace(" ", "")) for n in re.findall(r"(?:− )?\d+", plain(markup).replace("−", "-"))]


def test_a_dot_product_is_worked_out():
    assert plain(arithmetic.dot_product([2, 1, 3], [-1, 4, -2])) == "2 ⋅ ( − 1 ) + 1 ⋅ 4 + 3 ⋅ ( − 2 ) = − 4"
    with pytest.raises(Problem, match="3 numbers and b 2"):
        arithmetic.dot_product([2, 1, 3], [1, 4])


def test_a_product_of_matrices_is_computed():
    left, right = [[2, 1, 3], [1, 0, 7]], [[1, 0], [4, 11], [2, 5]]
    product = (np.array(left) @ np.array(right)).ravel().tolist()
    assert numbers(arithmetic.matrix_product(left, right)) == [*sum(left, []), *sum(right, []), *product]
    assert plain(arithmetic.matrix_cell(left, right, 2, 1)) == f"1 ⋅ 1 + 0 ⋅ 4 + 7 ⋅ 2 = {product[2]}"


@pytest.mark.parametrize(
    "call, said",
    [
        (lambda: arithmetic.matrix_product([[1, 2]], [[1, 2]]), "must be equal"),
        (lambda: arithmetic.matrix_product([[1, 2], [1]], [[1], [2]]), "not rows of whole numbers"),
        (lambda: arithmetic.matrix_product([["a"]], [[1]]), "not rows of whole numbers"),
        (lambda: arithmetic.matrix_cell([[1]], [[1]], 1, 2), "1 rows and 1 columns"),
        (lambda: walkthrough.walkthrough("gpt2", part="mamba"), "no layer of gpt2"),
        (lambda: walkthrough.shape_after("gpt2", "atention"), "attention"),
        (lambda: designs.design_table("gpt2", 8, 8192), "Llama"),
        (lambda: designs.design_result("llama3-8b", 8, 8192, "layers"), "did you mean"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(call, said):
    with pytest.raises(Problem) as raised:
        call()
    assert said in str(raised.value)


def test_a_part_alone_is_as_in_the_whole():
    """Its steps stand in the whole walkthrough, and its FLOPs and parameters are those of the trace."""
    whole, part = walkthrough.walkthrough("mamba-130m"), walkthrough.walkthrough("mamba-130m", part="mamba")
    steps = re.findall(r'<div class="ep-what">.*?</div>', part)[:-1]
    assert len(steps) > 8 and all(step in whole for step in steps)
    model = presets.model("mamba-130m")
    [node] = [n for n in model.trace.root.walk() if str(n.role) == "mamba"]
    parameters = sum(int(w.count) // int(w.layer_count) for w in node.all_weights())
    flops = node.flops.at(model.counts.values(T=5, S=5))
    assert f"{parameters:,} parameters in each layer, {flops:,} FLOPs" in plain(part)


def test_the_shape_on_the_way_stays():
    """Every station of GPT-2 but the last one, and the recap says what the trace has."""
    for station in ("embed", "embed_positions", "attention", "feed_forward", "layer"):
        assert plain(walkthrough.shape_after("gpt2", station, tokens=7)) == "[7, 768]"
    assert plain(walkthrough.shape_after("gpt2", "unembed", tokens=7)) == "[1, 50257]"
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", walkthrough.recap("gpt2", tokens=7))
    shapes = [plain(row).split()[-2:] for row in rows if "7, 768" in row]
    assert len(shapes) == 10 and "1, 50257" in rows[-1]


def test_one_head_and_then_all():
    said = plain(matmul.one_head("gpt2", tokens=7))
    assert "[7, 768] × [768, 64] → [7, 64]" in said and "12 × 64 = 768" in said and "[7, 768] side by side" in said


def test_a_break_is_explained_where_it_is_seen():
    drawings = [matmul.matmul("gpt2", "c_fc"), matmul.matmul_figure(40, 60, 30), matmul.matmul_figure(1, 900, 900)]
    for drawing in drawings:
        assert ("ep-break" in drawing) == ("Zigzag" in plain(drawing))
    assert {"ep-break" in drawing for drawing in drawings} == {True, False}


@pytest.mark.parametrize("room, context", [(8, 8192), (16, 1024)])
def test_a_design_fits_and_one_layer_more_does_not(room, context):
    found = designs.designs("llama3-8b", room, context)
    assert len(found) > 3
    for design in found:
        sizes = {name: design.size(name) for name in ("d_model", "n_layers", "n_heads", "d_ff", "n_kv_heads", "d_head")}
        D, L, N, F, K, H = sizes.values()
        V = design.size("vocab_size")
        one_layer = D * N * H * 2 + 2 * D * K * H + 3 * D * F + 2 * D
        total = 2 * V * D + L * one_layer + D
        cache_of_a_layer = 2 * 2 * K * H * context
        assert design.model.counts.total == total and design.of_a_layer == one_layer and design.tables == 2 * V * D
        assert (design.weights, design.cache) == (2 * total, L * cache_of_a_layer)
        assert 2 * total + L * cache_of_a_layer <= room * 10**9 < 2 * (total + one_layer) + (L + 1) * cache_of_a_layer


def test_the_marked_design_is_the_one_that_the_page_speaks_of():
    table = designs.design_table("llama3-8b", 8, 8192)
    [marked] = re.findall(r'<tr class="total">(.*?)</tr>', table)
    for what in ("d_model", "n_heads", "d_ff", "n_layers", "total", "weights", "cache"):
        assert designs.design_result("llama3-8b", 8, 8192, what) in plain(marked), what


def test_a_config_in_python():
    said = plain(model_size.python_config("llama-7b"))
    sizes = presets.model("llama-7b").counts.values()
    for name in model_size.CHOSEN:
        assert f'"{name}" : {sizes[name]} ,' in said
    assert said.count("#") == len(model_size.CHOSEN) and said.startswith("chosen before training"), "a line for each"


def test_widths_at_a_glance_are_the_commonest():
    """By a second count, from the presets."""
    models = [presets.model(slug) for slug in presets.paths() if presets.preset(slug).config is not None]
    widths = [m.counts.values()["d_model"] for m in models if m.counts.total < 3 * 10**9]
    commonest = sorted(set(widths), key=widths.count, reverse=True)[:3]
    [small] = re.findall(r"<tr><th[^>]*>Small</th>(.*?)</tr>", model_size.widths_at_a_glance())
    assert all(f"{width:,}" in plain(small) for width in commonest if widths.count(width) > widths.count(commonest[2]))
