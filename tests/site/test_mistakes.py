"""Every mistake of an author is one line, in the same words in the tab, in the log and in a strict build; and what is
right is never warned of."""

from __future__ import annotations

import functools
import html
import re
import tomllib
import urllib.request
from pathlib import Path

import pytest
from copies import NAV, PAGES, ROOT, build, small_site
from fuzz.saves import Serve, until
from markdown import Markdown
from mkdocs.config import load_config

from macros.site import page_checks
from macros.site.content_security import policy
from macros.site.extensions.shown_text import Shown, ShownText
from macros.site.mkdocs.markdown import not_text
from macros.site.page_checks.mistakes import Mistake

HEAD = "title: A case\ndescription: One mistake of an author."
CASES = {
    one["id"]: one for one in tomllib.loads(Path(__file__).with_name("mistakes.toml").read_text("utf-8"))["mistake"]
}
OF_TEXT = [name for name, case in CASES.items() if case.get("kind") != "site"]
JINJA = re.compile(r"\{%-?\s*raw\s*-?%\}(.*?)\{%-?\s*endraw\s*-?%\}|\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.S)


def page_of(case: dict) -> str:
    head, body = case.get("head", HEAD), case.get("body", "")
    return case.get("raw") or f"---\n{head}\n---\n\n# A case\n\nMARK stands here.\n\n{body}\n"


@functools.cache
def settings() -> tuple[list[str], dict]:
    """The Markdown extensions of mkdocs.yml, as a build has them."""
    config = load_config(str(ROOT / "mkdocs.yml"))
    ours = [name.replace("every_parameter.", "macros.") for name in config.markdown_extensions]
    options = {name.replace("every_parameter.", "macros."): said for name, said in config.mdx_configs.items()}
    return ours, {**options, "macros.site.extensions.math": {"on_problem": lambda problem: None}}


def mistakes_of(text: str, path: str = "costs/zz.md") -> list[Mistake]:
    """What is told of a page, with words in place of what its macros give."""
    source, seen = page_checks.Source(text), list[Shown]()
    written = JINJA.sub(
        lambda m: m[1] or ("figure" if m[0].startswith("{{") else ""), "\n".join(source.lines[source.body :])
    )
    names, options = settings()
    Markdown(extensions=[*names, ShownText(seen.append)], extension_configs=options).convert(written)
    return sorted(
        {*page_checks.of_source(source, path), *(m for one in seen for m in page_checks.of_shown(source, one))}
    )


def test_the_cases_are_enough_and_have_names_of_their_own():
    listed = tomllib.loads(Path(__file__).with_name("mistakes.toml").read_text("utf-8"))["mistake"]
    assert len(CASES) == len(listed) >= 36 + 60 + 100 and {case["level"] for case in listed} == {
        "error",
        "warning",
        "note",
    }


@pytest.mark.parametrize("name", OF_TEXT)
def test_a_mistake_is_one_line(name):
    case = CASES[name]
    [found] = mistakes_of(page_of(case))
    assert (found.line, found.level.name.lower()) == (case["line"], case["level"])
    assert case["says"] in f"{found.what}; {found.mend}" and found.mend


@pytest.mark.parametrize(
    "text",
    [
        "A table:\n\n| a | b |\n| --- | --- |\n| `x | y` | 1 |\n| x \\| y | 2 |\n",
        "## Head\n| a | b |\n| --- | --- |\n| 1 | 2 |\n",
        "a | b\n--- | ---\n1 | 2\n",
        "- outer\n    - inner\n\n        More of it.\n- again\n",
        "* one\n* two\n\n1. one\n1. two\n",
        '!!! tip "A video first"\n\nText.\n',
        '=== "A"\n\n    ```python\n    x = 1\n    ```\n\n=== "B"\n\n    Text.\n',
        '??? question "Why?"\n\n    !!! note\n        Inside.\n',
        "````markdown\n```python\n{{ x }}\n```\n!!! nothing\n````\n",
        "    !!! nothing\n    [^1] and [a][b]\n\nText.\n",
        "An `a[0][1]`, `**`, `[^1]`, `!!! x` and `<model>`.\n",
        "A claim.[^1]\n\n[^1]: A source.\n\n    More of it.\n",
        "See [one][two], [three][] and [four].\n\n[two]: https://example.org\n[three]: https://example.org\n",
        "[a][0][1] of x[0][1], and \\[a\\]\\[b\\].\n",
        "It costs $5 and then $10, or \\$5-\\$10; $x$ and $2^5$.\n",
        "Press ++ctrl+c++; 3 < 4 > 2; a <br> b; &nbsp;&mdash;\n",
        '<div class="ep-hero" markdown>\n\n## In it\n\n</div>\n',
        "Call `f(**kwargs)` with **bold** and *it*; 2 * 3 * 4; snake_case_name.\n",
        "A line\nthat goes on - with a dash\nand 1. a number.\n",
        "Term\n:   Its meaning, with [a link](index.md).\n",
        "## One { #one }\n\n## One { #two }\n\n### Three\n",
        "![Two heads](../assets/logo.svg){ .wide }\n",
        "<!-- a note\n\n!!! nothing -->\n\nText.\n",
        "See https://example.org/a_b(c), me@example.org and <https://example.org>.\n",
        "1. one\n\n    ```python\n    x = 1\n    ```\n2. two\n\n    More.\n\n3. three\n",
        "1. one\n\n  [two]: https://example.org\n\n2. See [two].\n",
        "!!! note\n    See [one].\n\n  [one]: https://example.org\n\nText.\n",
        "<div markdown>\n\n**bold** and [a](index.md)\n\n</div>\n",
        "<details>\n<summary>More</summary>\n<pre>a **b** c</pre>\n</details>\n",
        "It takes $x_{ij}$ and $d_\\text{model}$, $50\\%$ of it, and $a_i b_j$.\n",
        "C++, i++ and ++ctrl+alt+delete++; 2~3 minutes, 4 * 5, and a price of $ 5.\n",
        '```python hl_lines="7"\n{% include "a.py" %}\n```\n',
        '<a href="{{ params("gpt2") }}">{{ params("gpt2") }}</a>\n',
        "<div>\n<p>$9<small>/month</small></p>\n<p>$19<small>/month</small></p>\n</div>\n",
        "```python\nx = 1\n```\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n",
        'What would Llama 3 8B be with 64 layers? A [link](index.md#top "Title"); 3$\\times$4; a&nbsp;b.\n',
        "Set `x_{i}` and `\\cite{a}`; see [A (b)](https://example.org/a_(b)).\n",
        "| a | b |\n| --- | --- |\n| 1 | 2 |\n\nText.\n\n| c |\n| --- |\n| 3 |\n",
        "> quoted\n\n- one\n- two\n\nA note:\n\n    - text that is code\n",
        "A claim.[^1]\n\n[^1]:\n    A source.\n\n    More of it.\n",
    ],
)
def test_what_is_right_is_not_told(text):
    assert not mistakes_of(f"---\n{HEAD}\n---\n\n# A case\n\n{text}")


def test_no_page_of_the_site_is_told_of():
    """The strict build looks at what Markdown makes of them; this, at their text."""
    docs = ROOT / "docs"
    pages = [path for path in docs.rglob("*.md") if path.relative_to(docs).parts[0] not in ("includes", "overrides")]
    told = {}
    for path in pages:
        name = path.relative_to(docs).as_posix()
        if found := page_checks.of_source(page_checks.Source(path.read_text("utf-8-sig")), name):
            told[name] = found
    assert len(pages) > 50 and not told


def test_a_page_of_another_encoding_has_its_line(tmp_path):
    page = tmp_path / "page.md"
    page.write_bytes("# A\n\nThe café.\n".encode("latin-1"))
    assert not_text(str(page)) == (3, "0xe9", "# A\n\nThe café.\n")
    page.write_bytes("# A\n\nThe café.\n".encode("utf-16"))
    wrong = not_text(str(page))
    assert wrong and wrong[0] == 1 and "café" in wrong[2]
    page.write_text("\ufeff# A\n\nThe café.\n", "utf-8")
    assert not_text(str(page)) is None


def with_mistakes(folder: Path) -> Path:
    """The small site, with a page for each mistake."""
    pages = {f"costs/zz-{name}.md": page_of(case) for name, case in CASES.items()}
    nav = f"{NAV}  - Costs:\n      - costs/kv-cache.md\n" + "".join(f"      - {page}\n" for page in pages)
    return small_site(folder, pages={**PAGES, "costs/kv-cache.md": "# KV\n\nText.\n", **pages}, nav=nav)


TOLD = re.compile(r"^(ERROR|WARNING|INFO) +- +(docs/costs/zz-([\w-]+)\.md:(\d+): .*)$", re.M)


def told_of(log: str) -> dict[str, list[tuple[str, str, int]]]:
    """(level, line, number) of each page."""
    told: dict[str, list] = {}
    for level, line, name, number in TOLD.findall(log):
        told.setdefault(name, []).append((level.replace("INFO", "NOTE"), line, int(number)))
    return told


@pytest.mark.processes
@pytest.mark.share(4, of="previews of their own")
def test_the_tab_the_log_and_a_strict_build_tell_each_in_the_same_words(tmp_path):
    site = with_mistakes(tmp_path / "site")
    built = build(site, "--strict")
    assert built.returncode == 1 and not (site / "site").exists() and "Traceback" not in built.stderr
    server = Serve(site)
    try:
        server.get("costs/zz-fm-key/")
        until(lambda: len(told_of(server.log.read_text())) >= len(CASES), 120)
        in_build, in_log = told_of(built.stderr), told_of(server.log.read_text())
        looked_at = set(sorted(CASES)[:: len(CASES) // 8])
        for name, case in CASES.items():
            [said] = in_log.get(name) or [name]
            assert in_build.get(name) == [said], name
            assert (said[0].lower(), said[2]) == (case["level"], case["line"]) and case["says"] in said[1]
            if name in looked_at:
                assert said[1] in html.unescape(server.get(f"costs/zz-{name}/")), name
        assert server.get("costs/kv-cache/index.md") == "# KV\n\nText.\n"
        with urllib.request.urlopen(f"{server.address}costs/kv-cache/") as page:  # what it blocks is blocked here too
            assert page.headers["Content-Security-Policy"] == policy(page.read().decode())
    finally:
        server.stop()


@pytest.mark.processes
def test_quiet_hides_no_line_that_ends_a_strict_build(tmp_path):
    site = small_site(tmp_path / "site")
    page = site / "docs/guide/two.md"
    page.write_text(f"{page.read_text('utf-8')}\nSee [one](on.md).\n", "utf-8")
    built = build(site, "--strict", "--quiet")
    assert built.returncode == 1 and not (site / "site").exists()
    assert "docs/guide/two.md:5: the link on.md leads nowhere: " in built.stderr
    assert 'did you mean "one.md"?' in built.stderr
    assert build(site, "--quiet").returncode == 0


def test_addresses_in_html_begin_at_the_address_of_the_page():
    files = {"costs/zz.md", "costs/kv-cache.md", "index.md", "assets/logo.svg"}

    def told(html: str, url: str = "costs/zz/") -> list[str]:
        source = page_checks.Source(f"# A\n\n{html}\n")
        return [found.mend for found in page_checks.of_addresses(source, "costs/zz.md", url, files.__contains__)]

    assert told('<img src="../assets/logo.svg" alt="">') == [
        "write ../../assets/logo.svg: an address in HTML begins at the page's own"
    ]
    assert told('<a href="../kv-cash/">a</a>') and told('<a href="../../kv-cache/">a</a>')
    assert not told('<img src="../../assets/logo.svg" alt=""> <a href="../kv-cache/#a">a</a> <a href="../../">b</a>')
    assert not told('<a href="kv-cache.html">a</a> <img src="../assets/logo.svg" alt="">', "costs/zz.html")
    assert not told('<a href="#here">a</a> <a href="https://example.org/b/">b</a> <a href="../../data/v1/x.json">c</a>')
    assert not told('`<a href="../kv-cash/">`\n\n```html\n<img src="none.png">\n```')
