"""The content security policy: on every page, for every script that stands there, and nothing that it forbids."""

import re
from base64 import b64encode
from hashlib import sha256

import pytest
from sampling import fewer

from macros.site.content_security import GATE, POLICY, policy, scripts, with_gate, with_policy
from macros.views.kit.mathml import mathml

HEAD = '<head><meta charset="utf-8"><script>{}</script><script type="application/json">{{}}</script><script src="a.js">'
META = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">')


def test_a_script_is_allowed_by_its_digest_and_data_is_not():
    page = with_policy(HEAD.format("let a = 1 < 2"))
    digests = [b64encode(sha256(text.encode()).digest()).decode() for text in ("let a = 1 < 2", GATE)]
    assert META.search(page)[1] == " ".join([POLICY, *sorted(f"'sha256-{digest}'" for digest in digests)])
    assert page.index("http-equiv") < page.index(f"<script>{GATE}") < page.index("<script>let a")


@pytest.mark.parametrize(
    "script",
    ["<script>a</script>", "<SCRIPT\n>a</SCRIPT>", '<script type="module">a</script>', "<script defer>a</script>"],
)
def test_what_runs_is_found(script):
    assert scripts(script) == ["a"]


@pytest.mark.parametrize("script", ['<script src="x">a</script>', '<script type="application/ld+json">a</script>'])
def test_what_does_not_run_is_not(script):
    assert scripts(script) == []


def test_a_preview_has_the_same_policy_as_a_header():
    page, said = with_gate(HEAD.format("let a = 1 < 2"))
    published = with_policy(HEAD.format("let a = 1 < 2"))
    assert META.search(published)[1] == said and META.sub("", published) == page


@pytest.mark.parametrize("word", ["unsafe", "http:", "https:", "*"])
def test_nothing_is_allowed_that_is_not_the_sites_own(word):
    assert word not in policy("") and POLICY.startswith("default-src 'none'")


SINKS = """() => {
    const tried = act => { try { act(); return "taken" } catch { return "refused" } }
    const element = document.createElement("div"), script = document.createElement("script")
    return [
        tried(() => { new DOMParser().parseFromString("<p>a page</p>", "text/html") }),
        tried(() => { script.src = "assets/a.mjs" }),
        tried(() => { element.innerHTML = "8 billion" }),
        tried(() => { element.innerHTML = "<img src=x onerror=alert(1)>" }),
        tried(() => { element.insertAdjacentHTML("beforeend", "<b>bold</b>") }),
        tried(() => { document.write("<b>bold</b>") }),
        tried(() => { script.src = "https://elsewhere.example/a.mjs" }),
        tried(() => { script.src = "data:text/javascript,alert(1)" }),
        tried(() => { trustedTypes.createPolicy("mine", {}) }),
        tried(() => { trustedTypes.createPolicy("default", {}) }),
    ]
}"""


@pytest.mark.browser
def test_no_text_becomes_markup_or_a_script_from_elsewhere(open_page, site):
    page = open_page(site)
    assert page.evaluate(SINKS) == ["taken"] * 2 + ["refused"] * 8
    assert any("TrustedHTML" in line for line in open_page.complaints)
    open_page.complaints[:] = [line for line in open_page.complaints if "trusted" not in line.lower()]


@pytest.mark.parametrize(
    "latex",
    [
        r"a \! b",
        r"\bar{x}",
        r"\tilde{x}",
        r"\underbrace{a}_{b}",
        r"\sum_i x",
        r"\begin{bmatrix}a & b\\ c & d\end{bmatrix}",
    ],
)
@pytest.mark.parametrize("display", [True, False])
def test_a_formula_has_no_style_attribute(latex, display):
    assert "style=" not in mathml(latex, display).replace("displaystyle=", "")


@pytest.mark.processes
def test_every_page_keeps_to_its_policy(site_folder):
    """Each script that stands in it is allowed; no styles in an attribute or element, no handler in an attribute."""
    pages = sorted(site_folder.rglob("*.html"))
    assert len(pages) > 200
    for path in fewer(pages, 4):
        page = path.read_text("utf-8")
        allowed = META.search(page)[1]
        for script in scripts(page):
            assert f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" in allowed, path
        tags = re.findall(r"<[a-z][^>]*>", page)
        assert not [t for t in tags if re.search(r'\s(style|on[a-z]+)=["\']', t) or t.startswith("<style")], path
