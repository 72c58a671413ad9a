"""A checkpoint from one's own disk in a browser: it answers as in Python, and a broken file is one line."""

import json
import re
from urllib.parse import urljoin

import ml_dtypes
import numpy as np
import pytest
from chromium import accessibility, ignored, moving, overflow, until
from gguf_files import METADATA, QUANTIZED, tensors, write
from random_checkpoints import byte_pairs, gpt2, save
from reference import golden
from safetensors.numpy import save_file

import macros as ep
from macros.catalogue.checkpoints import checkpoint
from macros.engine.forward import logits
from macros.engine.loaded import Arrays

pytestmark = pytest.mark.browser

TEXT, OTHER = "The capital of France is", "The capital of Japan was"
IDLE = "!document.querySelector('button[type=submit]').disabled"


@pytest.fixture
def opened(open_page, site):
    def opened(folder, **options):
        page = open_page(urljoin(site, "tools/run/"), **options)
        choose(page, folder)
        page.get_by_text("Ready.").wait_for()
        return page

    return opened


def choose(page, folder):
    page.get_by_label("Folder").set_input_files(folder)


def press(page, name):
    page.get_by_role("button", name=name, exact=True).click()
    until(page, IDLE)


def read(number):
    return float(number.replace("−", "-").rstrip("%"))


def words(page):
    rows = page.get_by_role("group", name=re.compile("Most likely next tokens")).get_by_role("row")
    return [row.split("\t") for row in rows.all_inner_texts()[1:]]


def test_the_small_model_runs_at_a_press(open_page, site):
    page = open_page(urljoin(site, "tools/run/"))
    page.get_by_role("button", name="Run this site’s small model").click()
    page.get_by_text("tokens. The last step took").wait_for()
    assert words(page)[0][0] == "Paris" and "text=The+capital+of+France+is" in page.url
    assert page.get_by_label("Text", exact=True).input_value() == TEXT
    until(page, IDLE)
    # Who moves on while it computes keeps the focus there.
    before, after = (page.get_by_role("checkbox", name=f"Feed-forward of layer {layer} on") for layer in (0, 1))
    before.focus()
    after.evaluate("""e => {
        const place = e.closest(".ep-tool")
        new MutationObserver((_, drawn) => {
            if (!place.textContent.includes("With everything on")) return
            drawn.disconnect()
            e.focus()
        }).observe(place, { subtree: true, childList: true, characterData: true })
        document.activeElement.click()
    }""")
    page.get_by_text("With everything on, the most likely token is").wait_for()
    until(page, IDLE)
    assert after.evaluate("e => e === document.activeElement")


def test_a_gguf_file_runs_as_in_python(open_page, site, tmp_path):
    """Chosen as a file; its weights are in 8 bits, and the panel of a number leads to them."""
    path = tmp_path / "small.gguf"
    write(path, METADATA | {"tokenizer.ggml.model": "plamo2"}, tensors(), QUANTIZED)
    page = open_page(urljoin(site, "tools/run/"))
    page.get_by_label("Or files").set_input_files(path)
    page.get_by_text("Ready.").wait_for()
    page.get_by_text("Q8_0, F32").wait_for()
    page.get_by_text("this kind of tokenizer is not read").wait_for()
    page.get_by_label("Token ids").fill("1, 2, 3")
    press(page, "Run")
    for row, known in zip(words(page), ep.run(path, tokens=[1, 2, 3], top=10).rows(), strict=True):
        assert int(row[1]) == known["token"] and row[3] == f"{100 * known['probability']:.1f}%"


def test_a_folder_answers_as_in_python(opened, tmp_path):
    """In two files with an index, in bfloat16, with a tokenizer: its tokens, the next ones, attention, logit lens."""
    folder = gpt2(tmp_path / "m", dtype=ml_dtypes.bfloat16, files=2)
    byte_pairs(folder, [TEXT, OTHER, "The capital of Japan is Tokyo."])
    page = opened(folder, viewport={"width": 390, "height": 844})
    page.get_by_label("Text", exact=True).fill(TEXT)
    press(page, "Run")
    answer = ep.run(folder, TEXT, top=10, trace=True)
    tokens = page.get_by_role("list", name="Tokens").get_by_role("listitem").locator("small").all_inner_texts()
    assert [int(id) for id in tokens] == answer.tokens
    for row, known in zip(words(page), answer.rows(), strict=True):
        assert int(row[1]) == known["token"]
        assert read(row[2]) == pytest.approx(float(answer.logits[-1, known["token"]]), abs=0.0051)
        assert row[3] == f"{100 * known['probability']:.1f}%"
    page.get_by_role("button", name="Layer 2, head 3").click()
    table = page.get_by_role("grid", name="Attention weights, layer 2, head 3")
    table.wait_for()
    shares = [step.output for step in answer.steps if step.title == "Softmax" and step.layer == 2][0]
    last = table.get_by_role("row").last.get_by_role("gridcell").all_inner_texts()
    assert [read(x) for x in last] == pytest.approx(shares[3, -1].tolist(), abs=0.0051)
    page.locator("summary", has_text="Logit lens").click()
    lens = page.get_by_role("group", name="The most likely next tokens if the model ended there").get_by_role("row")
    lens.nth(3 + 1).wait_for()
    until(page, IDLE)
    assert lens.last.inner_text().split("\t")[2] == words(page)[0][3]
    cached = page.get_by_role("grid", name="KV cache: the key of each token, layer 2, head 3").get_by_role("row")
    assert cached.count() == 1 + len(answer.tokens)
    press(page, "Next token")
    again = ep.run(folder, tokens=[*answer.tokens, answer.rows()[0]["token"]], top=1).rows()[0]
    assert int(words(page)[0][1]) == again["token"] and cached.count() == 2 + len(answer.tokens)
    page.get_by_label("Top-k").fill("1")
    page.get_by_text("cut by top-k").first.wait_for()
    assert not overflow(page)


def test_its_numbers_answer_and_its_parts_can_be_changed(opened, tmp_path):
    """From an attention weight to the file by keyboard; a head off; another text's residual stream; the link."""
    folder = gpt2(tmp_path / "m")
    byte_pairs(folder, [TEXT, OTHER])
    page = opened(folder, viewport={"width": 390, "height": 844})
    ours, theirs = (ep.run(folder, text, trace=True) for text in (TEXT, OTHER))
    assert len(ours.tokens) == len(theirs.tokens)
    apart = [i for i, (a, b) in enumerate(zip(ours.tokens, theirs.tokens, strict=True)) if a != b]
    page.get_by_label("Text", exact=True).fill(TEXT)
    page.locator("summary", has_text="Patch from another text").click()
    page.get_by_label("Another text").fill(OTHER)
    press(page, "Run")

    page.locator("[data-place='share/0/0/3/1']").focus()
    page.keyboard.press("Enter")
    panel = page.get_by_role("region", name="What this number is made of")
    for title in ("Attention weight, layer 0, head 0", "Score, layer 0", "Query of “"):
        panel.get_by_text(title).wait_for()
        panel.locator("[data-key^='of ']").first.press("Enter")
    panel.get_by_text("LayerNorm transformer.h.0.ln_1").wait_for()
    panel.locator("[data-key^='of ']").first.press("Enter")
    panel.get_by_text("Embedding, ").wait_for()
    panel.locator("[data-key^='of ']").first.press("Enter")
    panel.get_by_text(re.compile(f"^transformer.wte.weight, {ours.tokens[1]}, ")).or_(
        panel.get_by_text(re.compile(f"^transformer.wte.weight, {ours.tokens[3]}, "))
    ).wait_for()
    page.keyboard.press("Escape")
    until(page, "document.activeElement.dataset.place === 'share/0/0/3/1'")
    total, logit = page.locator("output[data-total]").evaluate("e => [+e.dataset.total, +e.dataset.logit]")
    assert total == pytest.approx(logit, abs=1e-5 * max(1, abs(logit)))
    assert logit == pytest.approx(ours.logits[-1].max(), abs=1e-5)

    page.locator("[data-place^='part/1/mlp/']").click()
    panel.get_by_text("The feed-forward network of layer 1, in the logit of").wait_for()
    value, terms = (panel.locator(f"[data-{name}]").first.get_attribute(f"data-{name}") for name in ("value", "sum"))
    assert float(terms) == pytest.approx(float(value), abs=1e-6)
    until(page, IDLE)

    press(page, "Patch each part of layer 0")
    stream = page.get_by_role("grid", name="How far a patch of the residual stream moves it")
    moved = [read(x) for x in stream.locator("td[data-place]").all_inner_texts()]
    assert {i for i, x in enumerate(moved) if x} <= {*apart} == {3, 4}
    for t in apart:
        stream.locator(f"[data-place='0.stream@{t}']").click()
        page.get_by_role("button", name=f"Take back the patch 0.stream@{t}").wait_for()
        until(page, IDLE)
    page.get_by_text("Without the changes, the most likely token is").wait_for()
    assert int(words(page)[0][1]) == theirs.rows()[0]["token"]  # all that is another is patched
    assert read(words(page)[0][2]) == pytest.approx(theirs.logits[-1].max(), abs=0.0051)
    for t in apart:
        press(page, f"Take back the patch 0.stream@{t}")

    page.get_by_role("checkbox", name="Causal mask").press("Space")
    page.get_by_text("Without the changes, the most likely token is").wait_for()
    until(page, IDLE)
    free = ep.run(folder, TEXT, top=1, without="causal_mask")
    assert (int(words(page)[0][1]), read(words(page)[0][2])) == (
        free.rows()[0]["token"],
        pytest.approx(free.logits[-1].max(), abs=0.0051),
    )
    assert "without=causal_mask" in page.url
    page.get_by_role("checkbox", name="Causal mask").press("Space")
    page.get_by_text("Without the changes").first.wait_for(state="detached")

    page.get_by_role("checkbox", name="Layer 1, head 2 on").press("Space")
    page.get_by_text("With everything on, the most likely token is").wait_for()
    until(page, IDLE)
    without = best_without_head(folder, ours.tokens, 1, 2)
    assert (int(words(page)[0][1]), read(words(page)[0][2])) == (without[0], pytest.approx(without[1], abs=0.0051))
    page.locator("summary", has_text="Logit lens").click()
    page.locator("[data-key^='cell ended/2/']").first.press("Enter")
    for title in ("Probability of “", "Logit of “"):
        panel.get_by_text(re.compile(f"^{title}.*, if the model ended after layer 1")).wait_for()
        panel.locator("[data-key^='of ']").first.press("Enter")
    panel.get_by_text("LayerNorm transformer.ln_f, “after layer 1”").wait_for()
    panel.locator("[data-key^='of ']").first.press("Enter")
    panel.get_by_text("Residual stream, layer 1").wait_for()  # in the text's own run
    page.keyboard.press("Escape")
    until(page, IDLE)
    page.get_by_role("checkbox", name="Lines from token to token").check()
    page.locator("[data-place='key/0/0/3/1']").click()
    panel.wait_for()
    until(page, IDLE)
    page.locator("summary", has_text="Every step").click()
    page.get_by_role("button", name="Logit", exact=True).click()
    page.get_by_role("grid", name="Logit: the first 16 of 320 columns").wait_for()
    until(page, IDLE)
    steps = page.get_by_role("group", name="The steps of layer 0").get_by_role("row").all_inner_texts()
    told = next(row.split("\t") for row in steps if "h.0.attn.c_attn" in row)
    traced = next(step for step in ours.steps if step.layer == 0 and step.output.shape == (5, 96))
    assert told[3:] == ["5 × 96", f"{traced.output.mean():.4f}".replace("-", "−"), f"{abs(traced.output).max():.4f}"]
    assert "steps=1&step=" in page.url
    assert not overflow(page) and not accessibility(page, "light", "dark")
    assert not moving(page)
    panel.get_by_role("button", name="Close").click()
    panel.wait_for(state="detached")
    before, link = words(page), page.url
    page.goto(f"{link}&head=x&number=w0/99999999")
    assert "head" in ignored(page)
    choose(page, folder)
    page.get_by_text("With everything on, the most likely token is").wait_for()
    until(page, IDLE)
    assert words(page) == before and not page.locator(".ep-origin").count()


def best_without_head(folder, ids, layer, head):
    """The likeliest token of a GPT-2 with zeros for a head's rows of the output projection, and its logit."""
    asked = checkpoint(str(folder))
    weights = asked.weights().tensors
    tensors = {name: np.array(weights[name], np.float32) for name in weights}
    config = asked.model.config
    tensors[f"transformer.h.{layer}.attn.c_proj.weight"].reshape(config.n_heads, config.d_head, -1)[head] = 0
    scores = logits(asked.model.architecture, config, Arrays(tensors), ids)[0][-1]
    return int(scores.argmax()), float(scores.max())


def test_a_broken_file_is_one_line(open_page, site, tmp_path):
    """A dropped folder opens. Each broken one is said, and the next opens; no text of a file becomes markup."""
    page = open_page(urljoin(site, "tools/run/"))
    dropped(page, gpt2(tmp_path / "good"))
    page.get_by_text("Ready.").wait_for()
    page.get_by_label("Token ids").fill("1,2,999")
    press(page, "Run")
    assert "“999” is no token id; write ids from 0 to 319" in page.get_by_role("alert").last.inner_text()
    for i, (breaks, said) in enumerate(BROKEN):
        folder = gpt2(tmp_path / f"{i}")
        breaks(folder)
        choose(page, folder)
        problem = page.locator(".ep-tool > .ep-problem:not([hidden])")
        problem.filter(has_text=said).wait_for()
        line = problem.inner_text()
        assert "\n" not in line and len(line) < 400 and not page.locator(".ep-tool img").count()
    choose(page, tmp_path / "good")
    page.get_by_text("Ready.").wait_for()
    page.get_by_label("Token ids").fill("1,2,3")
    press(page, "Run")
    assert len(words(page)) == 10
    capped = tmp_path / "capped"
    save(capped, golden("gemma2").raw, golden("gemma2").tensors)
    choose(page, capped)
    page.get_by_text("gemma2, ").wait_for()
    page.get_by_text("the cap of 8 makes 8 · tanh(").wait_for()  # the text that ran before
    total, before = page.locator("output[data-total]").evaluate("e => [+e.dataset.total, +e.dataset.logit]")
    assert total == pytest.approx(before, abs=1e-5)
    assert read(words(page)[0][2]) == pytest.approx(8 * np.tanh(before / 8), abs=0.0051)


def dropped(page, folder):
    """Drop a folder from the disk on the page, as a reader does."""
    box = page.locator(".ep-drop").bounding_box()
    given = {"x": box["x"] + 20, "y": box["y"] + 10}
    data = {"items": [], "files": [str(folder)], "dragOperationsMask": 1}
    devtools = page.context.new_cdp_session(page)
    for kind in ("dragEnter", "dragOver", "drop"):
        devtools.send("Input.dispatchDragEvent", {"type": kind, **given, "data": data})


def rewritten(file, change):
    def breaks(folder):
        path = folder / file
        path.write_bytes(change(path.read_bytes()))

    return breaks


def keys(**more):
    return rewritten("config.json", lambda text: json.dumps(json.loads(text) | more).encode())


def header(length):
    return rewritten("model.safetensors", lambda data: length.to_bytes(8, "little") + data[8:])


def tensor(name, array):
    return lambda folder: save_file({name: array}, folder / "model.safetensors")


def without_head(data):
    """The numbers of a file with a list that says they lie elsewhere."""
    length = int.from_bytes(data[:8], "little")
    listed = json.loads(data[8 : 8 + length])
    listed["transformer.wte.weight"]["data_offsets"] = [0, 10]
    text = json.dumps(listed).encode()
    return len(text).to_bytes(8, "little") + text + data[8 + length :]


NAME = "<img src=x onerror=alert(1)>"
BROKEN = [
    (lambda folder: (folder / "config.json").unlink(), "no config.json and no GGUF file here"),
    (lambda folder: (folder / "model.safetensors").unlink(), "no *.safetensors here"),
    (rewritten("config.json", lambda _: b"{"), "config.json"),
    (keys(model_type=NAME), "is not known"),
    (keys(n_embd=33), "n_embd"),
    (keys(vocab_size=321), "[321, 32] by config.json"),
    (header(2**40), "has a header of 1,099,511,627,776 bytes, which is too large"),
    (header(9), "has no valid header"),
    (rewritten("model.safetensors", lambda data: data[:-8]), "does not lie in the file"),
    (rewritten("model.safetensors", without_head), "does not lie in the file"),
    (tensor(NAME, np.zeros(3, np.float32)), "the files have no tensor transformer.wte.weight"),
    (lambda folder: (folder / "tokenizer.json").write_text('{"model": 3}'), "tokenizer.json"),
    (lambda folder: (folder / "model.safetensors.index.json").write_text('{"weight_map": {"a": 3}}'), "weight_map: 3"),
    (
        lambda folder: (folder / "model.safetensors.index.json").write_text(f'{{"weight_map": {{"a": "{NAME}"}}}}'),
        "is missing",
    ),
]
