"""Any config takes a model's name, which a hub is asked about when a reader says so, and a GGUF file."""

import json
import re
import struct
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
from chromium import overflow, until
from copies import NAV, PAGES, build, small_site
from local_hub import HALVES, NAMES, Hub, counts, hub
from serving import served

from macros.catalogue import presets
from macros.counting.costs import of as costs_of
from macros.engine.errors import Problem
from macros.site.content_security import POLICY, checked_hub, policy

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]
TOOLS = {
    "tools/config.md": "# Any config\n\n{{ any_config() }}\n",
    "tools/compare.md": '# Compare\n\n{{ compare(["gpt2", "llama3-8b"]) }}\n',
}
META = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">')
FIELD = "Name or address of a model"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A small site whose hub is the local server: its folder, its address, the hub's."""
    nav = NAV + "  - Tools:\n      - tools/config.md\n      - tools/compare.md\n"
    site = small_site(tmp_path_factory.mktemp("hub") / "site", pages=PAGES | TOOLS, nav=nav)
    with hub() as endpoint, hub() as Hub.elsewhere, served(site / "site") as address:
        made = build(site, "--strict", HUB=f"{endpoint}/ {Hub.elsewhere}")
        assert made.returncode == 0, made.stderr
        yield site / "site", address, endpoint
        Hub.elsewhere = ""


@pytest.fixture
def tool(built, open_page):
    def open_(hash_="", headers=False):
        page = open_page(f"{built[1]}tools/config/{hash_}")
        page.locator("form.ep-whatif").wait_for()
        page.set_default_timeout(10_000)
        if not headers:
            page.evaluate("hub => { document.querySelector('meta[name=ep-hub]').content = hub }", built[2])
        return page

    Hub.asked.clear()
    yield open_
    for one in (built[2], Hub.elsewhere):
        of_hub = f"asked another host: {one}/"
        open_page.complaints[:] = [c for c in open_page.complaints if of_hub not in c and f" {one}/" not in c]
    open_page.complaints[:] = [c for c in open_page.complaints if "Failed to load resource" not in c]


def look_up(page, name):
    page.get_by_label(FIELD).fill(name)
    page.get_by_label(FIELD).press("Enter")


def total(page):
    row = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name="Parameters", exact=True)).first
    return row.locator("td span[title]").get_attribute("title")


def test_the_button_looks_up_what_was_typed(tool):
    """The press takes the focus from the field, whose text stays; a config that is pasted replaces it."""
    page = tool()
    page.get_by_label(FIELD).fill("gpt2")
    page.get_by_role("button", name="Look up").click()
    page.get_by_text("gpt2: GPT-2 Small").wait_for()
    assert total(page).startswith(f"{presets.model('gpt2').counts.total:,} ") and "#name=gpt2" in page.url
    page.get_by_label(re.compile("Paste a config.json")).fill(json.dumps({**presets.model("gpt2").raw, "n_layer": 6}))
    page.get_by_text("This model").first.wait_for()
    assert page.get_by_label(FIELD).input_value() == ""


def test_only_this_page_may_ask_the_host(built):
    folder, _, endpoint = built
    for path in folder.rglob("*.html"):
        said = META.search(path.read_text("utf-8"))[1]
        assert (endpoint in said) == (path.parent.name == "config"), path
    assert (
        f"connect-src 'self' {endpoint} {Hub.elsewhere};"
        in META.search((folder / "tools/config/index.html").read_text("utf-8"))[1]
    )


@pytest.mark.parametrize(
    "said",
    ["huggingface.co", "https://a b", "https://a https://b/c", "https://x/y", "https://x;script-src *", "ftp://x", 3],
)
def test_a_setting_that_is_no_host_is_refused(said):
    with pytest.raises(Problem, match="HUB = "):
        checked_hub(said)


def test_the_setting_may_be_empty_and_text_of_a_page_names_no_host():
    assert checked_hub(None) == checked_hub(" ") == "" and checked_hub("https://a.example:8/") == "https://a.example:8"
    assert checked_hub(" https://a.example/  https://b.example:8/") == "https://a.example https://b.example:8"
    assert policy('<head></head><meta name="ep-hub" content="https://a.example">') == POLICY


def test_the_catalog_answers_without_the_hub(tool):
    page = tool()
    look_up(page, "https://huggingface.co/unsloth/Meta-Llama-3-8B-GGUF/blob/main/Meta-Llama-3-8B-Q8_0.gguf")
    page.get_by_text("Llama 3 8B in Q8_0").wait_for()
    page.locator(".ep-answer strong").wait_for()
    assert total(page) == f"{presets.model('llama3-8b').counts.total:,} parameters"
    assert page.get_by_label("Weights").input_value() == "Q8_0"
    assert "#name=https" in page.url and not Hub.asked
    look_up(page, "gpt2")
    page.get_by_text("gpt2: GPT-2").wait_for()
    page.go_back()
    page.get_by_text("Llama 3 8B in Q8_0").wait_for()


def test_the_hub_is_asked_at_a_press_and_its_tensors_are_held_against_the_config(tool, built):
    page = tool()
    look_up(page, "org/sharded")
    line = page.get_by_text("org/sharded is not in the catalog.")
    line.wait_for()
    assert f"{urlsplit(built[2]).netloc} has to be asked" in line.inner_text() and not Hub.asked
    page.get_by_role("button", name="Ask 127.0.0.1").click()
    page.locator(".ep-answer strong").wait_for()
    assert total(page) == f"{counts().total:,} parameters"
    assert page.locator(".ep-reconciled").inner_text().startswith(f"{len(NAMES)} of {len(NAMES)} tensors")
    assert {path for _, path in Hub.asked} == {
        "/org/sharded/resolve/main/config.json",
        "/org/sharded/resolve/main/model.safetensors.index.json",
    }
    assert page.url.endswith("#name=org%2Fsharded") and page.locator(".ep-note").count() == 0
    assert page.locator(".ep-answer").inner_text().startswith("org/sharded fits")
    page.get_by_label("Context").fill("16")
    page.get_by_text("of 16 tokens").wait_for()
    page.get_by_label("Paste a config.json").fill("")
    until(page, "!location.hash")


def test_headers_are_read_where_the_setting_lists_their_host(tool, built):
    """Each file by one range, and no weight; of a file that is cut, a line."""
    page = tool(headers=True)
    look_up(page, "org/sharded")
    line = page.get_by_text("org/sharded is not in the catalog.")
    assert f"the headers of its weights, which {urlsplit(Hub.elsewhere).netloc} may have" in line.inner_text()
    page.get_by_role("button", name="Ask 127.0.0.1").click()
    page.locator(".ep-reconciled").wait_for()
    assert f"{len(NAMES)} of {len(NAMES)} tensors of this config" in page.locator(".ep-reconciled").inner_text()
    assert {path for _, path in Hub.asked if path.startswith("/elsewhere")} == {
        f"/elsewhere/org/sharded/{file}" for file in HALVES
    }
    assert Hub.sent < 2_000_000
    page.get_by_label("n_layers", exact=True).fill("1")
    page.get_by_text("Only in the file: 9").wait_for()
    for name, said in {
        "org/away": "names '../../secret.safetensors'",
        "org/long-header": "has a header of",
        "org/cut-header": "",
    }.items():
        look_up(page, name)
        page.get_by_text(f"{name} is not in the catalog.").wait_for()
        page.get_by_role("button", name="Ask 127.0.0.1").click()
        page.get_by_role("alert").filter(has_text=said).wait_for()


def test_a_link_asks_again_before_it_fetches(tool):
    page = tool("?context=32#name=org%2Fonly")
    page.get_by_text("org/only is not in the catalog.").wait_for()
    assert not Hub.asked and not page.locator(".ep-answer strong").count()
    page.get_by_role("button", name="Ask 127.0.0.1").click()
    page.get_by_text("of 32 tokens").wait_for()
    assert total(page) == f"{counts().total:,} parameters" and page.locator(".ep-reconciled").count() == 0


REFUSED = {
    "org/gated": "gives its files only to those who accepted its terms",
    "org/private": "has no such model, or it is private",
    "org/none": "has no such model, or it is private",
    "org/empty": "its repository has no config.json",
    "org/bad": "broken JSON",
    "org/markup": "model_type = '<script>alert(1)</script>'",
    "org/huge": "config.json has 1,000,000,000,000 bytes",
    "org/cut": "broke off within config.json",
    "org/busy": "asks for fewer requests",
    "org/broken": "answered with status 500",
}


def test_what_cannot_be_had_is_one_line_each_and_may_be_asked_again(tool):
    page = tool()
    for name, said in REFUSED.items():
        look_up(page, name)
        page.get_by_text(f"{name} is not in the catalog.").wait_for()
        page.get_by_role("button", name="Ask 127.0.0.1").click()
        page.get_by_role("alert").filter(has_text=said).wait_for()
    look_up(page, "no model at all")
    page.get_by_role("alert").filter(has_text="unknown model 'no model at all'").wait_for()
    look_up(page, "llama3")
    page.get_by_role("alert").filter(has_text="could be several models; name one: llama3-70b, llama3-8b").wait_for()
    look_up(page, "unsloth/Meta-Llama-3-8B-GGUF/Meta-Llama-3-70B-Q8_0.gguf")
    apart = "the repository is Llama 3 8B’s, and the file is Llama 3 70B’s; name llama3-8b or llama3-70b"
    page.get_by_role("alert").filter(has_text=apart).wait_for()
    linked = tool(f"#name={quote('<img src=x onerror=alert(1)>')}")
    linked.get_by_role("alert").filter(has_text="unknown model '<img src=x").wait_for()


def test_on_a_phone(tool):
    page = tool("#name=org%2Fonly")
    page.set_viewport_size({"width": 390, "height": 844})
    page.get_by_role("button", name="Ask 127.0.0.1").wait_for()
    assert not overflow(page)


def test_without_a_hub_nobody_is_asked(tool, open_page):
    page = tool()
    page.evaluate("document.querySelector('meta[name=ep-hub]').remove()")
    look_up(page, "org/only")
    page.get_by_role("alert").filter(has_text="paste its config.json: this site asks no hub").wait_for()
    assert not Hub.asked


# GGUF files

CONVERTED = sorted((Path(__file__).parent.parent / "golden" / "gguf").glob("*.gguf"))


def choose(page, name, content):
    given = dict(name=name, mimeType="", buffer=content)
    page.get_by_label("GGUF file").set_input_files(given)


def exact(page, title):
    row = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name=title, exact=True)).first
    return row.locator("td span[title]").last.get_attribute("title")


@pytest.mark.parametrize("path", CONVERTED, ids=lambda path: path.stem)
def test_a_gguf_file_is_counted_as_python_does(tool, path):
    """Parameters, and the bytes of its tensors as they stand."""
    model = presets.load(str(path))
    page = tool()
    choose(page, path.name, path.read_bytes())
    page.locator(".ep-reconciled").wait_for()
    assert total(page) == f"{model.counts.total:,} parameters"
    size = costs_of(model.counts).weight_bytes("published")
    assert exact(page, "Weights") == f"{size:,} bytes"
    tensors = len(model.files.gguf.tensors)
    assert page.get_by_text(f"in {tensors:,} tensors: ").count() == 1
    assert "which has no others" in page.locator(".ep-reconciled").inner_text()
    assert model.model_type in page.get_by_label("Paste a config.json").input_value()
    page.get_by_label("n_layers", exact=True).fill("1")
    page.locator(".ep-reconciled").wait_for(state="detached")  # the file is of another size


def gguf(*keys, tensors=(), version=3, counts=None):
    """A header by its parts, each of bytes."""
    n_tensors, n_keys = counts or (len(tensors), len(keys))
    return b"GGUF" + struct.pack("<IQQ", version, n_tensors, n_keys) + b"".join((*keys, *tensors))


def text(said):
    return struct.pack("<Q", len(said)) + said


def named(name):
    return text(b"general.architecture") + struct.pack("<I", 8) + text(name)


def tensor(name, *shape, kind=0, offset=0):
    axes = b"".join(struct.pack("<Q", n) for n in shape)
    return text(name) + struct.pack("<I", len(shape)) + axes + struct.pack("<IQ", kind, offset)


WRONG = {
    "no magic": (b"GGUX" + bytes(20), "does not begin with GGUF"),
    "an end": (b"GGUF", "ends within its header"),
    "a version": (gguf(version=1), "is GGUF version 1"),
    "big-endian": (gguf(version=3 << 24), "is big-endian"),
    "many keys": (gguf(counts=(0, 2**40)), "says that it has 1,099,511,627,776 keys"),
    "many tensors": (gguf(counts=(2**63, 0)), "tensors, more than 200,000"),
    "a long text": (gguf(struct.pack("<Q", 2**60), counts=(0, 1)), "has a text of 1,152,921,504,606,846,976 bytes"),
    "a long list": (gguf(text(b"a") + struct.pack("<IIQ", 9, 8, 2**60), counts=(0, 1)), "ends within its header"),
    "a kind": (gguf(text(b"a") + struct.pack("<I", 77)), "a is of type 77, which is not known"),
    "a key twice": (gguf(named(b"llama"), named(b"llama")), "has the key general.architecture twice"),
    "no architecture": (gguf(), "general.architecture = None: expected a name"),
    "an architecture": (gguf(named(b"<b>x</b>")), "general.architecture = '<b>x</b>': no rules are known"),
    "axes": (gguf(named(b"llama"), tensors=[tensor(b"a", *[1] * 65)]), "a has 65 axes"),
    "a type": (gguf(named(b"llama"), tensors=[tensor(b"a", 32, kind=999)]), "a is of type 999"),
    "blocks": (gguf(named(b"llama"), tensors=[tensor(b"a", 33, kind=8)]), "whose rows are not whole blocks of 32"),
    "a tensor twice": (gguf(named(b"llama"), tensors=[tensor(b"a", 8)] * 2), "lists a twice"),
    "an offset": (gguf(named(b"llama"), tensors=[tensor(b"a", 8, offset=7)]), "which is no multiple of 32"),
    "one in another": (gguf(named(b"llama"), tensors=[tensor(b"a", 64), tensor(b"b", 8)]), "b begins within a"),
    "nothing else": (gguf(named(b"llama")), "its metadata give no model"),
}


def test_a_gguf_file_that_is_none_is_one_line(tool):
    page = tool()
    for content, said in WRONG.values():
        choose(page, "x.gguf", content)
        page.get_by_role("alert").filter(has_text=said).wait_for()
    choose(page, "x.gguf", CONVERTED[0].read_bytes())
    page.locator(".ep-reconciled").wait_for()
    assert not page.get_by_role("alert").count()
