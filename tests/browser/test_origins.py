"""Any number of the small model in a browser says what it was made of: the terms give the number, the numbers are
Python's, and a reader follows them by keyboard from an attention weight to the row of a token."""

import re
from urllib.parse import urljoin

import numpy as np
import pytest
from chromium import accessibility, ignored, moving, overflow, until
from reference import close
from serving import own_assets
from test_running import assert_made

from macros.catalogue.checkpoints import checkpoint
from macros.engine import numbers
from macros.engine.steps import Role

pytestmark = pytest.mark.browser

TEXT = "People in Japan pay with the"
ORIGINS = """async ([assets, ids, changes, most, named]) => {
  const { smallModel } = await import(new URL("tools/capitals/small.mjs", assets))
  const { session } = await smallModel()
  const { off = [], without = [], other = null, patches = [] } = changes,
    how = { temperature: 2, topK: 30, topP: 0.9 },
    cut = without.includes("causal_mask") ? ids.length : 3,
    run = ids => session.run(ids, [], undefined, { off, without, patches, other: other?.slice(0, ids.length) ?? null })
  run(ids.slice(0, cut))
  run(ids)
  const { likely } = session.answer(how),
    seen = new Map(),
    open = ["logit/7", "logit/100", "token/2/5", "position/3/7", "lens/0/7", "lens/1/9", "lens/3/100", "chance/7"]
  open.push("found/1/2/3", "part/1/2/7", "part/0/mlp/7", "part/2/bias/9", `chance/${likely[5].id}`)
  open.push("norm/6/0/0", "norm/2/3/5", "stream/0/2/1", "stream/1/2/1", "stream/6/1/7", "map/0/c_attn/1/50")
  open.push("map/1/out/2/3", "map/2/c_fc/1/9", "map/0/down/0/7", "active/1/2/30", "score/0/0/3/1", "share/2/1/4/2")
  open.push("mixed/1/2/3/4", "key/2/3/1/5", `left/${likely[0].id}`)
  open.push(...["embedding", "shift", "between"].map(part => `part/0/${part}/7`))
  const places = open.length
  while (open.length && seen.size < most) {
    const place = seen.size % 2 || seen.size < places ? open.shift() : open.pop()
    if (seen.has(place)) continue
    const one = session.origin(place, how)
    seen.set(place, one && {
      ...{ title: one.title, how: one.how, value: one.value, isList: one.isList ?? false },
      rows: one.rows.map(row => [row[0], row.at(-1).value]),
      then: one.then.map(([label, part]) => [label, part.value]),
    })
    if (!one) continue
    const parts = [...one.rows.flatMap(([, ...parts]) => parts), ...one.then.map(([, part]) => part)]
    const of = parts.filter(part => part.of)
    const wrong = of.slice(0, 3).find(part => session.origin(part.of, how).value !== part.value)
    if (wrong) throw new Error(wrong.of)
    const back = of.filter((_, i) => of.length < 9 || i % 7 === seen.size % 7).map(part => part.of)
    open.push(...one.next.map(([, to]) => to), ...back)
  }
  const not = ["score/0/0/1/9", "map/9/out/0/0", "constructor/1", "map/0/x/0/0", "norm/0/0", "part/0/x/7", "left/999"]
  not.push("part/0/9/7", "part/1/embedding/7", "part/0/0/999", "lens/9/7", "found/0/9/0", "99999/0", "w999/0", "0_0/0")
  return {
    origins: [...seen],
    numbers: named.map(places => places.map(place => session.number(place))),
    not: not.filter(place => session.origin(place, how)),
  }
}"""


@pytest.fixture
def choose(open_page, site):
    return lambda asked="", **options: open_page(urljoin(site, f"real-numbers/step-by-step/{asked}"), **options)


@pytest.fixture
def asked(choose, site, site_folder):
    """What the browser says of a text's numbers: `asked({"off": ["1.2"]})` with a head off."""
    ids = checkpoint("capitals").tokenizer.encode(TEXT)
    assets = urljoin(site, f"{own_assets(site_folder).name}/")
    page = choose()
    return lambda changes, most=0, named=(): page.evaluate(ORIGINS, [assets, ids, changes, most, list(named)])


CHANGES = {
    "as it is": {},
    "parts off": {"off": ["1.2", "0.mlp", "2.layer"]},
    "without": {"without": ["scaling", "causal_mask", "ln_2", "ln_f"]},
    "replaced": {"without": ["residual_stream"]},
    "patched": {"other": [7, 8, 9, 10, 11, 12], "patches": ["1.2@5", "0.3@1", "0.mlp@3", "2.stream@5", "0.stream@0"]},
}


def test_the_terms_give_the_number(asked):
    """In hundreds of places along the chain, also with parts off, without designs, and with patches."""
    for name, changes in CHANGES.items():
        answer = asked(changes, 500)
        origins = dict(answer["origins"])
        none = {place for place, origin in origins.items() if origin is None}
        # No part adds to the logit without the residual stream; in a layer that is off, parts are not told apart.
        parts = {place for place in origins if place.startswith("part/")}
        assert none == {"replaced": parts, "parts off": {"part/2/bias/9"}}.get(name, set()), name
        assert len(origins) == 500 and not answer["not"]
        for place in origins.keys() - none:
            assert_made(origins[place], 1e-5)


def test_the_numbers_are_those_of_python(asked):
    """By the names that the static pages give them."""
    small = checkpoint("capitals")
    run, _ = numbers.trace(
        small.model.architecture, small.model.config, small.weights(), small.tokenizer.encode(TEXT), None
    )

    def ours(role):
        return [run.of(node.outputs[0]) for node in run.root.walk() if node.role is role]

    known = {}
    for i, array in enumerate(ours(Role.CONV1D)):
        known[f"map/{i // 4}/{('c_attn', 'out', 'c_fc', 'down')[i % 4]}"] = array
    known |= {f"norm/{i}": array for i, array in enumerate(ours(Role.LAYER_NORM))}
    known |= {f"active/{i}": array for i, array in enumerate(ours(Role.GELU_TANH))}
    known |= {f"stream/{2 * i + 2}": array for i, array in enumerate(ours(Role.LAYER))}
    for role, kind in ((Role.SCORES, "score"), (Role.SOFTMAX, "share"), (Role.WEIGHTED_SUM, "mixed")):
        for layer, array in enumerate(ours(role)):
            heads = array.swapaxes(0, 1) if kind == "mixed" else np.tril(array)
            known |= {f"{kind}/{layer}/{head}": rows for head, rows in enumerate(heads)}
    known |= {"token": ours(Role.EMBED)[0], "position": ours(Role.EMBED_POSITIONS)[0]}
    named = [[f"{name}/{i}/{j}" for i, j in np.ndindex(array.shape)] for name, array in known.items()]
    for (name, array), there in zip(known.items(), asked({}, 0, named)["numbers"], strict=True):
        there = np.reshape(there, array.shape)
        close(np.nan_to_num(there) if name.startswith("score") else there, array)


def test_where_an_attention_weight_comes_from(choose):
    """By keyboard: Enter on a cell, back along the chain to the token's row, Escape to the cell; a link keeps it."""
    page = choose("?country=Peru")
    weights = page.get_by_role("grid", name=re.compile("^Attention weights"))
    weights.wait_for()
    weights.locator("td[tabindex='0']").focus()
    for key in ("ArrowDown", "End", "Home", "ArrowDown", "ArrowDown", "ArrowDown", "End", "ArrowLeft"):
        page.keyboard.press(key)
    assert page.evaluate("document.activeElement.dataset.place") == "share/1/2/4/3"
    page.keyboard.press("Enter")
    panel = page.get_by_role("region", name="What this number is made of")
    panel.get_by_text("Attention weight, layer 1, head 2: “is” looks at “Peru”").wait_for()
    assert page.evaluate("document.activeElement.className").startswith("ep-origin")
    lit = page.locator("tr.lit th")
    assert lit.all_inner_texts() == ["is", "Peru"]  # its row, and that of the key
    for nth, title in (
        (3, "Score, layer 1, head 2: “is” looks at “Peru”"),
        (5, "Key of “Peru”, layer 1, head 2, element 3"),
        (0, "LayerNorm transformer.h.1.ln_1, layer 1, “Peru”"),
        (0, "Residual stream, layer 0, “Peru”"),
        (0, "Residual stream, layer 0, “Peru”"),
        (0, "Embedding, “Peru”"),
        (0, "transformer.wte.weight, "),
    ):
        panel.locator("[data-key^='of ']").nth(nth).press("Enter")
        panel.get_by_text(title).first.wait_for()
    panel.get_by_role("button", name="Full precision").click()
    value = panel.locator("output[data-value]")
    until(page, "document.querySelector('output[data-value]').textContent.length > 8")
    assert float(value.inner_text().replace("−", "-")) == float(value.get_attribute("data-value"))
    again = choose(page.url[page.url.index("?") :])
    again.get_by_text("transformer.wte.weight, ").wait_for()
    panel.focus()
    page.keyboard.press("Escape")
    panel.wait_for(state="detached")
    until(page, "document.activeElement.dataset.place === 'share/1/2/4/3'")
    page.get_by_role("button", name=re.compile("Logit of Lima")).click()
    panel.get_by_text("Logit of “Lima”").wait_for()


def test_a_place_that_is_none_is_said_or_shows_nothing(choose):
    page = choose("?number=<b>x</b>")
    assert 'number = "<b>x</b>"' in ignored(page)
    page = choose("?number=share/9/9/9/9")
    page.get_by_text("Most likely next words").wait_for()
    assert not page.locator(".ep-origin").count()


def test_an_origin_on_a_phone_and_for_everybody(choose):
    page = choose("?country=Peru&number=norm/6/4/0", viewport={"width": 390, "height": 844})
    page.locator(".ep-origin").wait_for()
    assert not overflow(page) and not accessibility(page, "light", "dark")
    page.goto(page.url.replace("norm/6/4/0", "score/1/2/4/3").replace("norm%2F6%2F4%2F0", "score%2F1%2F2%2F4%2F3"))
    page.locator(".ep-origin dt", has_text="Times").wait_for()
    assert not overflow(page) and not accessibility(page, "light", "dark")
    assert not moving(page)
