"""The tools in a browser: what if, compare, any config; their addresses, their weight, without scripts, on a phone."""

import gzip
import json
import re
from html import unescape
from urllib.parse import quote, urljoin

import pytest
from chromium import accessibility, ignored, overflow, until
from reference.configs import configs
from serving import own_assets

from macros.api import comparison
from macros.api.fits import fits
from macros.browser.bundle import OF_ONE_TOOL
from macros.catalogue import presets
from macros.counting.accelerators import accelerator
from macros.counting.conditions import Conditions
from macros.counting.costs import of as costs_of
from macros.counting.runs import left_out
from macros.views.charts import area_map
from macros.views.guide import tools
from macros.views.kit import rounding

pytestmark = pytest.mark.browser

# Of scripts and data of a tool's page, compressed, besides what every page has. With the largest architecture; without
# one it is 163 kB.
MOST_BYTES = 197_000
SHARED = (
    *("problems.mjs", "conditions.mjs", "architectures.mjs", "model.mjs", "tools.mjs", "tools/address.mjs"),
    *("tools/figures.mjs", "tools/kit.mjs", "tools/tool.mjs", "tools/view.mjs"),
    *("vendor/preact.mjs", "tools/runs.mjs"),
)
LAYERS = ("engine/base.mjs", "engine/conditions.mjs", "engine/engine.mjs", "engine/counting.mjs")
ASSETS = (*SHARED, *LAYERS, "engine/python.mjs", "engine/data.json")
PAGES = (  # and what each alone has
    (
        *("tools/what-if.mjs", "tools/what-if/answer.mjs", "tools/what-if/own.mjs", "tools/what-if/view.mjs"),
        *("tools/map.mjs", "tools/boxes.mjs", "engine/treemap.mjs", "engine/text_boxes.mjs", "engine/variations.mjs"),
    ),
    ("tools/compare.mjs", "tools/compare/answer.mjs", "engine/differing.mjs"),
)

# A model that is on no list here: Llama's block in sizes of its own.
UNLISTED = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": 50_021,
    "hidden_size": 1536,
    "num_hidden_layers": 23,
    "num_attention_heads": 12,
    "num_key_value_heads": 3,
    "intermediate_size": 4099,
    "tie_word_embeddings": True,
}


@pytest.fixture
def tool(open_page, site):
    """Open a tool: `tool("what-if", "?model=gpt2")`; its answer stands."""

    def open_(name, asked="", answers=None, **options):
        page = open_page(urljoin(site, f"tools/{name}/{asked}"), **options)
        if options.get("java_script_enabled", True):
            page.locator("form.ep-whatif").wait_for()
            if answers or answers is None and (name != "config" or asked):
                page.locator(".ep-answer strong").wait_for()
        return page

    return open_


def answer(page):
    return " ".join(page.locator(".ep-answer").inner_text().split())


def value(page, row, column=-1):
    """A number of the tables, by the words of its row: the exact one."""
    cell = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name=row, exact=True)).first
    return cell.locator("td span[title]").nth(column).get_attribute("title")


def held(page, row):
    """A number of the table of memory, by the words of its row: the exact one."""
    table = page.get_by_role("table").filter(has=page.locator("caption", has_text="Memory of"))
    found = table.get_by_role("row").filter(has=page.get_by_role("rowheader", name=row, exact=True))
    return found.locator("td span[title]").first.get_attribute("title")


def test_whether_a_model_fits_stands_as_a_sentence(tool):
    needed = sum(costs_of(presets.model("llama3.3-70b").counts).device_bytes(Conditions(32_768, format="fp8")).values())
    missing = needed - accelerator("h100").memory_bytes
    page = tool("what-if", "?model=llama3.3-70b&context=32768&weights=fp8&on=h100")
    assert "Llama 3.3 70B Instruct does not fit on one" in answer(page)
    assert rounding.decimal_bytes(needed) in answer(page) and f"{rounding.decimal_bytes(missing)} too much" in answer(
        page
    )
    page.get_by_label("KV cache").select_option("fp8")
    page.get_by_text("Llama 3.3 70B Instruct fits on one").wait_for()
    page.get_by_label("Devices").fill("7")
    page.get_by_text("no split over 7 devices").wait_for()
    assert "give 5 or 8" in page.locator(".ep-problem:not([hidden])").inner_text()
    page.get_by_label("Devices").fill("8")
    page.get_by_text("fits on 8 × H100 SXM (tensor parallel 8)").wait_for()
    assert page.locator(".ep-problem:not([hidden])").is_hidden()


def test_weights_are_taken_as_published_and_the_answer_says_so(tool):
    page = tool("what-if", "?model=gpt-oss-20b&context=4096&on=12GB")
    there = fits("gpt-oss-20b", "12GB")
    assert f"parameters {there.weights} and the KV cache" in answer(page) and "does not fit on 12 GB" in answer(page)
    assert held(page, "Too much") == f"{-there.left:,} bytes"
    page.get_by_label("Weights").select_option("mxfp4")
    page.get_by_text("does not fit on 12 GB").wait_for()
    assert held(page, "Weights") == f"{there.terms['weights']:,} bytes"
    page = tool("compare", "?models=gpt-oss-20b,llama3-8b")
    row = page.get_by_role("row").filter(has_text="Weight format")
    assert row.locator("td").all_inner_texts() == ["experts in mxfp4, the rest in bfloat16", "bfloat16"]


def test_a_published_format_that_no_engine_runs_there_is_said(tool):
    page = tool("what-if", "?model=deepseek-v3&on=m4-max")
    assert left_out("fp8", accelerator("m4-max")) in answer(page)
    assert "fp8" not in page.get_by_label("Weights").locator("option").all_inner_texts()


@pytest.mark.parametrize(
    ("slug", "on", "given"),
    [
        ("llama3.3-70b", "rtx-3090", {"context": 16384, "devices": 2}),  # does not fit
        ("qwen3-8b", "m4-max", {"weights": "fp8", "context": 8192}),  # fits, and no engine runs it there
        ("llama3.1-405b", "tpu-v5p", {"context": 8192, "devices": 8}),
    ],
)
def test_where_the_asked_format_does_not_fit_or_run_the_best_that_does_is_added(tool, slug, on, given):
    there = fits(slug, on, **given)
    assert there.best
    page = tool("what-if", f"?model={slug}&on={on}&{'&'.join(f'{name}={value}' for name, value in given.items())}")
    assert there.best in answer(page)
    page = tool("what-if", f"?model={slug}&on={on}&devices=8&weights=int4")
    assert " fits, with " not in answer(page)


def test_a_gguf_file_is_counted_as_the_command_does(tool):
    page = tool("what-if", "?model=qwen3-30b-a3b&context=4096&on=24GB&weights=q4_k_m")
    there = fits("qwen3-30b-a3b", "24GB", weights="Q4_K_M")
    assert "parameters in Q4_K_M and the KV cache" in answer(page)
    assert held(page, "Weights") == f"{there.terms['weights']:,} bytes"


def test_a_quantization_that_is_not_known_is_said_and_another_format_taken(tool):
    keys = {**presets.model("llama3-8b").raw, "quantization_config": {"quant_method": "aqlm"}}
    page = tool("config", f"#config={quote(json.dumps(keys))}", answers=False)
    page.get_by_text("quant_method = 'aqlm' is not known").first.wait_for()
    page.get_by_label("Weights").select_option("int4")
    page.get_by_text("parameters in int4 and the KV cache").wait_for()


def test_a_machine_of_ones_own_answers_as_the_command_does(tool, open_page):
    """Its parts are in the address; what cannot be one is said beside the field, and the answer stays."""
    page = tool("what-if", "?model=llama3-8b")
    page.locator("select[name=on]").select_option(label="Custom")
    field = page.locator("input[name=machine]")
    field.fill("64GB,2xDDR5-5600")
    page.get_by_text("Llama 3 8B fits on 64 GB, 2 × DDR5-5600").wait_for()
    left = fits("llama3-8b", "64GB,2xDDR5-5600", context=8192).left
    assert held(page, "Free") == f"{left:,} bytes"
    page.wait_for_url("**?*on=64GB*")
    again = open_page(page.url)
    again.get_by_text("Llama 3 8B fits on 64 GB, 2 × DDR5-5600").wait_for()
    assert again.locator("input[name=machine]").input_value() == "64GB,2xDDR5-5600"
    field.fill("64GB,1008Gb/s")
    page.get_by_text("on = '64GB,1008Gb/s': '1008Gb/s' is in bits; write bytes").wait_for()
    assert "64 GB, 2 × DDR5-5600" in answer(page)
    field.fill("24GB")
    page.get_by_text("Llama 3 8B fits on 24 GB:").wait_for()


def test_a_changed_number_changes_what_follows_and_the_address_keeps_it(tool, open_page):
    model = presets.model("llama3-8b")
    other = presets.make("wider", {**model.raw, "hidden_size": 8192})
    page = tool("what-if")
    page.get_by_label("d_model", exact=True).fill("8192")
    page.get_by_role("columnheader", name="Difference").wait_for()
    assert value(page, "Parameters") == f"{other.counts.total:,} parameters"
    assert value(page, "Parameters", 0) == f"{model.counts.total:,} parameters"
    page.wait_for_url("**?*set.hidden_size=8192")
    again = open_page(page.url)
    again.locator(".ep-answer strong").wait_for()
    assert answer(again) == answer(page) and value(again, "Parameters") == value(page, "Parameters")


def test_a_window_does_not_look_as_if_nothing_were_kept(tool):
    """What a token adds until the window is full has a row of its own, where a model has a window."""
    early = "KV cache per token until windows are full"
    page = tool("what-if", "?model=llama3-8b&way=window")
    assert value(page, early, 0) == value(page, early) == "131,072 bytes"
    assert value(page, "KV cache per token", 0) == "131,072 bytes" and value(page, "KV cache per token") == "0 bytes"
    assert tool("what-if", "?model=llama3-8b").get_by_text(early).count() == 0
    page = tool("compare", "?models=llama3-8b,gemma3-27b")
    assert page.get_by_text(early).count() == 1


def test_what_if_begins_with_the_model_that_the_page_names(open_page, site):
    """As a site with presets of its own writes it: `what_if("ours-1b")`."""
    named = "new MutationObserver(() => document.querySelector('.ep-tool')?.setAttribute('data-models', 'gpt2'))"
    before = lambda page: page.add_init_script(f"{named}.observe(document, {{ childList: true, subtree: true }})")  # noqa: E731
    page = open_page(urljoin(site, "tools/what-if/"), before=before)
    page.get_by_text("GPT-2 Small fits on").wait_for()
    assert 'data-models="llama3-8b"' in tools.what_if("llama3-8b")


MOVED = """
    window.moved = 0
    new PerformanceObserver(all => all.getEntries().forEach(e => moved += e.value)).observe({ type: "layout-shift" })
"""


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_moves_when_two_models_come(tool, open_page, width):
    """Nor does a font that comes late: here none comes."""

    def watch(page):
        page.add_init_script(MOVED)
        page.route("**/*.woff2", lambda route: route.abort())

    page = tool("compare", before=watch, viewport={"width": width, "height": 900})
    page.wait_for_timeout(500)
    open_page.complaints[:] = [said for said in open_page.complaints if "ERR_FAILED" not in said]  # the fonts
    assert page.evaluate("moved") < 0.005


def test_what_cannot_be_is_explained_at_its_field_and_nothing_breaks(tool):
    page = tool("what-if")
    before = answer(page)
    field = page.get_by_label("n_kv_heads", exact=True)
    field.fill("3")
    page.get_by_role("alert").filter(has_text="num_key_value_heads = 3 does not divide").wait_for()
    assert field.get_attribute("aria-invalid") == "true" and answer(page) == before
    field.fill("8")
    page.get_by_role("alert").wait_for(state="hidden")
    assert field.get_attribute("aria-invalid") is None


def test_ways_that_teach_are_taken_and_taken_back(tool):
    page = tool("what-if")
    total = presets.model("llama3-8b").counts.total
    page.get_by_role("button", name="Eight experts, two active").click()
    page.get_by_label("n_experts", exact=True).wait_for()
    page.get_by_role("button", name="Eight experts, two active").click()
    page.get_by_label("n_experts", exact=True).wait_for(state="detached")
    assert value(page, "Parameters") == f"{total:,} parameters"


def shapes(drawing):
    """The boxes and the words of a map, in their order."""
    return re.findall(r' d="([^"]*)"', drawing), [
        unescape(said) for said in re.findall(r"<text[^>]*>(.*?)</text>", drawing)
    ]


@pytest.mark.parametrize("slug", ["deepseek-v3", "gemma3-27b"])
def test_the_map_is_that_of_the_fact_sheet(tool, slug):
    page = tool("what-if", f"?model={slug}")
    [here] = page.locator(".ep-tool .ep-map svg.wide").evaluate_all("all => all.map(e => e.outerHTML)")
    [there] = re.findall(r'<svg class="ep-svg wide".*?</svg>', area_map.area_map_of_model_page(presets.model(slug)))
    assert [d for d in shapes(here)[0] if d] == shapes(there)[0] and shapes(here)[1] == shapes(there)[1]


def test_the_map_moves_with_a_change(tool):
    page = tool("what-if")
    before = page.locator(".ep-map").inner_html()
    page.get_by_role("button", name="Eight experts, two active").click()
    page.get_by_role("columnheader", name="Difference").first.wait_for()
    said = page.locator(".ep-map svg.wide text").all_text_contents()
    assert page.locator(".ep-map").inner_html() != before
    mixture = presets.model("mixtral-8x7b").counts  # has the same feed-forward part in each layer
    experts = sum(part.count for part in mixture.parts if part.name == "mixture_of_experts")
    assert said[0] == "As published: 8.03B" and "Now: " in " ".join(said)
    assert any(line.startswith(rounding.short(experts)) for line in said)


def test_the_parts_and_each_tensor_stand_beside_the_published_ones(tool):
    model = presets.model("llama3-8b")
    wider = presets.make("wider", {**model.raw, "intermediate_size": 7168})
    page = tool("what-if", "?set.intermediate_size=7168")
    page.get_by_text("Parameters by part").click()
    row = page.get_by_role("row").filter(has_text="Feed-forward × 32 layers")
    row.wait_for()
    before, now = (sum(p.count for p in m.counts.parts if p.name == "feed_forward") for m in (model, wider))
    assert row.locator("td").all_inner_texts()[:2] == [f"{before:,}", f"{now:,}"]
    page.get_by_text("Every tensor, with its formula").click()
    page.locator("tr.ep-differs").nth(2).wait_for()
    changed = page.locator("tr.ep-differs").all_inner_texts()
    assert len(changed) == 3 and all("[14,336, 4,096]\t[7,168, 4,096]" in row or "down_proj" in row for row in changed)


def test_compare_begins_with_the_models_of_its_page_and_marks_what_the_command_line_marks(tool):
    page = tool("compare")
    chosen = [page.locator(f"select[name=model{i}]").input_value() for i in (0, 1)]
    assert chosen == ["llama3-8b", "qwen3-8b"]
    marked = page.locator("tr.ep-differs th").all_inner_texts()
    given = Conditions(4096)
    answer = comparison.as_compared([comparison.side(presets.model(slug), given, None) for slug in chosen], given, None)
    assert [name for name in marked if name in answer["models"][0]["hyperparameters"]] == answer["differ"]
    assert "sliding_window" not in marked and "layer_types" not in marked


@pytest.mark.parametrize("models, fit", [
    ("llama3-70b,llama3-8b,qwen3-8b", "Llama 3 8B and Qwen3 8B fit on one"),
    ("llama3-70b,qwen3-8b", "Qwen3 8B fits on one"),
    ("llama3-70b,deepseek-v3", "none of them fits on one"),
])  # fmt: skip
def test_compare_says_which_models_fit(tool, models, fit):
    """And how many times as many parameters as the first model each other one has."""
    said = tool("compare", f"?models={models}").locator(".ep-answer").inner_text()
    assert f" tokens of context in 16 bits, {fit} " in said or f", {fit} " in said
    first, *others = (presets.model(slug) for slug in models.split(","))
    for other in others:
        ratio = f"{other.counts.total / first.counts.total:.3g}"
        assert f"{other.name} has {rounding.short(other.counts.total)} (× {ratio}" in said


def test_models_stand_side_by_side(tool):
    page = tool("compare", "?models=qwen3-8b,llama3.1-8b")
    for i, slug in enumerate(("qwen3-8b", "llama3.1-8b")):
        assert value(page, "Parameters", i) == f"{presets.model(slug).counts.total:,} parameters"
    page.get_by_role("button", name="Add model").click()
    page.locator("select[name=model2]").select_option("gpt2")
    page.get_by_role("columnheader", name="GPT-2", exact=False).first.wait_for()
    assert "models=qwen3-8b%2Cllama3.1-8b%2Cgpt2" in page.url
    page.locator("select[name=model2]").select_option("deepseek-v3")
    page.get_by_text("TP 16, EP 16").wait_for()


def test_a_model_is_found_by_typing_part_of_its_name(tool):
    """By the keys alone: the list has families, each from the smallest model to the largest; Back undoes the choice."""
    page = tool("what-if")
    field, options = page.get_by_role("combobox", name="Model", exact=True), page.locator(".ep-find [role=option]")
    assert field.input_value() == "Llama 3 8B"
    field.focus()
    page.keyboard.press("ArrowDown")
    family = page.locator(".ep-find [aria-label=Llama] [role=option]")
    family.first.wait_for()
    totals = [presets.model(slug).counts.total for slug in family.evaluate_all("all => all.map(e => e.dataset.value)")]
    assert len(totals) > 5 and totals == sorted(totals) and options.count() > 150
    assert accessibility(page) == []
    page.keyboard.type("zzz")
    options.get_by_text("No match").wait_for()
    assert options.count() == 1 and field.get_attribute("aria-expanded") == "true"
    page.keyboard.press("Escape")
    assert not options.first.is_visible() and field.input_value() == "Llama 3 8B"
    page.keyboard.press("Control+a")
    page.keyboard.type("qwen3 235b")
    options.filter(has_text="Qwen3-VL 235B-A22B").wait_for()
    assert options.first.inner_text() == "Qwen3 235B-A22B"
    page.keyboard.press("Enter")
    page.wait_for_url("**/?model=qwen3-235b-a22b")
    assert field.input_value() == "Qwen3 235B-A22B" and field.get_attribute("aria-expanded") == "false"
    page.go_back()
    until(page, "name => document.querySelector('.ep-find input')?.value === name", "Llama 3 8B")
    field.click()
    options.get_by_text("Llama 3.2 1B", exact=True).click()
    page.wait_for_url("**/?model=llama3.2-1b")


def test_drawings_stand_side_by_side_and_differences_are_marked(tool):
    page = tool("compare", "?models=llama3.1-8b,qwen3-8b")
    page.get_by_text("Diagrams side by side").click()
    page.locator(".ep-beside svg").nth(1).wait_for()
    marked = page.locator(".ep-beside .ep-differs").evaluate_all("all => all.map(e => e.textContent)")
    assert marked and all("norm" in title.lower() for title in marked)  # of each head's queries and keys
    link = page.locator(".ep-beside a.node").first.evaluate("e => e.href.baseVal")
    assert "/what-happens/" in link and link.startswith("http")


def test_compare_marks_what_rests_on_a_class_default(tool):
    """Of InternLM3 8B the vocabulary is one, and with it the total; the width and the cache are not."""
    page = tool("compare", "?models=internlm3-8b,qwen3-8b")
    rows = page.locator("tr").filter(has_text="§")
    said = {row.locator("th").inner_text(): row.locator("td").all_inner_texts() for row in rows.all()}
    assert {"vocab_size", "Parameters", "Active parameters"} <= said.keys()
    assert not {"d_model", "KV cache per token"} & said.keys()
    assert all("§" in own and "§" not in other for own, other in said.values())
    assert "§ rests on a default of a class in transformers" in page.inner_text("main")


def test_a_table_of_a_tool_is_sorted_and_stays_so(tool):
    page = tool("what-if", "?set.num_hidden_layers=64")
    page.get_by_text("Parameters by part").click()
    heading = page.locator("details table").get_by_role("columnheader", name="Share")  # once it is drawn
    heading.get_by_role("button").click()
    names = page.locator("details table tbody th")
    assert names.all_inner_texts()[0].startswith("Feed-forward") and names.all_inner_texts()[-1] == "Total"
    page.get_by_label("d_ff", exact=True).fill("256")
    page.get_by_role("row").filter(has_text="Feed-forward").filter(has_text="201,326,592").wait_for()
    assert heading.get_attribute("aria-sort") == "descending"
    assert names.all_inner_texts()[0].startswith("Attention") and names.all_inner_texts()[-1] == "Total"


def test_energy_is_sorted_by_what_it_is_and_not_by_its_digits(tool):
    page = tool("plan", "?task=bill&model=llama3.1-8b&on=h100&utilization=0.01")
    heading = page.locator("table").get_by_role("columnheader", name="Energy").first
    heading.get_by_role("button").click()
    at = heading.evaluate("th => th.cellIndex")
    cells = (
        page.locator("table")
        .filter(has_text="Moving bytes")
        .first.locator(f"tbody tr > :nth-child({at + 1})")
        .all_inner_texts()
    )
    sizes = [float(number.replace(",", "")) * (1000 if unit == "kWh" else 1) for number, unit in map(str.split, cells)]
    assert {cell.split()[1] for cell in cells} == {"Wh", "kWh"} and sizes == sorted(sizes, reverse=True)


def test_each_change_is_a_step_of_the_history_and_typing_is_one(tool):
    page = tool("what-if", "?model=gpt2")
    first, length = answer(page), page.evaluate("history.length")
    page.get_by_label("Context").click(click_count=3)
    page.get_by_label("Context").press_sequentially("512", delay=30)
    page.get_by_text("sequence of 512 tokens").wait_for()
    page.get_by_label("Weights").select_option("fp8")
    page.get_by_role("button", name="Twice the context").or_(page.locator(".ep-ways button").first).first.click()
    page.get_by_role("columnheader", name="Difference").first.wait_for()
    page.get_by_label("d_ff", exact=True).fill("64")
    page.get_by_text("n_inner = 64 fits").wait_for()
    assert page.evaluate("history.length") == length + 4
    seen, addresses = [answer(page)], [page.url]
    for _ in range(4):
        page.go_back()
        page.wait_for_timeout(150)
        seen.append(answer(page))
        addresses.append(page.url)
    assert seen[-1] == first and len(set(seen)) == len(set(addresses)) == 5
    assert (
        page.get_by_label("Context").input_value() == "8192"
        and page.get_by_label("Weights").input_value() == "published"
    )
    assert page.locator("[aria-pressed=true]").count() == 0
    for before in reversed(seen[:-1]):
        page.go_forward()
        page.wait_for_timeout(150)
        assert answer(page) == before
    assert page.get_by_label("d_ff", exact=True).input_value() == "64"


def test_back_restores_the_models_that_stood_side_by_side(tool):
    page = tool("compare", "?models=gpt2,qwen3-8b")
    page.locator("select[name=model1]").select_option("gpt2-xl")
    page.get_by_text("GPT-2 XL has 1.56B").wait_for()
    page.get_by_role("button", name="Add model").click()
    page.locator("select[name=model2]").wait_for()
    page.go_back()
    page.locator("select[name=model2]").wait_for(state="detached")
    page.go_back()
    page.get_by_text("Qwen3 8B has 8.19B").wait_for()
    assert page.locator("select[name=model1]").input_value() == "qwen3-8b"


def test_back_from_a_config_of_ones_own_is_the_config_before_and_the_tool_is_left_last(tool, site):
    page = tool("compare")
    page.get_by_role("link", name="Any config").first.click()
    area = page.get_by_label("Paste a config.json")
    area.fill(json.dumps(UNLISTED))
    page.locator(".ep-answer strong").wait_for()
    whole = page.locator(".ep-answer").inner_text()
    page.get_by_label("n_layers", exact=True).fill("2")
    page.get_by_text("with num_hidden_layers = 2").wait_for()
    page.go_back()
    page.get_by_text("This model fits").wait_for()
    assert page.locator(".ep-answer").inner_text() == whole and json.loads(area.input_value()) == UNLISTED
    page.go_back()
    page.locator(".ep-results").wait_for(state="hidden")
    assert area.input_value() == page.locator(".ep-answer").inner_text() == ""
    page.go_forward()
    page.get_by_text("This model fits").wait_for()
    page.go_back()
    page.go_back()
    page.locator("select[name=model0]").wait_for()
    assert page.url.startswith(urljoin(site, "tools/compare/"))


def test_an_amount_of_memory_has_a_longest_context_too(tool):
    """In the formats that people download, with a cache in blocks."""
    given = Conditions(8192, format="nf4-dq", dtype="q4_0")
    longest = costs_of(presets.model("qwen3-8b").counts).largest_context(24 * 10**9, given)
    page = tool("what-if", "?model=qwen3-8b&weights=NF4-DQ&cache=Q4_0&on=24GB")
    assert f"The longest context that fits is {longest:,} tokens" in answer(page)


HOSTILE = [
    ("what-if", "?weights=zzz&context=16384", "weights = 'zzz': no such format"),
    ("what-if", "?model=opt-125m&weights=q4_k_m", "no GGUF format is known for 'opt'"),
    ("what-if", f"?context={'9' * 20_000}", "expected a whole number from 1 to 999,999,999"),
    (
        "what-if",
        "?cache=&devices=65537&way=none&set.hidden=1",
        "devices = 65537: expected a whole number from 1 to 65,536",
    ),
    ("what-if", "?set.num_key_value_heads=3&set.hidden_size=8192", "num_key_value_heads = 3 does not divide"),
    ("what-if", "?model=llama3-70b&devices=7", "no split over 7 devices"),
    ("config", "#config=1", "config: expected a JSON object, found 1"),
    ("config", f"#config={'[' * 20_000}", "config: broken JSON: nested too deeply"),
    ("compare", "?models=opt-125m,gpt2&weights=f16", "OPT 125M: no GGUF format is known for 'opt'"),
    ("compare", "?models=gpt2,phi-2&cache=q8_0", "Phi-2: cache: k has rows of 80, not a multiple of 32"),
    ("compare", "?models=nope,gpt2&on=%3Cb%3E", "on = '<b>': neither an accelerator nor a size"),
]


@pytest.mark.share(3)
@pytest.mark.parametrize("name, asked, said", HOSTILE)
def test_what_an_address_says_and_cannot_be_is_said(tool, name, asked, said):
    page = tool(name, asked, answers=name != "config")
    assert said in ignored(page)
    assert name == "config" or "tokens" in answer(page) or "parameters" in answer(page)


def test_a_config_of_ones_own_is_counted_and_an_unknown_one_is_said(tool):
    total = presets.make("mine", UNLISTED).counts.total
    page = tool("config")
    page.get_by_label("Paste a config.json").fill(json.dumps(UNLISTED))
    page.locator(".ep-answer strong").wait_for()
    assert value(page, "Parameters") == f"{total:,} parameters"
    page.get_by_label("Paste a config.json").fill('{"model_type": "made-up"}')
    page.get_by_role("alert").filter(has_text="model_type = 'made-up' is not known").wait_for()
    linked = tool("config", f"#config={quote(json.dumps(UNLISTED))}")
    assert value(linked, "Parameters") == f"{total:,} parameters"


def test_unknown_sizes_and_another_head_are_said_above_the_figures(tool):
    page = tool("config")
    page.get_by_label("Paste a config.json").fill(
        json.dumps(UNLISTED | {"num_tails": 3, "architectures": ["LlamaForSequenceClassification"]})
    )
    answer = page.locator(".ep-answer")
    answer.locator("strong").first.wait_for()
    assert answer.inner_text().startswith("Not counted, unknown size keys: num_tails. LlamaForSequenceClassification: ")
    page.get_by_label("Paste a config.json").fill(json.dumps(UNLISTED | {"architectures": ["EagleMistralForCausalLM"]}))
    page.get_by_role("alert").filter(
        has_text="'EagleMistralForCausalLM': a draft head (EAGLE over other layers)"
    ).wait_for()


def test_keys_that_transformers_reads_otherwise_are_named(tool):
    page = tool("config")
    page.get_by_label("Paste a config.json").fill(json.dumps(configs()["hy_v4"] | {"hidden_act": "relu"}))
    page.get_by_text("hidden_act = 'relu': transformers 5.24 has SiLU in its routed experts").wait_for()


def test_a_list_of_tensors_is_held_against_the_config(tool):
    names = [name for name, _ in presets.make("mine", UNLISTED).counts.tensors()]
    index = {"weight_map": dict.fromkeys([*names[1:], "model.vision.weight"], "model.safetensors")}
    page = tool("config", f"#config={quote(json.dumps(UNLISTED))}")
    given = dict(name="model.safetensors.index.json", mimeType="application/json", buffer=json.dumps(index).encode())
    page.get_by_label("Tensor list").set_input_files(given)
    said = page.locator(".ep-reconciled")
    said.get_by_text(f"{len(names) - 1:,} of {len(names):,} tensors").wait_for()
    assert names[0] in said.inner_text() and "model.vision.weight" in said.inner_text()


def header(text, length=None):
    """The beginning of a safetensors file."""
    return (len(text) if length is None else length).to_bytes(8, "little") + text.encode()


BAD_LISTS = {
    "an index": ("x.index.json", b"[]", "is not an index of tensors"),
    "JSON": ("x.index.json", b'{"weight_map": ', "is not an index of tensors: "),
    "a map": ("x.index.json", b'{"weight_map": 3}', "weight_map is missing"),
    "text": ("x.index.json", b'{"\xff"}', "is not UTF-8"),
    "eight bytes": ("x.safetensors", b"abc", "is too short"),
    "a length": ("x.safetensors", header("", 2**24 + 1), "has a header of 16,777,217 bytes"),
    "its end": ("x.safetensors", header("{}", 5), "ends within its header"),
    "a header": ("x.safetensors", header("zzz"), "has no valid header: "),
    "a table": ("x.safetensors", header('{"a": null}'), "a has no valid shape"),
    "a shape": ("x.safetensors", header('{"\\u202ea": {"shape": [-1]}}'), "\\u202ea has no valid shape"),
}


def test_a_file_that_is_none_is_one_line_and_the_numbers_stay(tool):
    page = tool("config", f"#config={quote(json.dumps(UNLISTED))}")
    before, line = answer(page), page.locator(".ep-problem:not([hidden])")
    for name, content, said in BAD_LISTS.values():
        given = dict(name=name, mimeType="application/json", buffer=content)
        page.get_by_label("Tensor list").set_input_files(given)
        line.filter(has_text=said).wait_for()
    bad_configs = {
        b'{"a": "\xff"}': "is not UTF-8",
        b" " * (2**23 + 1): "it has 8,388,609 bytes, more than 8,388,608",
        b"[]": "expected a JSON object",
    }
    for content, said in bad_configs.items():
        given = dict(name="config.json", mimeType="application/json", buffer=content)
        page.get_by_label("config.json file").set_input_files(given)
        line.filter(has_text=said).wait_for()
    assert answer(page) == before
    with_mark = b"\xef\xbb\xbf" + json.dumps(UNLISTED | {"num_hidden_layers": 5}).encode()
    page.get_by_label("config.json file").set_input_files(dict(name="c.json", mimeType="", buffer=with_mark))
    until(page, "document.querySelector('[data-field=n_layers]').value === '5'")
    assert line.count() == 0


def test_without_scripts_a_table_stands(tool):
    page = tool("what-if", java_script_enabled=False)
    assert page.get_by_role("row").filter(has_text="Double the depth").count() == 1
    page = tool("compare", java_script_enabled=False)
    assert page.get_by_role("row").filter(has_text="Qwen3 8B").count() == 1
    assert "every-parameter describe" in tool("config", java_script_enabled=False).content()


@pytest.mark.share(2)
@pytest.mark.parametrize("name", ["what-if", "compare"])
def test_on_a_phone_and_for_everybody(tool, name):
    """With the drawings side by side too, which scroll and so can be reached."""
    page = tool(name, viewport={"width": 390, "height": 844})
    if name == "compare":
        page.get_by_text("Diagrams side by side").click()
        page.locator(".ep-beside[tabindex='0']").first.wait_for()
        label = page.locator(".ep-beside").first.get_attribute("aria-label")
        assert "Llama 3 8B" in label and "Qwen3 8B" in label
    assert not overflow(page)
    assert not accessibility(page)


def test_scripts_and_data_are_light(site_folder):
    assets = own_assets(site_folder)
    engine = {
        path.stem: path.read_bytes()
        for path in (assets / "engine").glob("*.mjs")
        if f"engine/{path.name}" not in ASSETS and path.stem not in {one.rpartition(".")[2] for one in OF_ONE_TOOL}
    }

    def together(name, seen):
        if name in seen:
            return 0
        seen.add(name)
        text = engine[name].decode()
        return len(gzip.compress(engine[name])) + sum(together(n, seen) for n in engine if f'import"./{n}.mjs"' in text)

    def sent(names):
        return sum(len(gzip.compress((assets / name).read_bytes())) for name in names)

    listed = {name for names in (ASSETS, *PAGES) for name in names}
    apart = {
        "tools/capitals.mjs",
        "tools/capitals",
        "tools/tensors.mjs",
    }  # without the engine; fetched once a list is given
    apart |= {"tools/compare", "tools/what-if"}  # besides those listed: what is fetched once it is opened
    apart |= {"tools/combobox.mjs", "tools/find.mjs"}  # and these
    apart |= {"tools/elements.mjs"}  # draws what is no tool
    apart |= {
        "tools/cells.mjs",
        "tools/fits.mjs",
        "tools/fits",
        "tools/log.mjs",
        "tools/plan.mjs",
        "tools/plan",
        "tools/words.mjs",
    }  # test_fits.py and test_plan.py weigh them
    apart |= {"tools/gguf_model.mjs"}  # once a GGUF file is given
    apart |= {"tools/run.mjs", "tools/run", "tools/stations.mjs"}  # these run a checkpoint, and count nothing
    apart |= {
        "tools/attention.mjs",
        "tools/attention",
        "tools/own_words.mjs",
        "tools/recorded.mjs",
        "tools/memory",
        "tools/memory.mjs",
    }  # and these
    apart |= {
        "tools/atlas",
        "tools/atlas.mjs",
        "tools/bars",
        "tools/bars.mjs",
        "tools/choices.mjs",
        "tools/stepped.mjs",
        "tools/growing",
        "tools/growing.mjs",
    }
    apart |= {"tools/pieces", "tools/pieces.mjs"}  # cuts a text, and counts nothing
    assert {f"tools/{path.name}" for path in (assets / "tools").iterdir()} <= listed | apart
    page, tools = sent(ASSETS), max(map(sent, PAGES))
    architecture = max(together(name, set()) for name in engine)
    model = max(len(gzip.compress(path.read_bytes())) for path in (assets / "engine" / "models").iterdir())
    assert page + tools + architecture + model <= MOST_BYTES, (page, tools, architecture, model)
