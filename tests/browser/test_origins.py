"""Any number of the small model in a browser says what it was made of: the terms give the number, the numbers are
Python's, and a reader follows them by keyboard from an attention weight to the row of a token."""

import math
import re
from urllib.parse import urljoin

import numpy as np
import pytest
from conftest import accessibility, ignored, overflow, own_assets, until
from reference import close

from macros.catalogue.checkpoints import checkpoint
from macros.engine import numbers
from macros.engine.steps import Role

pytestmark = pytest.mark.browser

TEXT = "People in Japan pay with the"
ORIGINS = """async ([assets, ids, changes, most]) => {
  const { checkpoint } = await import(new URL("running.mjs", assets))
  const { candidates, Run } = await import(new URL("tools/capitals/inside.mjs", assets))
  const { Origins } = await import(new URL("tools/capitals/origin.mjs", assets))
  const read = async (name, as) => (await fetch(new URL(`capitals/${name}`, assets)))[as]()
  const model = await checkpoint(await read("config.json", "text"), await read("model.safetensors", "arrayBuffer"))
  const { off, without = [], other, patches } = changes,
    from = other ? new Run(model, { without }) : null
  from?.add(other)
  const run = new Run(model, { off: new Set(off), without, from, patches: new Set(patches) }),
    cut = run.isMasked ? 3 : ids.length
  run.add(ids.slice(0, cut))
  run.add(ids.slice(cut))
  const all = candidates(run.scores, { temperature: 2, topK: 30, topP: 0.9 }),
    origins = new Origins(run, ids.map(String), Array(590).fill(""), all, 2),
    seen = new Map(),
    open = ["logit/7", "logit/100", "token/2/5", "position/3/7", "lens/0/7", "lens/1/9", "lens/3/100", "chance/7"]
  open.push("found/1/2/3", "part/1/2/7", "part/0/mlp/7", "part/2/bias/9", `chance/${all[20].id}`, `left/${all[0].id}`)
  open.push(...["token", "position", "taken", "shift"].map(part => `part/0/${part}/7`))
  while (open.length && seen.size < most) {
    const place = seen.size % 2 ? open.shift() : open.pop()
    if (seen.has(place)) continue
    const one = origins.of(place)
    const terms = one.rows.map(row => row.at(-1).value)
    seen.set(place, { value: one.value, terms, then: one.then.map(([, part]) => part.value) })
    const parts = [...one.rows.flatMap(([, ...parts]) => parts), ...one.then.map(([, part]) => part)]
    const of = parts.filter(part => part.of)
    if (of.some(part => origins.value(part.of) !== part.value)) throw new Error(place)
    const back = of.filter((_, i) => of.length < 9 || i % 7 === seen.size % 7).map(part => part.of)
    open.push(...one.next.map(([, to]) => to), ...back)
  }
  const has = ["score/0/0/1/0", "score/0/0/0/9", "map/9/out/0/0", "constructor/1", "map/0/x/0/0", "norm/0/0"]
  has.push("part/0/x/7", "part/0/9/7", "part/1/token/7", "part/0/0/999", "lens/9/7", "left/999", "found/0/9/0")
  return {
    origins: [...seen],
    made: Object.fromEntries(run.made),
    layers: run.layers,
    has: has.map(place => origins.has(place)),
  }
}"""


@pytest.fixture
def choose(open_page, site):
    return lambda asked="", **options: open_page(urljoin(site, f"real-numbers/choose/{asked}"), **options)


@pytest.fixture
def asked(choose, site, site_folder):
    """What the browser says of a text's numbers: `asked({"off": ["1.2"]})` with a head off."""
    ids = checkpoint("capitals").tokenizer.encode(TEXT)
    assets = urljoin(site, f"{own_assets(site_folder).name}/")
    page = choose()
    return lambda changes, most=0: page.evaluate(ORIGINS, [assets, ids, changes, most])


def made(origin):
    """The number that an origin's terms give."""
    total, then = sum(origin["terms"]), origin["then"]

    def gelu(x):
        return x / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))

    def norm():
        return (then[0] - then[1]) / then[2] * then[3] + then[4] if len(then) > 1 else then[0]

    return {
        "logit": lambda: total,
        "chance": lambda: then[1] / (total + then[0]),
        "left": lambda: then[1] / (total + then[0]),
        "lens": lambda: total,
        "ended": norm,
        "part": lambda: total,
        "found": lambda: total,
        "norm": norm,
        "stream": lambda: sum(then),
        "map": lambda: total + then[0],
        "active": lambda: gelu(then[0]),
        "score": lambda: total * then[0] if then else total,
        "share": lambda: then[0] / total,
        "mixed": lambda: then[0] if then else total,
        "token": lambda: origin["value"],
        "position": lambda: origin["value"],
    }


CHANGES = {
    "as it is": {},
    "parts off": {"off": ["1.2", "0.mlp", "2.layer"]},
    "without": {"without": ["scaling", "causal_mask", "ln_2", "ln_f"]},
    "replaced": {"without": ["residual_stream"]},
    "patched": {"other": [7, 8, 9, 10, 11, 12], "patches": ["1.2@5", "0.3@1", "0.mlp@3", "2.stream@5", "0.stream@0"]},
}


def test_the_terms_give_the_number(asked):
    """Of every kind, in hundreds of places along the chain, also with parts off, without designs, and with patches."""
    for changes in CHANGES.values():
        check(asked(changes, 800))


def check(answer):
    kinds = {place.partition("/")[0] for place, _ in answer["origins"]}
    assert kinds == set(made({"terms": [], "then": []})) and len(answer["origins"]) == 800
    for place, origin in answer["origins"]:
        value = made(origin)[place.partition("/")[0]]()
        assert abs(value - origin["value"]) <= 1e-5 * max(1, abs(value)), (place, origin)
    assert answer["has"] == [True, *[False] * 12]


def test_the_numbers_are_those_of_python(asked):
    small, answer = checkpoint("capitals"), asked({})
    run, _ = numbers.trace(
        small.model.architecture, small.model.config, small.weights(), small.tokenizer.encode(TEXT), None
    )

    def ours(role):
        return [run.of(node.outputs[0]) for node in run.root.walk() if node.role is role]

    names = ("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj")
    maps, norms = ours(Role.CONV1D), ours(Role.LAYER_NORM)
    for layer, there in enumerate(answer["layers"]):
        at = f"transformer.h.{layer}."
        for name, array in zip(names, maps[4 * layer :], strict=False):
            close(np.array(answer["made"][at + name]), array)
        for i in (1, 2):
            close(np.array(answer["made"][f"{at}ln_{i}"]), norms[2 * layer + i - 1])
        close(np.array(answer["made"][f"{at}mlp.act"]), ours(Role.GELU_TANH)[layer])
        close(np.array(there["mixed"]), ours(Role.WEIGHTED_SUM)[layer])
        for role, kept in ((Role.SCORES, "scores"), (Role.SOFTMAX, "shares")):
            for t, heads in enumerate(there[kept]):
                close(np.array(heads), ours(role)[layer][:, t, : t + 1])
    close(np.array(answer["made"]["transformer.ln_f"]), norms[-1])


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
    panel.get_by_text("“is” looks at “Peru”, layer 1, head 2").wait_for()
    assert page.evaluate("document.activeElement.className").startswith("ep-origin")
    for place, title in (
        ("score/1/2/4/3", "Score"),
        ("map/1/c_attn/3/74", "Key of “Peru”"),
        ("norm/2/3/5", "Norm of “Peru”"),
        ("stream/2/3/5", "after feed-forward of layer 0"),
        ("stream/1/3/5", "after attention of layer 0"),
        ("stream/0/3/5", "before the first layer"),
        ("token/3/5", "Row of “Peru” in the table of words"),
    ):
        panel.locator(f"[data-key='of {place}']").press("Enter")
        panel.get_by_text(title).first.wait_for()
    panel.get_by_role("button", name="Full precision").click()
    value = panel.locator("output[data-value]")
    until(page, "document.querySelector('output[data-value]').textContent.length > 8")
    assert float(value.inner_text().replace("−", "-")) == float(value.get_attribute("data-value"))
    again = choose(page.url[page.url.index("?") :])
    again.get_by_text("Row of “Peru” in the table of words").wait_for()
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
    page.get_by_text("Times 1 / √d_head").wait_for()
    assert not overflow(page) and not accessibility(page, "light", "dark")
