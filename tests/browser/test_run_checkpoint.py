"""A checkpoint from one's own disk in a browser: it answers as in Python, and a broken file is one line."""

import json
import re
from urllib.parse import urljoin

import ml_dtypes
import numpy as np
import pytest
from conftest import accessibility, overflow, until
from random_checkpoints import byte_pairs, gpt2
from safetensors.numpy import save_file

import macros as ep

pytestmark = pytest.mark.browser

TEXT = "The capital of France is"
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


def words(page):
    rows = page.get_by_role("group", name=re.compile("Most likely next tokens")).get_by_role("row")
    return [row.split("\t") for row in rows.all_inner_texts()[1:]]


def test_a_folder_answers_as_in_python(opened, tmp_path):
    """In two files with an index, in bfloat16, with a tokenizer: its tokens, the next ones, attention, logit lens."""
    folder = gpt2(tmp_path / "m", dtype=ml_dtypes.bfloat16, files=2)
    byte_pairs(folder, [TEXT, "The capital of Japan is Tokyo."])
    page = opened(folder, viewport={"width": 390, "height": 844})
    page.get_by_label("Text", exact=True).fill(TEXT)
    press(page, "Run")
    answer = ep.run(folder, TEXT, top=10, trace=True)
    tokens = page.get_by_role("list", name="Tokens").get_by_role("listitem").locator("small").all_inner_texts()
    assert [int(id) for id in tokens] == answer.tokens
    for row, known in zip(words(page), answer.rows(), strict=True):
        assert int(row[1]) == known["token"]
        assert float(row[2].replace("−", "-")) == pytest.approx(float(answer.logits[-1, known["token"]]), abs=0.0051)
        assert row[3] == f"{100 * known['probability']:.1f}%"
    page.get_by_role("button", name="Layer 2, head 3").click()
    table = page.get_by_role("group", name="Attention weights, layer 2, head 3")
    table.wait_for()
    shares = [step.output for step in answer.steps if step.title == "Softmax" and step.layer == 2][0]
    last = table.get_by_role("row").last.get_by_role("cell").all_inner_texts()
    assert [float(x) for x in last] == pytest.approx(shares[3, -1].tolist(), abs=0.0051)
    page.locator("summary", has_text="Logit lens").click()
    lens = page.get_by_role("group", name="The most likely next tokens if the model ended there").get_by_role("row")
    lens.nth(3 + 1).wait_for()
    until(page, IDLE)
    assert lens.last.inner_text().split("\t")[2] == words(page)[0][3]
    press(page, "Next token")
    again = ep.run(folder, tokens=[*answer.tokens, answer.rows()[0]["token"]], top=1).rows()[0]
    assert int(words(page)[0][1]) == again["token"]
    page.get_by_label("Top-k").fill("1")
    page.get_by_text("cut by top-k").first.wait_for()
    assert not overflow(page) and not accessibility(page, "light", "dark")


def test_a_broken_file_is_one_line(opened, tmp_path):
    """Each is said, and the next folder opens; what stands in a file never becomes markup."""
    page = opened(gpt2(tmp_path / "good"))
    page.get_by_label("Token ids").fill("1,2,999")
    press(page, "Run")
    assert "“999” is no token id; write ids from 0 to 319" in page.get_by_role("alert").last.inner_text()
    for i, (breaks, said) in enumerate(BROKEN):
        folder = gpt2(tmp_path / f"{i}")
        breaks(folder)
        choose(page, folder)
        problem = page.locator(".ep-tool > .ep-problem")
        problem.filter(has_text=said).wait_for()
        line = problem.inner_text()
        assert "\n" not in line and len(line) < 400 and not page.locator(".ep-tool img").count()
    choose(page, tmp_path / "good")
    page.get_by_text("Ready.").wait_for()
    page.get_by_label("Token ids").fill("1,2,3")
    press(page, "Run")
    assert len(words(page)) == 10


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
    (lambda folder: (folder / "config.json").unlink(), "no config.json here"),
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
