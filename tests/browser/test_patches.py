"""The small model in a browser with patches of another sentence, and without designs: the numbers are Python's, and a
reader sees which part carries the capital, and what the scaling does; a number of a static page leads to its origin."""

import re
from urllib.parse import urljoin

import numpy as np
import pytest
from chromium import accessibility, ignored, overflow, until
from reference import close
from serving import own_assets

from macros.catalogue.checkpoints import checkpoint
from macros.engine import numbers
from macros.engine.forward import logits
from macros.engine.loaded import Arrays
from macros.engine.steps import Role

pytestmark = pytest.mark.browser

OURS, THEIRS = "The capital of France is", "The capital of Japan is"
WITHOUT = [["scaling"], ["causal_mask"], ["ln_1", "ln_2", "ln_f"], ["residual_stream"], ["norms", "scaling"]]
PATCHES = [["1.2@4"], ["0.mlp@3", "2.0@0"], ["1.stream@3"], ["0.stream@3", "2.mlp@4", "1.3@4"]]

RUNS = """async ([assets, ours, theirs, without, patches]) => {
  const { smallModel } = await import(new URL("tools/capitals/small.mjs", assets))
  const { endings } = await import(new URL("tools/capitals/inside.mjs", assets))
  const { moved } = await import(new URL("tools/capitals/patching.mjs", assets))
  const { session } = await smallModel()
  const seen = changes => {
    session.run(ours, [], undefined, { off: [], without: [], patches: [], other: null, ...changes })
    const parts = [7, 100].map(word => [word, session.parts(word)]),
      total = ({ embedding, between, shift, layers }) =>
        embedding + between + shift + layers.reduce((sum, { whole }) => sum + whole, 0)
    const { layers, ids } = session.now
    return {
      scores: session.scores,
      shares: layers.map((_, i) => [0, 1, 2, 3].map(head => [...session.head(i, head)].map(x => x || 0))),
      apart: parts.map(([word, of]) => typeof of === "string" ? null : total(of) - session.scores[word]),
      ended: endings(session.now).at(-1),
    }
  }
  const answer = {
    without: without.map(without => seen({ without })),
    patches: patches.map(patches => seen({ patches, other: theirs })),
  }
  seen({ other: theirs })
  return { ...answer, moved: moved(session, 4) }
}"""


class Patched:
    """Runs steps with parts of another run in their places."""

    def __init__(self, other, patches):
        self.patches = [re.fullmatch(r"(\d)\.(\w+)@(\d)", patch).groups() for patch in patches]
        of = lambda role, output: [  # noqa: E731
            other.of((n.outputs if output else n.inputs)[0]) for n in other.root.walk() if n.role is role
        ]
        self.streams, self.found = of(Role.LAYER, False), of(Role.WEIGHTED_SUM, True)
        self.fed, self.layer = of(Role.FEED_FORWARD, True), -1

    def rows(self, part):
        return [int(t) for layer, name, t in self.patches if int(layer) == self.layer and name == part]

    def call(self, step, args, kwargs):
        x, rest = args[0], args[1:]
        if step.role is Role.LAYER:
            self.layer += 1
            x = x.copy()
            for t in self.rows("stream"):
                x[t] = self.streams[self.layer][t]
        if step.role is Role.CONV1D and rest[1] == "c_proj" and ".attn." in rest[0].prefix:
            x, width = x.copy(), self.found[0].shape[-1]
            for head in range(self.found[0].shape[1]):
                for t in self.rows(str(head)):
                    x[t, head * width : (head + 1) * width] = self.found[self.layer][t, head]
        result = step.function(x, *rest, **kwargs)
        if step.role is Role.FEED_FORWARD:
            for t in self.rows("mlp"):
                result[t] = self.fed[self.layer][t]
        return result


@pytest.fixture
def choose(open_page, site):
    return lambda asked="", **options: open_page(urljoin(site, f"real-numbers/step-by-step/{asked}"), **options)


def test_the_numbers_are_those_of_python(choose, site, site_folder):
    small = checkpoint("capitals")
    model, (ours, theirs) = small.model, map(small.tokenizer.encode, (OURS, THEIRS))
    assets = urljoin(site, f"{own_assets(site_folder).name}/")
    answer = choose().evaluate(RUNS, [assets, ours, theirs, WITHOUT, PATCHES])
    for names, there in zip(WITHOUT, answer["without"], strict=True):
        run, _ = numbers.trace(model.architecture, model.config, small.weights(), ours, without=names)
        close(np.array(there["scores"]), run.of(run.root.outputs[0])[-1])
        shares = [run.of(n.outputs[0]) for n in run.root.walk() if n.role is Role.SOFTMAX]
        for layer, expected in zip(there["shares"], shares, strict=True):
            close(np.reshape(layer, expected.shape), expected)
    other, _ = numbers.trace(model.architecture, model.config, small.weights(), theirs)
    tensors, gaps = small.weights().tensors, {}
    as_it_is, of_other = (
        logits(model.architecture, model.config, small.weights(), ids)[0][-1] for ids in (ours, theirs)
    )
    best, wanted = int(as_it_is.argmax()), int(of_other.argmax())
    for patches, there in zip(PATCHES, answer["patches"], strict=True):
        weights = Arrays(tensors, watch=Patched(other, patches))
        expected, _ = logits(model.architecture, model.config, weights, ours)
        close(np.array(there["scores"]), expected[-1])
        gaps["|".join(patches)] = expected[-1][wanted] - expected[-1][best]
    for there in (*answer["without"], *answer["patches"]):
        assert there["ended"] == there["scores"]
        # Without the residual stream, parts do not add up to the logit, and none is said to.
        assert there["apart"] == [None] * 2 or np.abs(there["apart"]).max() <= 1e-5
    assert [there["apart"][0] is None for there in answer["without"]] == [x == ["residual_stream"] for x in WITHOUT]
    apart, aim = (scores[wanted] - scores[best] for scores in (as_it_is, of_other))
    found = answer["moved"]
    assert found["parts"][1][2] == pytest.approx((gaps["1.2@4"] - apart) / (aim - apart), abs=1e-4)
    assert found["stream"][3][1] == pytest.approx((gaps["1.stream@3"] - apart) / (aim - apart), abs=1e-4)
    assert np.argmax(np.array(found["parts"])[:2, :5]) == 5 + 2 and found["parts"][1][2] > 0.5


def test_france_patched_by_japan(choose):
    """A reader takes the same sentence about Japan, presses the head that moves the answer, asks a number, and sends
    the link; by keyboard where it is a table."""
    page = choose()
    page.locator("summary", has_text="Patch from another sentence").click()
    page.get_by_label("The same, with").select_option("Japan")
    grid = page.get_by_role("grid", name=re.compile("How far a patch of “is” moves the answer from Paris to Tokyo"))
    grid.wait_for()
    cell = grid.locator("[data-place='1.2@4']")
    assert int(cell.inner_text().rstrip("%")) > 50
    grid.locator("td[tabindex='0']").focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    page.get_by_text("Without the changes, the most likely word is Paris").wait_for()
    assert "patch=1.2%404" in page.url
    assert cell.get_attribute("aria-selected") == "true"
    page.get_by_role("button", name=re.compile("^Probability of Tokyo")).click()
    panel = page.get_by_role("region", name="What this number is made of")
    panel.get_by_text("Probability of “Tokyo”").wait_for()
    again = choose(page.url[page.url.index("?") :])
    again.get_by_text("Probability of “Tokyo”").wait_for()
    assert again.locator("[data-place='1.2@4']").get_attribute("aria-selected") == "true"
    again.get_by_label("Or another sentence").fill("Lima is")
    again.get_by_text("It has 2 words, and the sentence above has 5").wait_for()
    assert "patch=" not in again.url and not again.locator("[data-place='1.2@4']").count()


def test_a_design_is_left_out_and_attention_drawn_as_lines(choose):
    page = choose("?layer=0&head=1")
    weights = page.get_by_role("grid", name="Attention weights, layer 0, head 1")
    last = weights.get_by_role("row").last
    before = last.inner_text()
    page.get_by_role("checkbox", name="Scaling by 1 / √d_head").uncheck()
    page.get_by_text("Without the changes, the most likely word is Paris").wait_for()
    assert last.inner_text() != before and "without=scaling" in page.url
    page.get_by_role("checkbox", name="Causal mask").uncheck()
    until(page, "!document.querySelector('.ep-tool .ep-matrix .masked')")
    page.get_by_role("checkbox", name="Lines from word to word").check()
    page.locator(".ep-word-lines svg").wait_for()
    assert page.locator(".ep-word-lines g").count() == 5
    assert 'without = "x"' in ignored(choose("?without=x&lines=1&patch=1.2@4"))


def test_a_number_of_a_static_page_leads_to_where_it_answers(open_page, site):
    page = open_page(urljoin(site, "real-numbers/why/"))
    table = page.get_by_role("group", name="Softmax, layer 0, head 1").first
    cell = table.get_by_role("row").last.get_by_role("link").nth(1)
    said = cell.inner_text()
    cell.click()
    panel = page.get_by_role("region", name="What this number is made of")
    panel.get_by_text("layer 0, head 1: “is” looks at “capital”").wait_for()
    assert float(panel.locator("output[data-value]").inner_text()) == pytest.approx(float(said), abs=0.0051)
    until(page, "document.activeElement.className.startsWith('ep-origin')")
    assert page.get_by_role("grid", name="Attention weights, layer 0, head 1").is_visible()


def test_all_of_it_on_a_phone_and_for_everybody(choose, open_page, site):
    asked = "?with=Japan&patch=1.2@4%7C0.stream@3&without=scaling&lines=1&number=part/1/2/322"
    page = choose(asked, viewport={"width": 390, "height": 844})
    page.locator(".ep-origin").wait_for()
    assert not overflow(page) and not accessibility(page, "light", "dark")
    page = open_page(urljoin(site, "real-numbers/why/"), viewport={"width": 390, "height": 844})
    assert not overflow(page) and not accessibility(page, "light", "dark")
