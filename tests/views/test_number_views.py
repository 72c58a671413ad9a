"""Views of a checkpoint's numbers: what they show is what the forward pass computes."""

from __future__ import annotations

import json
import re
from html import unescape

import numpy as np
import pytest
import safetensors.numpy
from reference import golden
from sampling import sampled

from macros.catalogue import capitals, presets
from macros.catalogue.checkpoints import checkpoint
from macros.engine.errors import Problem
from macros.engine.forward import logits
from macros.engine.ops import layer_norm, softmax
from macros.views.diagrams import model_diagrams
from macros.views.guide import ablations, attention
from macros.views.guide import capitals as views
from macros.views.guide import real_numbers as real
from macros.views.kit.model_mark import model_mark
from macros.views.trace import walkthrough

TEXT = real.TEXT


@pytest.fixture(scope="module")
def small():
    return checkpoint("capitals")


def cells(html, row: str) -> list[str]:
    """The cells of the row that this heads."""
    [found] = re.findall(rf'<th scope="row">{row}</th>(.*?)</tr>', html)
    return [re.sub("<.*?>", "", cell) for cell in re.findall("<td.*?</td>", found)]


def number(cell: str) -> float:
    return float(cell.replace("−", "-").replace("&#37;", "").replace("∞", "inf"))


def by_hand(small, layer=0, head=0):
    """Queries, keys and shares of one head, by NumPy and the file's tensors alone."""
    w = {name.removeprefix("transformer."): small.files[name].astype(np.float64) for name in small.files}
    ids, width = small.tokenizer.encode(TEXT), small.model.config.d_head
    x = w["wte.weight"][ids] + w["wpe.weight"][: len(ids)]
    assert layer == 0
    x = x - x.mean(-1, keepdims=True)
    x = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * w["h.0.ln_1.weight"] + w["h.0.ln_1.bias"]
    q, k, _ = np.split(x @ w["h.0.attn.c_attn.weight"] + w["h.0.attn.c_attn.bias"], 3, -1)
    q, k = (a[:, head * width : (head + 1) * width] for a in (q, k))
    scores = q @ k.T / np.sqrt(width)
    return q, k, softmax(np.where(np.tri(len(ids), dtype=bool), scores, -np.inf))


def test_a_matrix_has_the_numbers_of_the_forward_pass(small):
    q, _, _ = by_hand(small, head=3)
    shown = real.number_matrix("q", layer=0, head=3)
    for word, row in zip(TEXT.split(), q):
        *first, dots = cells(shown, word)
        assert dots == "…" and [number(cell) for cell in first] == pytest.approx(row[: len(first)], abs=0.006)
    every = re.search(r"<pre.*?>(.*?)</pre>", shown)[1].split("&#10;")
    for line, row in zip(every, q):
        assert [number(x) for x in line.partition(": ")[2].split()] == pytest.approx(row, abs=0.0006)
    assert presets.model("gpt2").name in shown and "&#91;5, 64&#93;" in shown


def test_a_sign_is_told_by_a_minus_a_direction_and_a_shade(small):
    q, _, _ = by_hand(small, head=3)
    shown = real.number_matrix("q", layer=0, head=3)
    of_sign = {sign: re.search(rf'<path d="([^"]*)" class="{sign}"', shown)[1].count("M") for sign in ("plus", "minus")}
    assert of_sign["plus"] <= (q > 0).sum() and of_sign["minus"] <= (q < 0).sum()
    for cls, cell in re.findall(r'<td class="num (plus|minus)-\d">(.*?)</td>', shown):
        assert (cls == "minus") == cell.startswith("−")


def test_shares_add_up_to_1_and_none_goes_to_the_future(small):
    *_, shares = by_hand(small, head=3)
    shown = real.attention_table(0, 3)
    for i, (word, row) in enumerate(zip(TEXT.split(), shares)):
        *cells_of_row, total = cells(shown, word)
        assert [*map(number, cells_of_row[: i + 1])] == pytest.approx(row[: i + 1], abs=0.006) and number(total) == 1
        assert cells_of_row[i + 1 :] == ["–"] * (4 - i), "masked, and no weight of 0.00"
    assert shown.count("A hatched cell is masked") == 1 and shown.count('class="num masked"') == 10
    assert "hatched" not in real.attention_table(0, 3, without="causal_mask")
    hidden = real.number_matrix("causal_mask", layer=0, head=3)
    assert cells(hidden, "The")[1:] == ["−∞"] * 4


def test_the_product_by_hand_is_the_forward_pass_s(small):
    q, k, _ = by_hand(small, head=3)
    shown = real.worked_score(5, 2, layer=0, head=3)
    rows = [list(map(number, cells(shown, str(i + 1)))) for i in range(q.shape[1])]
    assert all(round(a * b, 3) == pytest.approx(c, abs=0.0011) for a, b, c in rows)
    total = sum(c for *_, c in rows)
    assert total / np.sqrt(q.shape[1]) == pytest.approx((q[4] @ k[1]) / np.sqrt(q.shape[1]), abs=0.01)
    with pytest.raises(Problem, match="the text has tokens 1 to 5"):
        real.worked_score(6, 1)


def test_the_next_words_are_the_logits(small):
    model = small.model.architecture, small.model.config, small.weights()
    scores = logits(*model, small.tokenizer.encode(TEXT))[0][-1].astype(np.float64)
    for temperature in (1.0, 2.0):
        shown = real.top_words(TEXT, top=3, temperature=temperature)
        for i in np.argsort(-scores)[:3]:
            score, share, _ = cells(shown, small.tokenizer.token(int(i)))
            assert number(score) == pytest.approx(scores[i], abs=0.006)
            assert number(share) == pytest.approx(100 * softmax(scores / temperature)[i], abs=0.06)
    last = real.logits_after_layer(real.run("capitals", TEXT), 2)
    assert last == pytest.approx(scores, abs=1e-4)
    first = real.logits_after_layer(real.run("capitals", TEXT), -1)
    table, place = (small.weights()(f"transformer.{n}.weight", r, 48) for n, r in (("wte", 590), ("wpe", 16)))
    x = table[small.tokenizer.encode(TEXT)[-1:]] + place[4:5]
    assert first == pytest.approx((layer_norm(x, small.weights(), "transformer.ln_f", 1e-5) @ table.T)[0], abs=1e-4)


@pytest.mark.parametrize("temperature", [0, -1, 1e-320, 1e300, float("nan"), float("inf")])
def test_a_temperature_that_no_share_comes_from(temperature):
    with pytest.raises(Problem, match="temperature = .*; give a number from 0.01 to 100"):
        real.top_words(TEXT, temperature=temperature)


def test_a_checkpoint_folder_by_its_path(tmp_path):
    """Another architecture, its own words; and a wrong call is one line."""
    g = golden("llama")
    (tmp_path / "config.json").write_text(json.dumps(g.raw))
    safetensors.numpy.save_file({n: np.ascontiguousarray(t) for n, t in g.tensors.items()}, tmp_path / "m.safetensors")
    words = {f"w{i}": i for i in range(g.raw["vocab_size"])}
    model = {"type": "WordLevel", "vocab": words}
    (tmp_path / "tokenizer.json").write_text(json.dumps({"pre_tokenizer": {"type": "Whitespace"}, "model": model}))
    text, folder = " ".join(f"w{i}" for i in g.ids), str(tmp_path)
    shown = real.top_words(text, top=1, folder=folder)
    assert f"w{g.logits[-1].argmax()}" in shown
    assert "w" in real.number_matrix("q_proj", 1, None, text, folder, model="llama3-8b")
    with pytest.raises(Problem, match="station = 'c_atn'"):
        real.number_matrix("c_atn")
    with pytest.raises(Problem, match="head = 9; give one from 0 to 3"):
        real.number_matrix("softmax", head=9)
    with pytest.raises(Problem, match="layer = 3; give one from 0 to 2"):
        real.attention_table(3, 0)
    with pytest.raises(Problem, match="its final norm is not a LayerNorm"):
        real.logit_lens(text, folder)


def test_the_walk_has_every_step_of_every_layer(small):
    walk = real.number_walk()
    assert walk.count('class="ep-layer"') == small.model.config.n_layers
    for title in ("Softmax", "Up projection", "Output projection"):
        assert walk.count(f'<strong class="ep-name">{title}</strong>') == small.model.config.n_layers
    assert 'aria-label="LM head &#40;unembedding&#41;"' in walk


def test_the_walk_is_of_the_model_that_is_drawn(small):
    """Both name it, and neither says where its config is."""
    marks = [re.findall('data-model="(.*?)"', str(html)) for html in (real.number_walk(), real.layer_drawing())]
    mark = model_mark(small.model)
    assert marks == [[mark], [mark] * 2] and re.fullmatch("[0-9a-f]{12}", mark)


def said(html):
    return unescape(re.sub("<.*?>", "", html)).strip()


def boxes(drawn):
    """The names of a diagram's boxes, as the stepper reads them."""
    for attributes, box in re.findall(r'<g class="node[^"]*"([^>]*)>(.*?)</g>', drawn, re.S):
        named = re.search('aria-label="(.*?)"', attributes)
        lines = re.findall(r"<text(?![^>]* class=)[^>]*>(.*?)</text>", box, re.S)
        yield unescape(named[1]) if named else " ".join(map(said, lines))


KNOWN = [slug for slug in presets.paths() if presets.preset(slug).config is not None]


@pytest.mark.parametrize("slug", ["capitals", "deepseek-v4-flash", *sampled(KNOWN, 2)])
def test_the_steps_of_each_section_name_a_box_of_the_diagram(slug):
    """The stepper lights it: a step's own, or its neighbor's where numbers are only rearranged."""
    if slug == "capitals":
        walk, drawn = str(real.number_walk()), str(real.layer_drawing())
    else:
        walk, drawn = str(walkthrough.walkthrough(slug)), str(model_diagrams.pipeline(slug))
    sections, depth, around = [[]], 0, -1
    step = r'<(/?ol)|<li class="ep-(layer|step)"(?: data-box="(.*?)")?>(?:.*?<strong class="ep-name">(.*?)</strong>)'
    for tag, kind, box, title in re.findall(step, walk, re.S):
        depth += {"ol": 1, "/ol": -1}.get(tag, 0)
        if kind == "layer" or (tag and depth == around):
            sections.append([])
            around = depth if kind else -1
        if kind == "step":
            sections[-1].append(unescape(box) or re.sub(r" × \d+$", "", said(title)))
    known = set(boxes(drawn))
    named = [section for section in sections if section]
    assert len(named) > 1 and all(known & set(section) for section in named), [s for s in named if not known & set(s)]


def test_habits_are_shares_and_the_named_head_has_most():
    measured = views.mean_attention()
    assert len(measured) == 12 and all(sum(shares.values()) == pytest.approx(1) for shares in measured.values())
    layer, head = views.strongest_head("name")
    assert all(measured[layer, head]["name"] >= shares["name"] for shares in measured.values())
    assert views.head_that_looks_at("name") == f"layer {layer}, head {head}"
    assert measured[layer, head]["name"] >= views.NAMED_FROM  # else the page names no head


def test_the_sentences_of_a_country_are_answered_with_its_facts():
    facts = next(f for f in capitals.countries() if f["country"] == "Peru")
    shown = views.sentence_table("Peru")
    for sentence in capitals.sentences():
        fact, said, _ = cells(shown, f"{sentence.prompt(facts)} …")
        assert fact == said == facts[sentence.asks]
    with pytest.raises(Problem, match='did you mean "Peru"'):
        views.sentence_table("Perou")


def test_all_heads_are_small_maps_with_their_habits():
    """The row of the last word is marked; later words are masked, not 0; a head has its measured habit."""
    said = attention.attention_heads("The capital of Peru is")
    main, _, rest = said.partition('<ol class="ep-small-heads"')
    assert main.count('masked"></td>') == main.count("masked") == 5 * 4 / 2
    assert '<tr class="lit"><th scope="row">is' in main
    layers, heads = 3, 4
    assert rest.count("<li") == layers * heads and rest.count('<li class="lit"') == 1
    shares = views.mean_attention()
    (layer, head), most = max(((h, s["name"]) for h, s in shares.items()), key=lambda one: one[1])
    assert f"<b>{layer}.{head}</b><small>the name {100 * most:.0f}" in rest
    assert rest.count("no single habit") == sum(not attention.habit(h) for h in shares) > 0


def test_the_bars_of_the_designs_are_the_shares_of_the_answer():
    """A design that is left out has its bar, as wide as the share that `ablated` gives, and another answer is named."""
    made = unescape(str(ablations.ablation_chart()))
    widths = [float(w) for w in re.findall(r'<rect[^>]*width="([\d.]+)%"', made)]
    assert len(widths) == 1 + len(ablations.INSTEAD)
    whole = real.run("capitals", "The capital of France is")
    shares = np.exp(whole.scores - whole.scores.max())
    assert widths[0] == pytest.approx(100 * float(shares.max() / shares.sum()), abs=0.006)
    assert f"“{ablations.ablated('answer', 'residual_stream')}” instead" in made and "without the scaling" in made


def test_the_grid_has_every_combination_once():
    """Cells by the rule that left some out of the training, and the training log's own count of them."""
    made = str(views.learned_grid())
    trained, unseen = (path.count("z") for path in re.findall(r'<path d="([^"]*)"', made))
    assert str(unseen) == views.capitals_figure("left out")
    assert str(trained + unseen) == views.capitals_figure("combinations")


def test_a_layers_guess_has_its_bar():
    made = unescape(str(real.logit_lens()))
    assert made.index("ep-bars") < made.index("<table") and "After layer 2: “Paris”" in made
