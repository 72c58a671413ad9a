"""The fact sheet and the area map: to scale, every field a link that leads somewhere, every figure computed."""

import re
from html import unescape

import pytest
from approved import as_text

from macros.catalogue import presets
from macros.counting.accelerators import accelerator
from macros.counting.costs import of as costs_of
from macros.counting.formats import PUBLISHED
from macros.engine.steps import NORMS, WEIGHTLESS_NORMS
from macros.site import model_pages
from macros.views.charts import area_map, treemap
from macros.views.costs import memory_chart, time_bounds
from macros.views.diagrams.dataflow import Drawing, is_large
from macros.views.diagrams.outline import outline
from macros.views.kit import rounding
from macros.views.models import cache_peers, fact_sheet, model_changes, traits
from macros.views.tables import parameters
from macros.views.trace import walkthrough
from macros.views.trace.norms import kind_of_norm
from macros.views.trace.parts import groups

MODELS = "gpt2", "llama3-8b", "mixtral-8x7b", "gemma3-1b", "deepseek-v3.2", "jamba-v0.1", "mamba-130m"
BOX = (3.0, 5.0, 203.0, 85.0)


def area(box):
    left, top, right, bottom = box
    assert left < right and top < bottom
    return (right - left) * (bottom - top)


def overlap(a, b):
    return max(0, min(a[2], b[2]) - max(a[0], b[0])) * max(0, min(a[3], b[3]) - max(a[1], b[1]))


@pytest.mark.parametrize("sizes", [[1], [7, 5, 3, 2, 1], [1000, 1, 1], [89, 83, 79, 73, 71, 67, 61, 59, 3]])
def test_rectangles_are_to_scale_and_fill_the_box(sizes):
    boxes = treemap.squarified(sizes, BOX)
    assert [area(b) for b in boxes] == pytest.approx([area(BOX) * n / sum(sizes) for n in sizes])
    assert all(b[0] > 2.999 and b[1] > 4.999 and b[2] < 203.001 and b[3] < 85.001 for b in boxes)
    assert sum(overlap(a, b) for i, a in enumerate(boxes) for b in boxes[:i]) == pytest.approx(0, abs=1e-6)


def fields(figure, cls):
    """Of each field of a drawing: its address, what it says, the corners of its outline."""
    [drawing] = re.findall(rf'<svg class="ep-svg {cls}".*?</svg>', figure)
    for address, said, content in re.findall(
        r'<a class="part" aria-label="(.*?)" xlink:href="([^"]*)"[^>]*>(.*?)</a>', drawing
    ):
        corners = re.search(r'd="M([\d.]+) ([\d.]+)H([\d.]+)V([\d.]+)', content)
        yield said, unescape(address), tuple(map(float, corners.groups()))


@pytest.mark.parametrize("cls", ["wide", "narrow"])
@pytest.mark.parametrize("slug", MODELS)
def test_each_field_is_as_large_as_its_part(slug, cls):
    model = presets.model(slug)
    drawn = list(fields(area_map.area_map_of_model_page(model), cls))
    width, height = {"wide": treemap.WIDE, "narrow": treemap.NARROW}[cls]
    counts = [int(re.search(r"([\d,]+) parameters", said)[1].replace(",", "")) for _, said, _ in drawn]
    assert sorted(counts) == sorted(group.count for group in groups(model)) and sum(counts) == model.counts.total
    for n, (*_, corners) in zip(counts, drawn):
        if n * 100 > model.counts.total:  # corners have one decimal place
            assert (corners[2] - corners[0]) * (corners[3] - corners[1]) == pytest.approx(
                width * height * n / model.counts.total, rel=0.08
            )


@pytest.mark.parametrize("slug", MODELS)
def test_each_field_leads_to_its_part_in_the_table(slug):
    table = parameters.parameter_table(slug)
    places = [unescape(place) for place in re.findall(r'<tr id="([^"]*)" class="ep-part"', table)]
    drawn = [address for address, *_ in fields(area_map.area_map_of_model_page(presets.model(slug)), "wide")]
    assert len(set(places)) == len(places)
    assert sorted(unescape(a) for a in drawn) == sorted(f"#{place}" for place in places)


def test_on_any_other_page_a_field_leads_to_the_page_that_explains_it():
    known = []
    figure = area_map.area_map("llama3-8b", lambda source: known.append(source) or f"/{source}")
    assert "what-happens/ffn-deep-dive.md" in known and "/what-happens/ffn-deep-dive.md" in unescape(figure)
    assert "<a " not in area_map.area_map("llama3-8b")


def plain(html):
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


def facts(slug):
    return {
        plain(name): plain(said)
        for name, said in re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", fact_sheet.model_fact_sheet(slug))
    }


@pytest.mark.parametrize("slug", MODELS)
def test_the_sheet_says_what_the_trace_gives(slug):
    model, said = presets.model(slug), facts(slug)
    sizes, counts = model.counts.values(), model.counts
    assert said["Parameters"] == f"{counts.total:,}" and said["Active per token"] == f"{counts.active:,}"
    assert (
        said["Width d_model"] == f"{sizes['d_model']:,}" and said["Vocabulary vocab_size"] == f"{sizes['vocab_size']:,}"
    )
    assert said["Layers"].split()[0] == str(sum(len(n.layers) for n in counts.trace.root.children if n.layers))
    assert said["Norm"] == traits.norms(model) and said["Positions"] == traits.positions(model)
    assert (said["Heads / KV heads"] == "none") == ("n_heads" not in sizes)
    growing = counts.cache_bytes_per_token_uncapped() + counts.index_bytes_per_token()
    assert said["KV cache, bytes per token"].split()[0] == f"{growing:,}"


def test_what_a_model_has_not_is_said():
    assert facts("mamba-130m")["Heads / KV heads"] == "none"
    assert facts("deepseek-v3.2")["Heads / KV heads"] == "128 / latents"
    assert facts("mixtral-8x7b")["Experts per token"] == "2 of 8" and facts("gpt2")["Experts per token"] == "none"
    assert facts("jamba-v0.1")["Context"] == "not in the config"


def test_links_lead_to_the_hub_the_config_and_the_papers_that_the_sources_name():
    said = unescape(fact_sheet.model_fact_sheet("llama3-8b", (("Data", "../llama3-8b.json"), ("No page", None))))
    assert 'href="https://huggingface.co/meta-llama/Meta-Llama-3-8B"' in said and 'href="../llama3-8b.json"' in said
    assert "/blob/main/config.json" in said and "arxiv" not in said and "No page" not in said
    said = unescape(fact_sheet.model_fact_sheet("gpt3-175b"))
    assert 'href="https://arxiv.org/abs/2005.14165"' in said and "huggingface.co" not in said


@pytest.mark.parametrize("slug", MODELS)
def test_neither_has_a_style_of_its_own(slug):
    assert not re.search(r"\sstyle=|<style|<script|\son\w+=", fact_sheet.model_fact_sheet(slug))


def test_a_folded_part_shows_what_it_comes_to():
    page = unescape(model_pages.model_page("llama3-8b"))
    results = re.findall(r"<summary>(.*?)</summary>", page)
    assert len(results) == len(fact_sheet.RESULTS) - 3 and page.count("</details>") == len(results)
    assert "291 tensors, 8,030,261,248 parameters" in results
    assert any(result.startswith("131,072 bytes per token; 537 MB at 4,096 tokens") for result in results)
    towers = re.findall(r"<summary>(.*?)</summary>", unescape(model_pages.model_page("gemma-4-e2b")))
    assert "475,728,160 parameters; 256 tokens for 1,024 × 1,024 pixels; 750 tokens for 30 seconds of sound" in towers


@pytest.mark.parametrize("slug", ["llama3-8b", "jamba-v0.1", "deepseek-v3"])
def test_the_walkthrough_gives_each_explanation_once(slug):
    explained = re.findall(r'<div class="ep-why">(.*?)</div>', walkthrough.walkthrough(slug))
    assert explained and len(set(explained)) == len(explained)


def test_a_repeated_step_inside_a_part_names_the_kind_of_its_layer():
    assert "kind “dense” above" in walkthrough.walkthrough("deepseek-v3.2"), "its indexer, inside of attention"


def test_a_part_that_two_kinds_of_layers_share_is_written_once():
    said = walkthrough.walkthrough("jamba-v0.1")
    assert (
        "The same steps, sizes and numbers of parameters as in the layers of the kind “state space, dense” above."
        in said
    )
    for name in ("A_log", "down_proj", "o_proj"):
        assert len(re.findall(rf"\.<wbr>(?:experts\.<wbr>.*?)?{name}\b", said)) >= 1
    assert said.count("A_log") == 1


def test_talkies_norms_have_no_weights_and_its_defaults_are_mlx_lms():
    made = str(fact_sheet.model_fact_sheet("talkie-1930-13b"))
    assert "<dt>Norm</dt><dd>RMSNorm without weights before each part, q and k too</dd>" in made
    assert "§ rests on a default of a class in mlx-lm, where" in made
    sizes = re.sub(r"<[^>]+>", "", str(fact_sheet.model_fact_sheet("deepseek-v3")))
    assert f"{2048:,} and d_ff {18432:,}" in unescape(sizes)


def test_what_rests_on_a_class_default_is_marked():
    """InternLM3's vocabulary is a default: the total is marked, the width and the cache are not; the page says why."""
    made = str(fact_sheet.model_fact_sheet("internlm3-8b"))
    facts = dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", made, re.S))
    marked = {re.sub(r"<[^>]+>", "", name).split(" ")[0] for name, said in facts.items() if "§" in said}
    assert marked == {"Parameters", "Active", "Vocabulary", "Memory"}
    assert "§ rests on a default of a class in transformers" in made
    assert "§" not in str(fact_sheet.model_fact_sheet("llama3-8b"))


@pytest.mark.parametrize("slug", ["qwen3-8b", "mixtral-8x7b", "deepseek-v3", "mamba-2.8b", "gemma3-27b"])
def test_the_changes_of_a_model_are_those_of_its_traits(slug):
    said = unescape(re.sub(r"<[^>]+>", "", model_changes.model_changes(slug)))
    model, common = presets.model(slug), presets.model(model_changes.COMMON)
    pairs = zip(traits.TRAITS, traits.trait_values(common), traits.trait_values(model))
    changed = [
        trait
        for trait, was, now in pairs
        if was != now and not trait.column.is_number and (was and now or trait.is_known)
    ]
    start = f"{model.name} beside {common.name}" if slug in ("mixtral-8x7b", "mamba-2.8b") else f"to {model.name}"
    assert re.search(rf"{re.escape(start)}: {len(changed)} parts? and \d+ sizes? differ", said)
    assert ("Router" in said) == (slug in ("mixtral-8x7b", "deepseek-v3"))


@pytest.mark.parametrize("slug", ["talkie-1930-13b", "dory1.0-4b", "olmo-1b", "muse-spark-open-816b-a42b", "gpt2"])
def test_a_norm_without_weights_is_named_and_drawn(slug):
    """Each norm of a vector in the forward pass is in the sheet, among the changes, and in both drawings."""
    model = presets.model(slug)
    norms = [n for n in model.drawn.trace.root.walk() if n.role in NORMS | WEIGHTLESS_NORMS]
    assert {item.node for item in Drawing(model, model.drawn.trace.root, is_large, None).items} >= {*norms}
    layers = [n for n in norms if n.parent is not None and n.parent.layers is not None]
    assert layers and {kind_of_norm(n) for n in layers} <= {part.title for part in outline(model).parts()}
    has_none = any(not [*n.all_weights()] for n in layers)
    said = traits.norms(model)
    assert said and ("without weights" in said or "L2" in said) == has_none
    changes = str(model_changes.model_changes(slug))
    gone, new = (re.findall(rf"Steps that are {what}[^<]*", changes) for what in ("gone", "new"))
    assert not has_none or not gone or "without weights" in new[0] or "L2 normalization" in new[0]


@pytest.mark.parametrize("slug", ["llama3-8b", "gpt-oss-20b", "deepseek-v3", "qwen3-8b"])
def test_a_cache_stands_beside_those_of_its_peers(slug):
    """Models of the family and Llama 3 8B, in the order of their caches, each bar as long as its cache is large."""
    said = cache_peers.cache_peers(slug)
    model, rows = presets.model(slug), re.findall(r"<tr><th[^>]*>(.*?)</th>(.*?)</tr>", said.split("<tbody>")[1])
    names = {p.name: s for s in presets.paths() if (p := presets.preset(s)).config}
    found = [names[unescape(re.sub(r"<[^>]+>", "", name))] for name, _ in rows]
    sizes = [presets.model(s).counts.cache_bytes_per_token() for s in found]
    assert {slug, "llama3-8b"} <= {*found} and sizes == sorted(sizes) and 2 <= len(found) <= 6
    assert {presets.preset(s).family for s in found} <= {presets.preset(slug).family, "Llama"}
    for (_, cells), size in zip(rows, sizes):
        assert f">{size:,}<" in cells
    widths = [float(w) for w in re.findall(r'<rect[^>]* width="([\d.]+)"', said.split("</svg>")[0])]
    longest = max(widths)
    assert [round(w / longest, 2) for w in widths] == [round(size / max(sizes), 2) for size in sizes]
    assert model.name in unescape(said) and sizes[found.index(slug)] == model.counts.cache_bytes_per_token()


@pytest.mark.parametrize("slug", ["mamba-2.8b", "bert-base"])
def test_a_model_that_caches_no_token_has_no_peers(slug):
    assert presets.model(slug).counts.cache_bytes_per_token() == 0 and cache_peers.cache_peers(slug) == ""


@pytest.mark.parametrize("slug", ["gpt2", "llama3-8b", "mamba-2.8b", "deepseek-v3"])
def test_the_memory_chart_names_the_lines_that_are_drawn(slug):
    said = unescape(memory_chart.memory_chart(slug))
    lines = said.count('stroke-dasharray="5 4"') // 2  # in each of the two frames
    named = re.search(r"Dashed lines?: the memory of (.*?)\.</", said)
    assert lines and named and len(re.findall(r" [GT]B\)", named[1])) == lines


@pytest.mark.parametrize(
    ("slug", "end"), [("bge-base-en-v1.5", 512), ("gpt2", 1024), ("llama3-8b", 8192), ("opt-125m", 2048)]
)
def test_the_memory_chart_ends_at_the_longest_context(slug, end):
    assert f" to {end:,} tokens; the numbers are in the table." in unescape(memory_chart.memory_chart(slug))


@pytest.mark.parametrize("slug", ["llama3-8b", "gpt-oss-20b", "mamba-2.8b", "bert-base"])
def test_the_memory_chart_has_the_costs_as_a_table(slug):
    counts, said = presets.model(slug).counts, memory_chart.memory_chart(slug)
    for row in re.findall(r"<tr><th[^>]*>([\d,]+)[^<]*(?:<[^>]+>)*</th>(.*?)</tr>", said):
        context = int(row[0].replace(",", ""))
        published = costs_of(counts).weight_bytes(PUBLISHED) + counts.cache_bytes(context)
        assert rounding.decimal_bytes(published) in unescape(re.sub(r"<[^>]+>", " ", row[1]))
    assert said.count("<svg") == 2 and "as published" in said


@pytest.mark.parametrize("slug, contexts", [("gpt2", 1), ("phi-4", 3), ("llama3-8b", 2), ("llama3.1-8b", 4)])
def test_the_memory_chart_s_table_has_each_power_of_four_up_to_the_longest_context(slug, contexts):
    rows = re.findall(r"<tr><th[^>]*>([\d,]+)", memory_chart.memory_chart(slug))
    longest = presets.model(slug).longest_context[0]
    assert rows == [f"{4**k:,}" for k in range(5, 5 + contexts)]
    assert 4 ** (4 + contexts) <= longest < 4 ** (5 + contexts)


def test_the_memory_chart_gives_the_memory_of_all_devices_of_a_line():
    said = unescape(memory_chart.memory_chart("llama3.1-405b"))
    assert f"8 × {accelerator('h100').name} (640 GB)" in said


def test_the_table_of_accelerators_says_of_how_much_memory_a_share_may_be_taken(monkeypatch):
    monkeypatch.setattr("approved.LONG", 1000)
    said = as_text(time_bounds.accelerator_table(), most=100_000)
    rows = {line.partition(": ")[0]: line for line in said.splitlines()}
    share = next(line for name, line in rows.items() if "395" in name)
    whole = next(line for name, line in rows.items() if "H100" in name)
    assert re.search(r"Memory = [\d.]+ GB of 128 GB;", share) and re.search(r"Memory = 80.0 GB;", whole)


def test_a_license_leads_to_the_file_or_page_that_states_it():
    addresses = {slug: fact_sheet.licence_address(presets.preset(slug)) for slug in ("qwen3-8b", "smollm3-3b", "gpt-4")}
    assert addresses == {
        "qwen3-8b": "https://github.com/QwenLM/Qwen3/blob/HEAD/README.md",
        "smollm3-3b": "https://huggingface.co/HuggingFaceTB/SmolLM3-3B",
        "gpt-4": None,
    }
    said = as_text(str(fact_sheet.model_fact_sheet("qwen3-8b")))
    assert "text of the license" in said
