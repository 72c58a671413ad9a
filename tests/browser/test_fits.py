"""What fits, in a browser: the lists of the command line, to the last byte; sorted, filtered, linked to, undone."""

import gzip
import json
import random
from urllib.parse import parse_qs, urljoin, urlsplit

import pytest
from chromium import accessibility, ignored, overflow, until
from serving import own_assets

from macros.api.fits import fits
from macros.catalogue import presets
from macros.counting import fitting
from macros.counting.accelerators import accelerators
from macros.counting.conditions import Conditions
from macros.counting.costs import of as costs_of
from macros.counting.formats import CACHE_BYTES
from macros.counting.own_machine import named
from macros.views.kit import rounding

pytestmark = pytest.mark.browser

# Of scripts and data of the first load, compressed, besides what every page has; it may grow with each model.
MOST_BYTES = 70_000 + 207 * len(presets.paths())
LISTED = (
    *("problems.mjs", "conditions.mjs", "fitting.mjs", "tools.mjs", "tools/figures.mjs"),
    *(
        "tools/kit.mjs",
        "tools/tool.mjs",
        "tools/view.mjs",
        "tools/cells.mjs",
        "tools/words.mjs",
        "vendor/preact.mjs",
        "tools/fits.mjs",
    ),
    *("tools/runs.mjs", "tools/fits/answer.mjs", "tools/fits/view.mjs", "engine/python.mjs", "engine/base.mjs"),
    *("engine/conditions.mjs", "engine/data.json", "engine/fitting.mjs", "engine/runs.mjs"),
    *("engine/capacity.mjs", "engine/capacity.json"),
)


@pytest.fixture
def tool(open_page, site):
    """Open the tool; its answer stands."""

    def open_(asked="", **options):
        page = open_page(urljoin(site, f"tools/fits/{asked}"), **options)
        if options.get("java_script_enabled", True):
            page.locator(".ep-answer strong").wait_for()
            until(page, "!document.querySelector('.ep-tool[aria-busy=true]')")  # the list is whole
        return page

    return open_


def answer(page):
    return " ".join(page.locator(".ep-answer").inner_text().split())


def names(page, table=0):
    return page.locator(".ep-tool table").nth(table).locator("tbody th").all_inner_texts()


NAMES = "[...document.querySelectorAll('.ep-tool tbody th')].map(e => e.textContent).join('|')"
FIRST = "document.querySelector('.ep-tool tbody th')?.textContent"


def exact(page, name, column):
    """The exact number of a cell, by the words of its row and its heading."""
    table = page.locator(".ep-tool table").first
    heads = [" ".join(text.split()) for text in table.locator("thead th").all_inner_texts()]
    row = table.get_by_role("row").filter(has=page.get_by_role("rowheader", name=name, exact=True)).first
    return row.locator("th, td").nth(heads.index(column)).locator("[title]").get_attribute("title")


def asked(page):
    return {key: value for key, [value] in parse_qs(urlsplit(page.url).query).items()}


def test_a_machine_has_the_list_of_the_command_line(tool):
    there = fits(on="24GB", context=32_768)
    page = tool("?on=24GB&context=32768&batch=1")
    assert f"{len(there)} of {len(MODELS)} models fit on 24 GB at 32,768 tokens" in answer(page)
    assert f"{len(there.left_out['made_for_shorter_contexts'])} more would fit" in answer(page)
    assert names(page) == [row["name"] for row in there.found]
    for row in there.found[:: len(there) // 7]:
        assert exact(page, row["name"], "Memory used") == f"{row['total_bytes']:,} bytes"
        assert exact(page, row["name"], "Free") == f"{row['left_bytes']:,} bytes"
        cells = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name=row["name"], exact=True))
        said = cells.first.inner_text()
        assert fitting.in_words(row["weights"], row["format"]) in said
        assert "unlimited" in said if row["longest_context"] is None else f"{row['longest_context']:,}" in said


def test_a_model_has_its_formats_and_its_machines(tool):
    there = fits("llama3-70b", "24GB", context=8192, weights="int4")
    page = tool("?model=llama3-70b&weights=int4&on=24GB&context=8192")
    assert "Llama 3 70B in int4 does not fit on 24 GB:" in answer(page)
    assert f"{rounding.decimal_bytes(-there.left)} too much" in answer(page)
    assert f"It fits on {there.enough_devices} devices: {there.enough.said}" in answer(page)
    assert exact(page, "int4", "Memory used") == f"{there.total:,} bytes"
    assert exact(page, "int4", "Free") == f"−{-there.left:,} bytes"
    page.locator(".ep-tool table").nth(1).wait_for()
    machines = fits("llama3-70b", context=8192, weights="int4")
    assert names(page, 1) == [row["name"] for row in machines.found]
    page.get_by_role("link", name=machines.found[0]["name"], exact=True).click()
    page.get_by_text("Llama 3 70B in int4 fits on").wait_for()
    assert asked(page)["on"] == machines.found[0]["machine"] and asked(page)["model"] == "llama3-70b"


def test_the_best_format_of_a_model_is_named(tool):
    page = tool("?model=qwen3-14b&on=16GB&context=8192")
    there = fits("qwen3-14b", "16GB", context=8192, weights="best")
    assert f"Qwen3 14B in {there.given.format} fits on 16 GB" in answer(page)
    page = tool("?model=gpt-oss-20b&on=16GB&context=8192")
    assert "gpt-oss-20b as published (experts in mxfp4, the rest in bfloat16) fits on 16 GB" in answer(page)


def test_a_heading_sorts_and_the_address_keeps_it(tool, open_page):
    page = tool("?on=24GB&context=32768")
    page.get_by_role("columnheader", name="Free").get_by_role("button").click()
    page.wait_for_url("**sort=left*")
    there = sorted(fits(on="24GB", context=32_768).found, key=lambda row: -row["left_bytes"])
    assert names(page)[:3] == [row["name"] for row in there[:3]]
    again = tool(f"?{urlsplit(page.url).query}")
    assert names(again) == names(page)
    assert again.get_by_role("columnheader", name="Free").get_attribute("aria-sort") == "descending"
    page.get_by_role("button", name="16 GB").click()
    page.get_by_text("models fit on 16 GB").wait_for()
    assert page.get_by_role("columnheader", name="Free").get_attribute("aria-sort") == "descending"


def test_a_filter_shows_some_and_back_shows_all(tool):
    page = tool("?on=24GB&context=32768")
    whole = names(page)
    page.get_by_text("Filter models").click()
    page.get_by_label("Family").select_option("Gemma")
    page.get_by_label("Parameters, at least").select_option("3B")
    page.wait_for_url("**least=3B*")
    there = [r for r in fits(on="24GB", context=32_768).found if r["family"] == "Gemma" and r["parameters"] >= 3e9]
    assert names(page) == [row["name"] for row in there] and there
    assert f"Showing {len(there)}." in answer(page)
    page.go_back()  # the theme fetches the page once more on the first way back
    page.wait_for_timeout(1000)
    page.go_back()
    until(page, f"{NAMES} === {json.dumps('|'.join(whole))}")
    assert page.get_by_label("Family").input_value() == ""
    page.go_forward()
    page.go_forward()
    until(page, f"{NAMES} === {json.dumps('|'.join(row['name'] for row in there))}")


def test_a_name_leads_to_its_model_and_back_to_the_list(tool):
    page = tool("?on=24GB&context=32768")
    first = names(page)[0]
    page.get_by_role("link", name=first, exact=True).click()
    page.get_by_role("columnheader", name="Bits per weight").wait_for()
    assert answer(page).startswith(first) and page.get_by_text("Filter models").is_hidden()
    page.go_back()  # the theme fetches the page once more on the first way back
    until(page, f"document.querySelector('.ep-answer') && {FIRST} === {json.dumps(first)}")
    assert "models fit on 24 GB" in answer(page) and "model" not in asked(page)


def test_several_devices_share_a_model(tool):
    there = fits("llama3.3-70b", "rtx-4090", context=8192, weights="best", devices=2)
    page = tool("?model=llama3.3-70b&on=rtx-4090&devices=2&context=8192")
    assert f"in {there.given.format} fits on 2 × GeForce RTX 4090" in answer(page) and there.split.said in answer(page)
    assert exact(page, there.given.format, "Memory used") == f"{there.total:,} bytes"
    page = tool("?on=2GB&devices=2&context=8192&family=Gemma")
    page.locator(".ep-tool[aria-busy=false]").wait_for(timeout=240_000)
    there = [row for row in fits(on="2GB", devices=2, context=8192).found if row["family"] == "Gemma"]
    assert names(page) == [row["name"] for row in there] and there
    assert exact(page, there[0]["name"], "Memory used") == f"{there[0]['total_bytes']:,} bytes"


HOSTILE = [
    ("?on=%3Cimg%20src%3Dx%3E&context=4096", "on = '<img src=x>': neither an accelerator nor a size"),
    (f"?context={'9' * 20_000}", "context = "),
    ("?context=0&batch=-1", "expected a whole number from 1 to 999,999,999"),
    ("?weights=zzz&cache=constructor", "weights = 'zzz': no such format"),
    ("?weights=gptq-4bit-g64", "weights = gptq-4bit-g64: computed only for a single model"),
    ("?model=__proto__", "model = '__proto__': not in the list"),
    ("?family=%22%3E&kind=toString&licence=x", "family = "),
    ("?sort=constructor&order=up", "sort = 'constructor': no such choice"),
    ("?devices=65537", "devices = 65537: expected a whole number from 1 to 65,536"),
]


@pytest.mark.share(3)
@pytest.mark.parametrize("given, said", HOSTILE)
def test_what_an_address_says_and_cannot_be_is_said(tool, given, said):
    page = tool(given)
    assert said in ignored(page)
    assert "models fit on 24 GB" in answer(page)


def test_what_a_model_cannot_do_is_one_line(tool):
    page = tool("?model=llama3-70b&on=24GB")
    page.get_by_label("Devices").fill("7")
    line = page.locator(".ep-problem:not([hidden])")
    line.get_by_text("no split over 7 devices").wait_for()
    page.get_by_label("Devices").fill("8")
    page.locator(".ep-answer").get_by_text("fits on 8 × 24 GB").wait_for()
    assert line.count() == 0
    page.locator("input[name=machine]").fill("24 elephants")
    line.get_by_text("on = '24 elephants': neither an accelerator nor a size").wait_for()


def test_without_scripts_usual_machines_stand(tool):
    page = tool(java_script_enabled=False)
    there = fits(on="24GB", context=8192).found
    table = page.get_by_role("group", name="Models that fit on 24 GB", exact=True)
    assert table.locator("tbody th").all_inner_texts() == [row["name"] for row in there[:12]]
    row = page.get_by_role("row").filter(has_text="Llama 3.3 70B").first.inner_text()
    assert fits("llama3.3-70b", "48GB", context=8192, weights="best").given.format in row


def test_a_format_that_no_engine_runs_there_is_said_and_not_listed(tool):
    page = tool("?model=deepseek-v3&weights=published&on=v100&devices=1")
    assert "No engine runs fp8 on V100" in answer(page)
    formats = page.locator("table").first.inner_text()
    assert "Q2_K" in formats and "No engine" not in formats


@pytest.mark.share(3)
@pytest.mark.parametrize("given", ["?on=24GB&context=32768", "?model=llama3-70b&on=h100&context=8192"])
@pytest.mark.parametrize("width", [390, 1280])
def test_on_a_phone_and_for_everybody(tool, given, width):
    page = tool(given, viewport={"width": width, "height": 900})
    assert not overflow(page)
    assert not accessibility(page)


def test_the_first_load_is_light(tool, site_folder):
    """A list of models needs no forward pass: none is loaded."""
    assets = own_assets(site_folder)
    page = tool()
    page.wait_for_load_state("networkidle")
    asked = page.evaluate("performance.getEntriesByType('resource').map(e => e.name)")
    assert set(LISTED) <= {name.partition(f"/{assets.name}/")[2] for name in asked}
    assert not [name for name in asked if name.endswith(("engine/engine.mjs", "/model.mjs"))]
    sizes = {name: len(gzip.compress((assets / name).read_bytes())) for name in LISTED}
    assert sum(sizes.values()) <= MOST_BYTES, sizes


def test_the_catalogue_shows_what_fits(open_page, site):
    page = open_page(urljoin(site, "models/?on=24GB&at=32768"))
    there = {row["name"] for row in fits(on="24GB", context=32_768).found}
    rows = page.locator(".ep-catalogue tbody tr:visible th")
    page.wait_for_function(
        "n => [...document.querySelectorAll('.ep-catalogue tbody tr')].filter(r => !r.hidden).length === n",
        arg=len(there),
    )
    assert set(rows.evaluate_all("cells => cells.map(c => c.dataset.sort)")) == there
    page.get_by_label("Fits on").fill("24 elephants")
    page.get_by_role("alert").filter(has_text="Fits on: neither an accelerator nor a size").wait_for()
    assert rows.count() == len(presets.paths())


MODELS = [slug for slug in presets.paths() if presets.preset(slug).config is not None]

# What the browser says of each model, from the data and by the rule of the site.
ANSWERS = """
async cases => {
  const source = [...document.scripts].find(s => s.src.includes("/tools.mjs")).src
  const { capacitiesIn, capacitiesOn, fitting } = await import(new URL("fitting.mjs", source))
  const { conditions, machine, py } = await import(new URL("model.mjs", source))
  const { data } = await import(new URL("tools/kit.mjs", source))
  const { accelerators } = await data()
  const answers = []
  for (const { on, weights, context, batch, cache, devices, slugs } of cases) {
    const all = await capacitiesIn(weights), several = devices > 1 && (await capacitiesOn(BigInt(devices), weights))
    const given = conditions({
      context: BigInt(context), batch: BigInt(batch), dtype: cache, devices: BigInt(devices),
    })
    for (const slug of slugs) {
      const said = fitting(several ? several.get(slug) : all.get(slug).sized, weights, given, machine(on, accelerators))
      answers.push(said && [
        said.format, ...[...said.terms].map(name => `${said.terms.read(name)}`), `${said.left}`,
        `${said.longest_context}`, `${said.largest_batch}`, said.seconds && py.str(said.seconds),
        py.str(said.bits_per_weight),
      ])
    }
  }
  return answers
}
"""


def test_the_browser_fits_what_python_fits(tool):
    """Every number of an answer, of many models under drawn conditions, in every format of the list."""
    rng = random.Random("fits")
    machines = ["24GB", "12GB,300GB/s", "8GB", "64GB,2xDDR5-5600", "24GB,1008GB/s,165TFLOPS", "h100", *accelerators()]
    formats = ["best", "best", "best", *fitting.LADDER, *fitting.LISTED]
    cases = [
        {
            "on": rng.choice(machines),
            "weights": (weights := rng.choice(formats)),
            "context": rng.choice((1, 2, 129, 4097, 8192, 32_768, 131_072, rng.randrange(1, 10**6))),
            "batch": rng.choice((1, 1, 3, 64)),
            "cache": rng.choice(list(CACHE_BYTES)),
            "devices": 1 if weights in fitting.LISTED else rng.choice((1, *fitting.DIVIDED_ON_SITE)),
            "slugs": rng.sample(MODELS, 12),
        }
        for _ in range(24)
    ]
    here = tool().evaluate(ANSWERS, cases)
    there = []
    for case in cases:
        given = Conditions(case["context"], case["batch"], dtype=case["cache"], devices=case["devices"])
        for slug in case["slugs"]:
            said = fitting.fitting(
                costs_of(presets.model(slug).counts), case["weights"], given, named(case["on"], accelerators())
            )
            there.append(
                said
                and [
                    said.format,
                    *map(str, (*said.terms.values(), said.left, said.longest_context)),
                    str(said.largest_batch),
                    said.seconds and str(said.seconds),
                    str(said.bits_per_weight),
                ]
            )
    there = [answer and ["null" if text == "None" else text for text in answer] for answer in there]
    assert [pair for pair in zip(here, there, strict=True) if pair[0] != pair[1]] == []
    assert sum(answer is not None for answer in there) > len(there) / 3
