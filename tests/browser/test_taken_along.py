"""What is taken from a page: a table as CSV or Markdown; what stands in its head under a strict policy."""

import csv
import io
from urllib.parse import urljoin

import pytest
from conftest import accessibility

from macros.catalogue import presets

pytestmark = pytest.mark.browser


def test_a_table_is_copied_as_csv_and_as_markdown(open_page, site):
    page = open_page(urljoin(site, "models/llama/llama3-8b/"), permissions=["clipboard-read", "clipboard-write"])
    page.wait_for_load_state("networkidle")
    page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    row = page.get_by_role(
        "group", name="Copy the table “Every tensor of Llama 3 8B, in the order of the forward pass”"
    )
    assert row.evaluate("row => row.getBoundingClientRect().height") == 0  # nothing moves when they come
    frame, buttons = (
        row.locator("xpath=ancestor::*[@role='group' or @role='region'][1]"),
        row.get_by_role("button").all(),
    )
    boxes, around = [button.bounding_box() for button in buttons], frame.bounding_box()
    assert len(boxes) == 4 and all(min(box["width"], box["height"]) >= 24 for box in boxes)
    assert boxes[-1]["x"] + boxes[-1]["width"] <= around["x"] + around["width"]  # within the table's frame
    row.get_by_title("Copy this table as CSV").click()
    row.get_by_role("button", name="Copied").wait_for()
    rows = list(csv.reader(io.StringIO(page.evaluate("navigator.clipboard.readText()"))))
    assert len({len(cells) for cells in rows}) == 1 and rows[0][0] == "Tensor"
    counts = {cells[0].partition(" ")[0]: cells[rows[0].index("Parameters")] for cells in rows}
    assert counts["model.embed_tokens.weight"] == "525336576"
    assert counts["Total"] == str(presets.model("llama3-8b").counts.total)  # the last row
    row.get_by_role("button", name="CSV", exact=True).wait_for()  # it says “Copied” for a while
    row.get_by_title("Copy this table as Markdown").click()
    row.get_by_role("button", name="Copied").wait_for()
    lines = page.evaluate("navigator.clipboard.readText()").splitlines()
    assert lines[1] == "| --- | --- | --- | --- | --- | --- |" and len(lines) == len(rows) + 1
    assert any(line.startswith("| model.embed_tokens.weight ") and "525,336,576" in line for line in lines)
    assert not accessibility(page, "light")


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
