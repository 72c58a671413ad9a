"""A model of the reader's own in the atlas: it stands where the catalog's model of the same config stands."""

import json
from urllib.parse import urljoin

import pytest
from chromium import accessibility, overflow

from macros.catalogue import presets
from macros.counting import design

pytestmark = pytest.mark.browser

# Of each chart that has a mark: how far that is from the point of a model, to the right and down.
FAR = """name => Object.fromEntries([...document.querySelectorAll("g.ep-own-mark")].flatMap(mark => {
    const points = [...mark.closest("svg").querySelectorAll("a.point")],
        point = points.find(one => one.textContent.startsWith(`${name}:`))
    if (!mark.firstChild || !point) return []
    const middle = one => { const b = one.getBBox(); return [b.x + b.width / 2, b.y + b.height / 2] }
    const [a, b] = [mark.querySelector("path"), point.lastElementChild].map(middle)
    return [[mark.dataset.choice, [a[0] - b[0], a[1] - b[1]]]]
}))"""


@pytest.mark.parametrize(
    ("slug", "name", "charts"),
    [("llama3-8b", "Llama 3 8B", 6), ("mixtral-8x7b", "Mixtral 8x7B", 6), ("rwkv-4-169m", "RWKV-4 169M", 3)],
)
def test_a_model_is_marked_where_the_catalog_has_it(open_watched, site, slug, name, charts):
    page, asked = open_watched(urljoin(site, f"tools/config/#name={slug}"))
    page.get_by_role("link", name="Mark in the atlas").click()
    page.get_by_text("is marked in the charts").wait_for()
    far = page.evaluate(FAR, name)
    assert len(far) == charts and ("active share" in far) == (slug == "mixtral-8x7b")
    assert all(abs(down) < 0.6 for _, down in far.values()), far
    assert abs(far.get("KV cache", [0])[0]) < 0.2 and far["timeline"][0] > 0, "released long ago, marked today"
    items = dict(row.split(": ") for row in page.get_by_role("listitem").all_inner_texts() if row.count(": ") == 1)
    chosen = design.choices(presets.model(slug).counts)
    assert {name for name, said in items.items() if said == "no such choice"} == {
        n for n in chosen if chosen[n] is None
    }
    assert all(url.startswith(site) for url in asked)


def test_only_who_asks_is_shown_a_mark(open_watched, site):
    page, asked = open_watched(urljoin(site, "models/atlas/"), viewport={"width": 390, "height": 844})
    page.get_by_role("link", name="Any config").wait_for()
    assert not page.locator("g.ep-own-mark > *").count() and not [url for url in asked if "/engine/" in url]
    config = json.dumps({**dict(presets.model("gpt2").raw), "n_embd": 1024, "n_layer": 10, "n_head": 16})
    page.goto(urljoin(site, f"models/atlas/?mark=<b>Mine</b>#config={config}"))
    page.reload()
    page.get_by_role("status").get_by_text("<b>Mine</b> is marked").wait_for()
    assert page.get_by_role("listitem").filter(has_text="width to depth: 102").count() == 1
    assert not overflow(page) and not accessibility(page, "light", "dark")
    page.get_by_label("Name").fill("Ours")
    page.get_by_label("Name").press("Tab")
    page.get_by_role("status").get_by_text("Ours is marked").wait_for()
    assert "mark=Ours" in page.url and "Ours" in page.locator("g.ep-own-mark text").all_text_contents()
    page.get_by_role("button", name="Remove the mark").click()
    assert not page.locator("g.ep-own-mark > *").count() and "config=" not in page.url
    page.goto(urljoin(site, "models/atlas/#config=[1]"))
    page.reload()
    page.get_by_role("alert").get_by_text("expected a JSON object").wait_for()
