"""The stations of the guide: a static figure, until a reader tries a sentence of their own."""

import json
from urllib.parse import urljoin

import numpy as np
import pytest
from chromium import accessibility, moving, overflow

from macros.catalogue import merges, presets
from macros.catalogue.checkpoints import checkpoint
from macros.data.capacity import capacity
from macros.engine import numbers
from macros.engine.forward import logits
from macros.engine.steps import Role
from macros.views.charts import memory_areas as areas
from macros.views.charts.bar_values import bars, largest
from macros.views.guide import recorded, token_pieces
from macros.views.kit import rounding
from macros.views.models import memory_figure

pytestmark = pytest.mark.browser

TRY = "Try a sentence of your own"
HALO, LINE = 4, 18  # pixels around a name, and of its height


def rows(place):
    return [row.split("\t") for row in place.get_by_role("row").all_inner_texts()[1:]]


def test_a_station_takes_a_sentence_of_ones_own(open_watched, site):
    """The next word of another sentence is Python's; nothing of the model is loaded before."""
    page, asked = open_watched(
        urljoin(site, "what-happens/final-vector-to-token/"), viewport={"width": 390, "height": 844}
    )
    place = page.locator("[data-station=next]")
    place.get_by_role("button", name=TRY).wait_for()
    assert "Paris" in place.get_by_role("row").nth(1).inner_text()
    static = place.get_by_role("link").evaluate_all("all => all.map(a => a.href)")
    assert len(static) == 2 * 5 and "real-numbers/step-by-step/?number=logit/" in static[0]
    assert not [url for url in asked if "safetensors" in url or "/engine/" in url]
    place.get_by_role("button", name=TRY).click()
    field = place.get_by_label("Sentence")
    field.fill("The capital of Japan is")
    place.get_by_text("Tokyo").wait_for()
    small = checkpoint("capitals")
    ids = small.tokenizer.encode("The capital of Japan is")
    scores = logits(small.model.architecture, small.model.config, small.weights(), ids, last=True)[0][0]
    for (word, logit, *_), id in zip(rows(place), np.argsort(-scores, kind="stable"), strict=False):
        assert word == small.tokenizer.token(int(id))
        assert float(logit.replace("−", "-")) == pytest.approx(float(scores[id]), abs=0.0051)
    link = place.get_by_role("link").first.get_attribute("href")
    assert link.endswith(f"step-by-step/?text=The+capital+of+Japan+is&temperature=1&number=logit%2F{np.argmax(scores)}")
    field.fill("The capital of Jupiter is")
    place.get_by_text("does not know “Jupiter”").wait_for()
    likely = place.get_by_role("status").get_by_role("button").first
    country = likely.inner_text()
    likely.click()
    assert field.input_value() == f"The capital of {country}"
    assert not overflow(page) and not accessibility(page)
    assert not moving(page)


def test_a_word_has_its_row_of_the_table(open_page, site):
    """The row of a word that a reader types is the file's."""
    page = open_page(urljoin(site, "what-happens/embeddings/"))
    place = page.locator("[data-station=embedding]")
    assert "France" in place.get_by_role("row").nth(4).inner_text()
    place.get_by_role("button", name="Look up words of your own").click()
    place.get_by_label("Sentence").fill("Tokyo")
    place.get_by_role("rowheader", name="Tokyo").wait_for()
    small = checkpoint("capitals")
    (id,) = small.tokenizer.encode("Tokyo")
    row = np.array(small.weights().tensors["transformer.wte.weight"])[id]
    header, *cells = place.get_by_role("row").nth(1).inner_text().split("\t")
    assert header.replace("\xa0", " ") == f"Tokyo, row {id}"
    assert [float(x.replace("−", "-")) for x in cells] == pytest.approx(row.tolist(), abs=0.0051)
    place.locator("[data-place='token/0/2']").press("Enter")
    panel = page.get_by_role("region", name="What this number is made of")
    panel.get_by_text(f"transformer.wte.weight, {id}, 2").wait_for()
    assert panel.locator("output[data-value]").inner_text()[:4] == cells[2][:4]


def test_rope_turns_by_the_distance(open_page, site):
    """Both moved by the same amount, the score stays."""
    page = open_page(urljoin(site, "what-happens/attention-deep-dive/"))
    place = page.locator("[data-station=rope]")
    place.get_by_role("button", name="Turn them yourself").click()
    score = place.get_by_role("status")
    for query, key in (7, 2), (12, 7):
        place.get_by_label("Position of the query").fill(str(query))
        place.get_by_label("Position of the key").fill(str(key))
        assert f"Their score: {np.cos(5 * 0.25):.2f}, the cosine of {5 * 0.25:.2f}" in score.inner_text()


def test_each_head_shows_where_each_word_looks(open_watched, site):
    """The served figure moves by word and head without the model; for another sentence its weights are Python's."""
    page, asked = open_watched(
        urljoin(site, "what-happens/attention-deep-dive/"), viewport={"width": 390, "height": 844}
    )
    place = page.locator("[data-tool=attention]")
    place.locator("select[name=head]").select_option("2.1")
    place.locator("select[name=word]").select_option("4")
    small, text = checkpoint("capitals"), "The capital of France is"
    assert place.get_by_role("button", pressed=True).inner_text().startswith("2.1")
    assert cells_of(place) == pytest.approx(weights_of(small, text, 2, 1), abs=0.0051)
    assert place.locator("tr.lit th").inner_text() == "France"
    assert "?word=4&head=2.1" in page.url and not [url for url in asked if "safetensors" in url]
    place.get_by_role("button", name="0.3").press("Enter")
    other = "The currency of Japan is the"
    place.get_by_label("Sentence").fill(other)
    place.get_by_role("columnheader", name="Japan").wait_for()
    assert cells_of(place) == pytest.approx(weights_of(small, other, 0, 3), abs=0.0051)
    expected = weights_of(small, other, 0, 3)[-6:]
    words = other.split()
    looked = f"“the” looks most at “{words[int(np.argmax(expected))]}”: {100 * max(expected):.1f}% of its attention."
    assert place.locator("output").inner_text() == looked
    link = place.get_by_role("cell").get_by_role("link").last.get_attribute("href")
    assert link.endswith("step-by-step/?text=The+currency+of+Japan+is+the&number=share%2F0%2F3%2F5%2F5")
    place.get_by_label("Sentence").fill("The capital of Frence")
    place.get_by_role("button", name="France", exact=True).click()
    place.get_by_role("columnheader", name="France").wait_for()
    assert not overflow(page) and not accessibility(page) and not moving(page)
    place.get_by_role("button", name="Reset").click()
    assert page.url.endswith("attention-deep-dive/")
    page.go_back()
    assert place.get_by_label("Sentence").input_value() == "The capital of France"


def cells_of(place):
    """The numbers of the large table, row by row."""
    return [float(cell) for cell in place.locator("td.num").all_inner_texts() if cell]


def weights_of(small, text, layer, head):
    """The attention weights of a head that are not masked, row by row."""
    trace = numbers.trace(small.model.architecture, small.model.config, small.weights(), small.tokenizer.encode(text))[
        0
    ]
    found = [n for n in trace.root.walk() if n.role is Role.SOFTMAX][layer]
    rows = trace.of(found.outputs[0])[head]
    return [float(x) for i, row in enumerate(rows) for x in row[: i + 1]]


def test_a_published_models_answer_has_a_temperature(open_page, site):
    """At each stop of the slider the browser's shares are Python's; the address keeps it."""
    page = open_page(urljoin(site, "what-happens/final-vector-to-token/"), viewport={"width": 390, "height": 844})
    place = page.locator("[data-figure=next]")
    slider = place.get_by_label("Temperature")
    for presses, temperature in (3, 1.75), (1, 2.0):
        for _ in range(presses):
            slider.press("ArrowRight")
        for token, _, share, *_ in rows(place):
            assert share == recorded.recorded_share(token, temperature)
    page.wait_for_url("**/?temperature=2")
    said = f"At temperature 2, Paris has {recorded.recorded_share('Paris', 2.0)}."
    assert place.get_by_text(said).count() == 1 and slider.get_attribute("aria-valuetext") == "2"
    assert not overflow(page) and not accessibility(page) and not moving(page)
    place.get_by_role("button", name="Reset").click()
    assert rows(place)[0][2] == recorded.recorded_share("Paris")


def test_a_word_of_the_map_has_its_nearest(open_page, site):
    """The chosen word, its arrow and its nearest words are marked and named; names do not meet."""
    page = open_page(urljoin(site, "what-happens/embeddings/"))
    place = page.locator("[data-figure=map]")
    place.get_by_label("Word").select_option("Tokyo")
    near = recorded.recorded_near("Tokyo")
    assert place.locator("output").inner_text().endswith(f"dimensions: {near}.")
    drawing = place.locator("svg.wide")
    assert drawing.locator("text.lit").all_text_contents() == ["Tokyo", *near.split(", ")]
    assert drawing.locator("path.lit").count() == 1 and drawing.locator("[data-i].lit").count() == 5
    names = drawing.locator("text:not(.ep-behind)").all()
    boxes = [name.bounding_box() | {"name": name.text_content()} for name in names]
    for i, a in enumerate(boxes):
        for b in boxes[:i]:
            across = min(a["x"] + a["width"], b["x"] + b["width"]) - max(a["x"], b["x"])
            along = LINE - abs(a["y"] - b["y"])
            assert min(across, along) <= HALO, f"{a} {b}"
    assert "map=Tokyo" in page.url and not accessibility(page)
    drawing.locator("circle").first.click(force=True)
    assert "map=Afghanistan" in page.url
    place.get_by_role("button", name="Reset").click()
    assert not drawing.locator(".lit").count() and page.url.endswith("embeddings/")


def test_memory_grows_with_users_and_context(open_watched, site):
    """Each chosen state says what Python says; nothing that counts is loaded before one is chosen."""
    page, asked = open_watched(urljoin(site, "costs/memory/"), viewport={"width": 390, "height": 844})
    place = page.locator("[data-tool=memory]")
    names = place.locator("select[name=model]")
    names.wait_for()
    assert not [url for url in asked if "/engine/" in url]
    for slug, users, part in ("gemma3-27b", 4, 16), ("deepseek-v3", 64, 32), ("gpt-oss-20b", 1, 1):
        names.select_option(slug)
        place.locator("select[name=users]").select_option(str(users))
        place.get_by_label("Context of each").fill(str(part))
        model = presets.model(slug)
        at = model.longest_context[0] * part // areas.STEPS
        place.get_by_text(memory_figure.sum_said(model, users, at)).wait_for()
        weights = memory_figure._weights(model)
        expected = [memory_figure.verdict(model, name, n, users) for name, n in weights.items()]
        assert place.locator(".ep-panel-title").all_inner_texts() == expected
        data = capacity(slug)
        longest, devices = model.longest_context[0], memory_figure.devices()
        panels = areas.panels(data["kept"], list(weights.values()), users, longest, at, devices)
        for drawing, panel in zip(place.locator("svg.ep-svg").all(), panels, strict=True):
            dot = drawing.locator("circle")
            assert float(dot.get_attribute("cy")) == pytest.approx(panel.total, abs=0.051)
            assert float(dot.get_attribute("cx")) == pytest.approx(panel.cursor, abs=0.051)
    page.wait_for_url("**/?model=gpt-oss-20b&part=1")
    assert not overflow(page) and not accessibility(page) and not moving(page)


def test_bars_move_with_a_readers_sizes(open_watched, site):
    """At the ends of the sliders and between, for another model too, the browser's amounts are Python's."""
    page, asked = open_watched(urljoin(site, "costs/fine-tuning/"), viewport={"width": 1280, "height": 900})
    place = page.locator("[data-tool=bars]").first
    slider = place.get_by_label("Rank")
    slider.wait_for()
    assert not [url for url in asked if "/engine/" in url]
    served, said = place.locator(".ep-three").inner_text(), place.locator("output").inner_text()
    all_models, [[name, stops, start]] = (json.loads(place.get_attribute(f"data-{of}")) for of in ("models", "stops"))
    for slug, presses in (all_models[0][0], 1), (all_models[-1][0], len(stops)), (all_models[1][0], -1):
        place.locator("select").select_option(slug)
        for _ in range(abs(presses)):
            slider.press("ArrowRight" if presses > 0 else "ArrowLeft")
        at = stops[int(slider.input_value())]
        place.locator(".lit .ep-panel-title").get_by_text(f"{at:,}", exact=False).wait_for()
        rows = next(rows for known, _, rows in all_models if known == slug)
        expected = [rounding.decimal_bytes(bar.total) for bar in bars(rows, [at], 1)]
        assert place.locator(".lit b").all_inner_texts() == expected
        most = largest(rows, stops, [at])
        lines = [n for _, n in json.loads(place.get_attribute("data-lines"))]
        most = max([most, *(n for n in lines if n <= 2 * most)])
        widths = [s.width for bar in bars(rows, [at], most) for s in bar.segments]
        drawn = place.locator(".lit rect").evaluate_all("all => all.map(r => parseFloat(r.getAttribute('width')))")
        assert drawn == pytest.approx(widths, abs=0.0051)
    assert f"{name}={at}" in page.url and not overflow(page) and not accessibility(page) and not moving(page)
    place.get_by_role("button", name="Reset").click()
    place.locator(".lit .ep-panel-title").get_by_text(f"{start}").wait_for()
    assert place.locator(".ep-three").inner_text() == served and place.locator("output").inner_text() == said
    assert page.url.endswith("fine-tuning/")


def test_a_text_of_ones_own_is_cut_by_published_tokenizers(open_watched, site):
    """The pieces and ids are Python's; a vocabulary loads when its button is pressed, and not before."""
    page, asked = open_watched(urljoin(site, "what-happens/tokens/"), viewport={"width": 390, "height": 844})
    place, typed = page.locator("[data-tool=pieces]"), "naïve  WE'LL 3.14159 日本\u00a0!"
    button = place.get_by_role("button", name="Try a text of your own (165 kB)")
    button.wait_for()
    assert not [url for url in asked if ".bin" in url]
    button.click()
    place.get_by_label("Text", exact=True).fill(typed)
    place.get_by_role("button", name="Cut it by GPT-4’s, too (342 kB)").click()
    place.get_by_role("button", name="Cut it by GPT-4o’s, too (729 kB)").click()
    for name, model in (("gpt2", "GPT-2"), ("cl100k_base", "GPT-4"), ("o200k_base", "GPT-4o")):
        pieces = merges.cut(name, typed)
        place.get_by_text(f"merges: {len(pieces)} tokens").and_(place.get_by_text(f"{model}, ")).wait_for()
        said = place.get_by_role("list", name=f"Tokens of {model}", exact=True).inner_text().split()
        assert said == [word for piece in pieces for word in (*token_pieces.said(piece.content).split(), str(piece.id))]
    assert "text=na%C3%AFve" in page.url and not overflow(page)
    place.get_by_role("button", name="Reset").click()
    assert "Liechtenstein" in place.get_by_role("figure").inner_text() and "text=" not in page.url
