"""The gallery, the atlas of choices and the stacked pictures: each shows what the forward passes and counts say."""

from __future__ import annotations

import re
from fractions import Fraction
from html import unescape
from statistics import median

import pytest
from reference import each_has
from reference.unlisted import unlisted

from macros.catalogue import presets
from macros.catalogue.small_configs import small_configs
from macros.counting import design
from macros.counting.costs import of as costs_of
from macros.engine.architectures import architectures
from macros.engine.errors import Problem
from macros.engine.steps import Role
from macros.views.charts import catalogue_charts
from macros.views.costs import stacked
from macros.views.costs.fine_tuning import training_split
from macros.views.diagrams import model_diagrams, outline
from macros.views.diagrams.dataflow import Box, Item
from macros.views.kit import disclosure
from macros.views.models import atlas, cache_kinds, gallery

SLUGS = [model.slug for model in disclosure.models(presets.paths())]


def plain(markup: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", markup)).split())


def marked(slug: str) -> dict[str, set[str]]:
    """The marked boxes of a model by their titles, and the words in them."""
    found: dict[str, set[str]] = {}
    for part in outline.outline(presets.model(slug)).parts():
        if not part.is_common:
            words = {*part.kind, *part.more, *(f"no {word}" for word in part.less)}
            found.setdefault(part.title, set()).update(words)
    return found


# The outlines


@pytest.mark.parametrize("slug", SLUGS)
def test_an_outline_has_every_box_of_the_drawing_once_and_flows_forward(slug):
    """Nothing of the diagram is lost: weights and steps are in a place, layers are counted, each place is reached."""
    model = presets.model(slug)
    whole, one = model_diagrams.whole(model, "d_model"), outline.outline(model)
    places = [place for _, of_stack in one.stacks for place in of_stack]
    layers = [c for c in whole.top.content if isinstance(c, Box) and c.node.layers is not None]
    norms = [place for place in places if sum(n for _, n in place.parts) > 1]
    assert norms and max(sum(n for _, n in place.parts) for place in places) <= design.n_layers(model.counts)
    drawn_parts = {x.node.role for c in layers for x in c.content if isinstance(x, Box)}
    titles = {part.title for part in one.parts()}
    assert {outline.descriptions.steps()[role].title for role in drawn_parts} <= titles
    alone = [c for c in whole.top.content if isinstance(c, Item) and c.kind != "data" and c.sign != "+"]
    assert all(c.node.role in outline.WHOLE_NORMS or c.title in titles for c in alone)
    assert all(flow.source < flow.target < len(places) for flow in one.flows)
    assert {flow.target for flow in one.flows} >= {n for n, place in enumerate(places) if place.is_sum}


def test_the_common_block_is_llamas_and_nothing_in_it_is_marked():
    one = outline.outline(presets.model(outline.COMMON))
    titles = [part.title for part in one.parts() if part.title != "+"]
    assert titles == [
        "Token embedding",
        *("RMSNorm", "Attention", "RMSNorm", "Feed-forward"),
        *("RMSNorm", "LM head (unembedding)"),
    ]
    assert not marked(outline.COMMON) and not marked("llama3-70b")
    assert any(part.kind == ("grouped-query attention",) for part in one.parts())


@pytest.mark.parametrize(
    "slug, title, words",
    [
        ("gpt2", "Position embedding", set()),
        ("gpt2", "LayerNorm", set()),
        ("gpt2", "Attention", {"multi-head attention", "bias", "no RoPE"}),
        ("gpt2", "Feed-forward", {"GELU", "bias"}),
        ("llama2-7b", "Attention", {"multi-head attention"}),
        ("qwen2-7b", "Attention", {"grouped-query attention", "bias"}),
        ("qwen3-8b", "Attention", {"grouped-query attention", "QK-norm"}),
        ("mistral-7b-v0.1", "Attention", {"grouped-query attention", "sliding window"}),
        ("bloom-7b1", "Attention", {"multi-head attention", "ALiBi", "bias", "no RoPE"}),
        ("gpt-j-6b", "Feed-forward", {"GELU", "bias", "parallel"}),
        ("t5-base", "Attention", {"multi-head attention", "relative position bias", "both directions", "no RoPE"}),
        ("gemma3-27b", "RMSNorm", set()),  # after each part
        ("gemma3-27b", "Feed-forward", {"GeGLU"}),
    ],
)
def test_what_a_box_is_marked_for(slug, title, words):
    assert marked(slug)[title] == words


def test_kinds_of_layers_stand_in_one_place_with_their_numbers():
    one = outline.outline(presets.model("jamba-v0.1"))
    [(_, places)] = [stack for stack in one.stacks if stack[0]]
    mixers, feeds = places[1].parts, places[4].parts
    assert {part.title: n for part, n in mixers} == {"Mamba (state-space mixer)": 28, "Attention": 4}
    assert {part.title: n for part, n in feeds} == {"Feed-forward": 16, "Mixture of experts": 16}
    encoder, decoder = (title for title, _ in outline.outline(presets.model("t5-base")).stacks if title)
    assert (encoder, decoder) == ("Layer: encoder", "Layer: decoder")


@pytest.mark.exhaustive
def test_a_drawing_holds_its_texts_and_is_equal_for_equal_outlines():
    implied = outline.implied_words(outline.outline(presets.model(slug)) for slug in SLUGS)
    assert "routed experts" in implied["Mixture of experts", ()]
    for slug in SLUGS:
        one = outline.outline(presets.model(slug)).but(implied)
        made = outline.drawn(one)
        assert 0 < made.width < 1200 and made.height > made.width / 4 and "NaN" not in made.content
        for _, places in one.stacks:
            for place in places:
                assert all(len(part.lines) <= outline.MOST for part, _ in place.parts)
    same = [outline.drawn(outline.outline(presets.model(slug)).but(implied)) for slug in ("llama3-8b", "llama3-70b")]
    assert same[0].content == same[1].content


# The gallery


@pytest.mark.exhaustive
def test_every_type_is_a_card_and_leads_to_a_model_of_the_catalog():
    page = unescape(gallery.architecture_gallery(link=lambda slug: f"../{slug}/"))
    cards, entries = re.findall(r"<li.*?</li>", page, re.S), gallery.gallery_entries()
    assert len(cards) == len(entries)
    for card, entry in zip(cards, entries):
        is_listed = entry.model.preset is not None
        assert (
            f'<a href="../{entry.model.slug}/">' in card
        ) == is_listed and f"<code>{entry.model_type}</code>" in card.replace("<wbr>", "")
        assert entry.model.model_type == entry.model_type and entry.year in re.search(r"<p>(.*?)</p>", card)[1]
        said = re.search(r"<desc>(.*?)</desc>", card)[1]
        assert 'role="img"' in card and "<title>" in card and "LM head" in said
        assert all(part.title in said for part in entry.outline.parts() if part.title != "+")
        assert ("no model in the catalog" in card) != is_listed
        assert is_listed or not re.search(r"× \d|\d layer", card)
    years = [entry.year or "9" for entry in entries]
    assert years == sorted(years)
    assert {e.model_type for e in gallery.catalog_entries()} == {presets.model(slug).model_type for slug in SLUGS}


def test_every_type_is_drawn_once():
    drawn = [name for e in gallery.gallery_entries() for name in (e.model_type, *e.others)]
    written = "python -m tests.reference.unlisted, once tests/reference/configs.json has the type"
    lacking = architectures().keys() - set(drawn)
    each_has(lacking, "has no model and no row in macros/catalogue/small_configs.json", written)
    assert sorted(drawn) == sorted(architectures())


def test_every_type_without_a_model_has_its_small_config():
    differ = {t for t in unlisted().keys() | small_configs() if unlisted().get(t) != small_configs().get(t)}
    each_has(differ, "macros/catalogue/small_configs.json is out of date", "python -m tests.reference.unlisted")


def test_the_summary_counts_the_drawings():
    entries = gallery.catalog_entries()
    with_attention = [e for e in entries if any(p.title == "Attention" and not p.is_common for p in e.outline.parts())]
    same = [e.model_type for e in entries if all(p.is_common for p in e.outline.parts())]
    said = plain(gallery.gallery_summary())
    every = len(gallery.gallery_entries())
    assert f"has {every} types: {len(entries)} with a model" in said and f", {len(same)} have" in said
    assert f"attention ({len(with_attention)})" in said
    assert "llama" in same and all(name in said for name in same)


def test_a_few_models_are_drawn_without_the_filter():
    page = gallery.architecture_gallery(["gpt2", "claude-3-opus"])
    assert page.count("<li") == 1 and "<form" not in page and "GPT-2 Small" in page
    with pytest.raises(Problem):
        gallery.architecture_gallery([])


# Shapes over the years


def test_one_unusual_shape_leaves_the_axes_of_the_others_readable():
    drawings = re.findall(r"<svg.*?</svg>", catalogue_charts.shape_history_chart(), re.S)
    assert len(drawings) == 3
    for drawn in drawings:
        assert 4 < len(re.findall(r">[\d,]+</text>", drawn)) < 20


# The atlas


def test_the_timeline_names_every_model_with_its_parameters():
    chart = unescape(atlas.timeline(link=lambda slug: f"../{slug}/"))
    for slug in SLUGS:
        model = presets.model(slug)
        assert f'xlink:href="../{slug}/"' in chart and f'<a href="../{slug}/">{model.name}</a>' in chart
        assert f'<td class="num">{model.counts.total:,}</td>' in chart
    assert chart.count("<svg") == 2 and "style=" not in chart
    new = atlas.timeline(since=2026)
    assert "GPT-2" not in new and "<svg" in new
    with pytest.raises(Problem):
        atlas.timeline(since=2100)


@pytest.mark.parametrize("choice", [one.name for one in atlas.CHOICES])
def test_a_choice_has_each_model_in_the_chart_and_in_the_table(choice):
    chart = unescape(atlas.choice_chart(choice, link=lambda slug: f"../{slug}/"))
    points = re.findall(r'<a class="point"[^>]*xlink:href="\.\./(.*?)/"[^>]*><title>(.*?)</title>', chart)
    points = points or re.findall(r'xlink:href="\.\./([^"]*?)/"[^>]*><title>(.*?)</title>', chart)
    rows = re.findall(r'<tr><th scope="row"><a href="\.\./(.*?)/">', chart)
    assert len(points) == len(rows) > 20 and {slug for slug, _ in points} == set(rows)
    assert ("kB" in chart) == (choice == design.CACHE), "an axis has the unit of its values"

    def get(model):
        return design.choices(model.counts)[choice]

    assert set(rows) == {slug for slug in SLUGS if get(presets.model(slug)) is not None}
    lowest, highest = (end(rows, key=lambda slug: get(presets.model(slug))) for end in (min, max))
    said = plain(chart)
    assert presets.preset(highest).name in said.partition("Each point")[0]
    assert get(presets.model(lowest)) < get(presets.model(highest))


def test_a_sentence_says_how_the_median_moved():
    """By another way: from the config's own keys."""
    by_year: dict[int, list[int]] = {}
    for slug in SLUGS:
        year = int(str(presets.preset(slug).released)[:4])
        by_year.setdefault(year, []).append(presets.model(slug).counts.values()["vocab_size"])
    years = [year for year in sorted(by_year) if len(by_year[year]) >= atlas.FEW]
    first, last = (int(median(by_year[year])) for year in (years[0], years[-1]))
    moved = "rose" if last > first else "fell"
    said = plain(atlas.choice_chart("vocabulary"))
    assert f"The median vocabulary {moved} from {first:,} in {years[0]} to {last:,} in {years[-1]}." in said
    assert "from 4.00 in 2018" in plain(atlas.choice_chart("feed-forward width"))


def test_an_unknown_choice_is_a_problem():
    with pytest.raises(Problem, match="vocab"):
        atlas.choice_chart("vocab")


# Sums as pictures


@pytest.mark.parametrize("slug", ["gpt2", "llama3.1-8b", "deepseek-v3", "mamba-1.4b", "jamba-v0.1", "bert-base"])
def test_shares_of_flops_add_up_to_the_step(slug):
    model = presets.model(slug)
    costs = costs_of(model.counts)
    for new, context in ((1, 1024), (1024, 1024)):
        assert sum(stacked._shares(model, new, context).values()) == costs.compute.causal_flops(new, context)
    chart = stacked.flops_chart(slug)
    assert chart.count("<svg") == chart.count("<desc>") == 2 and "<table" in chart and "style=" not in chart
    ids = re.findall(r'<pattern id="(.*?)"', chart)
    assert len(ids) == len(set(ids)) and set(re.findall(r"url\(#(.*?)\)", chart)) <= set(ids)


def test_scores_pass_half_of_the_flops_where_the_page_says():
    """One token: 4·L·N·H per token of context against 2 FLOPs per weight."""
    model = presets.model("llama3.1-8b")
    sizes = model.counts.values()
    weights = 2 * (model.counts.total - sizes["vocab_size"] * sizes["d_model"])
    exact = weights / (4 * sizes["n_layers"] * sizes["n_heads"] * sizes["d_head"])
    said = plain(stacked.flops_chart("llama3.1-8b"))
    [half] = re.findall(r"Decode.*?more than half from about ([\d,]+) tokens", said)
    assert exact <= int(half.replace(",", "")) <= exact * 2**0.25 * 1.05


def test_training_bars_are_the_table_of_the_split():
    chart = stacked.training_chart("llama3-8b", devices=8, context=8192)
    split = training_split("llama3-8b", 8, context=8192)
    totals = re.findall(r"[\d.]+ GB", plain(split[split.index("Total") :]))[:5]
    for stage, total in zip(("DDP", "ZeRO-1", "ZeRO-2", "ZeRO-3", "FSDP"), totals):
        assert f"{stage}: {total}" in plain(chart)
    assert split in chart
    with pytest.raises(Problem):
        stacked.training_chart("llama3-8b", on="h1000")
    with pytest.raises(Problem):
        stacked.training_chart("llama3-8b", recompute="some")


def test_kinds_of_attention_on_one_scale():
    share = cache_kinds._share
    assert share(presets.model("llama2-7b"), 4096) == 1
    assert share(presets.model("llama3-8b"), 4096) == Fraction(1, 4)
    assert share(presets.model("deepseek-v3"), 100) == Fraction(512 + 64, 2 * 7168)
    window = presets.model("mistral-7b-v0.1")
    assert share(window, 8192) == share(window, 4096) / 2
    chart = plain(cache_kinds.cache_kinds_chart(["llama2-7b", "gpt2", "mamba-1.4b"]))
    assert "MHA (GPT-2 Small)" in chart and "SSM" in chart and "Mamba 1.4B" in chart
    with pytest.raises(Problem):
        cache_kinds.cache_kinds_chart(["claude-3-opus"])


def test_causal_attention_alone_sees_no_later_tokens():
    """What is drawn as seeing both directions has no mask in its trace."""
    for slug in ("bert-base", "gpt2", "t5-base"):
        nodes = [n for n in presets.model(slug).trace.root.walk() if n.role is Role.ATTENTION]
        open_ones = [n for n in nodes if not any(m.role is Role.CAUSAL_MASK for m in n.walk())]
        assert bool(open_ones) == ("both directions" in marked(slug).get("Attention", set()))
