"""What is taken from a page: a table as CSV or Markdown; what stands in its head under a strict policy."""

import csv
import io
from urllib.parse import urljoin

import pytest
from chromium import accessibility

from macros.catalogue import presets

pytestmark = pytest.mark.browser


def test_a_table_is_copied_as_csv_and_as_markdown(open_page, site):
    page = open_page(urljoin(site, "models/llama/llama3-8b/"), permissions=["clipboard-read", "clipboard-write"])
    page.wait_for_load_state("networkidle")
    page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    of = "Copy the table “Every tensor of Llama 3 8B, in the order of the forward pass”"
    opening = page.get_by_role("button", name=of, exact=True)
    row = opening.locator("..")
    assert row.evaluate("row => row.getBoundingClientRect().height") == 0  # nothing moves when it comes
    box, around = opening.bounding_box(), row.locator("..").bounding_box()
    assert min(box["width"], box["height"]) >= 24
    assert box["x"] + box["width"] <= around["x"] + around["width"]  # within the table's frame
    opening.focus()
    page.keyboard.press("Enter")
    panel = page.get_by_role("group", name=of, exact=True)
    ways = panel.get_by_role("button")
    assert ways.all_inner_texts() == ["Copy as CSV", "Save as CSV", "Copy as Markdown", "Save as Markdown"]
    assert all(way.bounding_box()["height"] >= 24 for way in ways.all())
    under = panel.bounding_box()
    assert 0 <= under["y"] - (opening.bounding_box()["y"] + box["height"]) < 5
    assert accessibility(page, "light") == []
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    row.get_by_text("Copied").wait_for()
    assert not panel.is_visible()
    rows = list(csv.reader(io.StringIO(page.evaluate("navigator.clipboard.readText()"))))
    assert len({len(cells) for cells in rows}) == 1 and rows[0][0] == "Tensor"
    counts = {cells[0].partition(" ")[0]: cells[rows[0].index("Parameters")] for cells in rows}
    assert counts["model.embed_tokens.weight"] == "525336576"
    assert counts["Total"] == str(presets.model("llama3-8b").counts.total)  # the last row
    row.get_by_text("Copy", exact=True).wait_for()  # it says “Copied” for a while
    opening.click()
    ways.filter(has_text="Copy as Markdown").click()
    row.get_by_text("Copied").wait_for()
    lines = page.evaluate("navigator.clipboard.readText()").splitlines()
    assert lines[1] == "| --- | --- | --- | --- | --- | --- |" and len(lines) == len(rows) + 1
    assert any(line.startswith("| model.embed_tokens.weight ") and "525,336,576" in line for line in lines)


def test_a_heading_sorts_what_stands_between_sums(open_page, site):
    page = open_page(urljoin(site, "models/llama/llama3-8b/"))
    page.wait_for_load_state("networkidle")
    page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    table = page.get_by_role("group", name="Parameter table of Llama 3 8B", exact=True).get_by_role("table")
    rows = "t => [...t.tBodies].map(b => [...b.rows].map(r => r.innerText))"
    given = table.evaluate(rows)
    button = table.get_by_role("columnheader", name="Parameters").get_by_role("button")
    button.click()
    assert table.get_by_role("columnheader", name="Parameters").get_attribute("aria-sort") == "descending"
    by_size = table.evaluate(rows)
    assert by_size != given and [sorted(body) for body in by_size] == [sorted(body) for body in given]
    assert [body[-1] for body in by_size] == [body[-1] for body in given]  # the sums in their places
    button.click()
    button.click()
    assert table.evaluate(rows) == given


def test_data_in_the_head_is_no_script_to_a_policy(open_page, site):
    """A policy without inline scripts lets it stand: a violation would be a line on the console, which fails here."""
    page = open_page(site)
    policy = {"content-type": "text/html", "content-security-policy": "default-src 'none'"}
    data = '<!doctype html><html lang="en"><title>x</title><script type="application/ld+json">{"a": 1}</script>'
    page.route("**/under-a-policy", lambda route: route.fulfill(body=data, headers=policy))
    page.goto(urljoin(site, "under-a-policy"))
    assert page.evaluate("JSON.parse(document.querySelector('script').textContent).a") == 1
