"""All heads of the small model in a browser: what is off is as if its weights were zero, and what each part adds to a
score adds up to it."""

import re
from urllib.parse import urljoin

import numpy as np
import pytest
from chromium import accessibility, overflow, until
from reference import close
from serving import own_assets

from macros.catalogue import capitals
from macros.catalogue.checkpoints import checkpoint
from macros.engine.forward import logits
from macros.engine.loaded import Arrays

pytestmark = pytest.mark.browser

OFF = ("", "0.0", "1.2|2.3", "2.mlp", "1.layer", "0.1|1.mlp|2.layer")
WITHIN = 1e-5

RUN = """async ([assets, texts, off]) => {
  const { smallModel } = await import(new URL("tools/capitals/small.mjs", assets))
  const { endings } = await import(new URL("tools/capitals/inside.mjs", assets))
  const { session } = await smallModel()
  return texts.map(ids => {
    const changes = { off: off.split("|"), without: [], patches: [], other: null }
    for (const part of [ids.slice(0, 2), ids]) session.run(part, [], undefined, changes)
    const totals = [0, 7, 100, 589].map(word => {
      const { embedding, between, shift, layers } = session.parts(word)
      return [embedding + between + shift + layers.reduce((sum, { whole }) => sum + whole, 0), session.scores[word]]
    })
    return { scores: session.scores, lens: endings(session.now), totals }
  })
}"""


@pytest.fixture
def choose(open_page, site):
    return lambda asked="", **options: open_page(urljoin(site, f"real-numbers/step-by-step/{asked}"), **options)


@pytest.fixture(scope="module")
def texts():
    """A few prompts, each of another sentence and country."""
    encode, countries = checkpoint("capitals").tokenizer.encode, capitals.countries()
    return [encode(s.prompt(countries[11 * i + 3])) for i, s in enumerate(capitals.sentences())]


def without(off):
    """The small model with zeros for the weights of what is off."""
    small = checkpoint("capitals")
    tensors = {name: np.array(small.weights().tensors[name], np.float32) for name in small.weights().tensors}
    width, heads = small.model.config.d_head, small.model.config.n_heads
    for part in filter(None, off.split("|")):
        layer, _, what = part.partition(".")
        at = f"transformer.h.{layer}."
        if what.isdigit():
            tensors[f"{at}attn.c_proj.weight"].reshape(heads, width, -1)[int(what)] = 0
        for name in tensors:
            if (what in ("mlp", "layer") and name.startswith(f"{at}mlp.c_proj")) or (
                what == "layer" and name.startswith(f"{at}attn.c_proj")
            ):
                tensors[name][...] = 0
    return lambda ids: logits(small.model.architecture, small.model.config, Arrays(tensors), ids, last=True)[0][0]


@pytest.mark.share(3)
@pytest.mark.parametrize("off", OFF)
def test_what_is_off_adds_nothing_and_the_parts_add_up(choose, site, site_folder, texts, off):
    assets = urljoin(site, f"{own_assets(site_folder).name}/")
    answers = choose().evaluate(RUN, [assets, texts, off])
    model, earlier = without(off), [without(f"{off}|{later}") for later in LATER]
    for ids, answer in zip(texts, answers, strict=True):
        close(np.array(answer["scores"]), model(ids))
        for total, score in answer["totals"]:
            assert abs(total - score) <= WITHIN * max(1, abs(score))
        for there, ended in zip(answer["lens"], earlier, strict=True):
            close(np.array(there), ended(ids))


LATER = ("0.layer|1.layer|2.layer", "1.layer|2.layer", "2.layer", "")  # what is off where the model would end


def test_which_head_knows_the_capital(choose):
    """A reader opens a head, switches it off and on again by keyboard, and sees what becomes of the answer."""
    page = choose("?country=Peru")
    words = page.get_by_role("group", name=re.compile("Most likely next words"))
    words.wait_for()
    assert "Lima" in words.get_by_role("row").nth(1).inner_text()
    page.get_by_role("button", name="Layer 1, head 2").click()
    page.get_by_role("group", name="Attention weights, layer 1, head 2").wait_for()
    switch = page.get_by_role("checkbox", name="Layer 1, head 2 on")
    switch.focus()
    page.keyboard.press("Space")
    page.get_by_text("With everything on, the most likely word is Lima").wait_for()
    assert "Lima" not in words.get_by_role("row").nth(1).inner_text() and not switch.is_checked()
    assert page.evaluate("document.activeElement.dataset.key") == "1.2" and "off=1.2" in page.url
    page.locator("select[name=word]").select_option(index=1)
    until(page, "location.search.includes('word=')")
    total, logit = page.locator("output[data-total]").evaluate("e => [+e.dataset.total, +e.dataset.logit]")
    assert abs(total - logit) <= WITHIN * max(1, abs(logit))
    again = choose(page.url[page.url.index("?") :])
    again.get_by_text("With everything on, the").wait_for()
    assert not again.get_by_role("checkbox", name="Layer 1, head 2 on").is_checked()
    switch.check()
    page.get_by_text("With everything on, the").wait_for(state="detached")
    assert "off=" not in page.url


def test_all_heads_on_a_phone_and_for_everybody(choose):
    page = choose("?country=Peru&off=1.2%7C0.layer&layer=0", viewport={"width": 390, "height": 844})
    page.get_by_text("With everything on, the").wait_for()
    assert not overflow(page) and not accessibility(page, "light", "dark")
