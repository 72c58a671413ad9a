"""`publish-check`: what is wrong with a built site is found, a line each, and with nothing wrong nothing is said."""

from pathlib import Path

import pytest
from fuzz import within

from macros.__main__ import main
from macros.cli import publish_check
from macros.cli.publish_check import finds, read

HEAD = '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'">'
ROOT = "https://x.example/below/"
SITE = {
    "index.html": f'{HEAD}<link rel="canonical" href="{ROOT}"><link rel="stylesheet" href="own.css"><h2 id="one">1</h2>'
    '<a href="a/?q=1#b">a</a> <a href="#one">1</a> <a href="https://else.example/x">x</a> <a href="mailto:a@b">m</a>'
    "<script>'<a href=\"none/\">'</script><!-- <img src=none.png> -->",
    "a/index.html": f'{HEAD}<p id=b><a href="..">home</a> <a href="../own.css">style</a> <a href="#top">up</a>'
    f'<a href="{ROOT}a/">self</a> <a href="../?x=%23#one">named</a> <a href="#b:~:text=x">text</a>',
    "own.css": '@font-face { src: url("font.woff2") } b { background: url(data:image/png;base64,AA) }',
    "font.woff2": "f",
    "404.html": f'{HEAD}<link rel="stylesheet" href="/below/own.css"><a href="/below/a/">a</a>',
    "sitemap.xml": f"<urlset><url><loc>{ROOT}</loc></url><url><loc>{ROOT}a/</loc></url></urlset>",
}


def write(folder: Path, changes: dict[str, str | None]) -> Path:
    for name, text in {**SITE, **changes}.items():
        if text is not None:
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text, "utf-8")
    return folder


WRONG = {
    "a link to no page": ({"a/index.html": HEAD + '<p id=b><a href="b/">'}, "a/index.html: b/ does not exist"),
    "a name that is not there": (
        {"a/index.html": HEAD + '<p id=b><a href="../#two">'},
        "a/index.html: ../#two: index.html has no such anchor",
    ),
    "nor on the page itself": ({"a/index.html": HEAD + '<p id="b"><a href="#c">'}, "a/index.html: #c: nothing on the"),
    "a picture": (
        {"a/index.html": HEAD + '<p id=b><img alt="" src=none.png>'},
        "a/index.html: none.png does not exist",
    ),
    "in a drawing": ({"a/index.html": HEAD + "<p id=b><svg><a xlink:href='x/'>"}, "a/index.html: x/ does not exist"),
    "a script of another host": (
        {"a/index.html": HEAD + '<p id=b><script src="//cdn.example/x.js"></script>'},
        "a/index.html: loads //cdn.example/x.js",
    ),
    "a font of another host": ({"own.css": "@import 'https://f.example/x'"}, "own.css: loads https://f.example/x"),
    "a font that is not there": ({"own.css": "b { src: url(x.woff2) }"}, "own.css: x.woff2 does not exist"),
    "somebody's own machine": (
        {"a/index.html": HEAD + '<p id=b><a href="http://localhost:8000/">'},
        "a/index.html: leads to http://localhost:8000/",
    ),
    "above the site": ({"a/index.html": HEAD + '<p id=b><a href="/other/">'}, "a/index.html: /other/ is outside"),
    "above the site, and back": (
        {"a/index.html": HEAD + '<p id=b><a href="../../below/a/">'},
        "a/index.html: ../../below/a/ leads above",
    ),
    "no policy": ({"a/index.html": "<p id=b>"}, "a/index.html: no content security policy"),
    "no 404.html": ({"404.html": None}, "404.html: no 404.html"),
    "a relative address in 404.html": ({"404.html": HEAD + '<a href="a/">'}, "404.html: a/ is relative"),
    "the wrong root in 404.html": ({"404.html": HEAD + '<a href="/a/">'}, "404.html: /a/ is outside the site"),
    "no sitemap": ({"sitemap.xml": None}, "sitemap.xml: missing or empty"),
    "an empty sitemap": ({"sitemap.xml": "<urlset></urlset>"}, "sitemap.xml: missing or empty"),
    "a sitemap without a host": (
        {"sitemap.xml": "<urlset><loc>./a/</loc></urlset>"},
        "sitemap.xml: addresses without a host",
    ),
    "a sitemap of another build": (
        {"sitemap.xml": f"<urlset><loc>{ROOT}z/</loc></urlset>"},
        f"sitemap.xml: names {ROOT}z/, but the site has no such page",
    ),
    "a comment without an end": (
        {"a/index.html": HEAD + "<p id=b><!-- <a href=none/>"},
        "a/index.html: <!-- is not closed",
    ),
    "a script without an end": ({"a/index.html": HEAD + "<p id=b><script>1"}, "a/index.html: <script is not closed"),
    "a tag without an end": ({"a/index.html": HEAD + '<p id=b><a href="x>'}, "a/index.html: <a is not closed"),
    "a large file": ({"font.woff2": "f" * 3000}, "font.woff2: 3.00 kB, more than 2.00 kB"),
}


@pytest.mark.parametrize(("changes", "line"), WRONG.values(), ids=WRONG)
def test_each_mistake_is_one_line(tmp_path, changes, line):
    (find,) = finds(write(tmp_path, changes), largest=2000)
    assert str(find).startswith(line) and find.mend and "\n" not in str(find)


def test_with_nothing_wrong_the_exit_status_is_0_and_else_1_or_2(tmp_path, capsys):
    folder = write(tmp_path, {})
    assert main(["publish-check", str(folder)]) == 0 and capsys.readouterr().out == "nothing found\n"
    (folder / "404.html").unlink()
    assert main(["publish-check", str(folder)]) == 1
    assert capsys.readouterr().out.splitlines()[1:] == ["1 found"]
    assert main(["publish-check", str(tmp_path / "a" / "b")]) == 2
    assert main(["publish-check", str(folder), "--largest", "much"]) == 2
    assert "no built site" in (said := capsys.readouterr().err) and "--largest 'much': not an amount" in said


def test_a_site_without_an_address_is_read_from_its_own_root(tmp_path):
    home = SITE["index.html"].replace(f'<link rel="canonical" href="{ROOT}">', "")
    page = SITE["a/index.html"].replace(ROOT, "/")
    lost = SITE["404.html"].replace("/below/", "/")
    write(tmp_path, {"index.html": home, "a/index.html": page, "404.html": lost, "sitemap.xml": "<loc>./a/</loc>"})
    (find,) = finds(tmp_path, largest=2000)
    assert "without a host" in find.what


def test_a_link_above_the_root_of_a_host_is_one_above_the_site(tmp_path):
    """A browser stops at the root, and so finds the page: until the site is below another path."""
    write(tmp_path, {"a/index.html": HEAD + '<p id=b><a href="../../a/#b">'})
    for page in ("index.html", "404.html", "sitemap.xml"):
        (tmp_path / page).write_text(SITE[page].replace("/below/", "/"), "utf-8")
    (find,) = finds(tmp_path, largest=2000)
    assert str(find).startswith("a/index.html: ../../a/#b leads above the site")


@pytest.mark.processes
def test_the_site_itself_can_be_published(site_folder):
    assert [str(find) for find in finds(Path(site_folder), largest=5_000_000)] == []


BROKEN = (
    "<!--",
    "<script ",
    "<script>",
    "<style>-->",
    "<a ",
    "<a \"'",
    "<a href=",
    "<a href=\"' ",
    " id",
    " id=\"'",
    "<a x ",
)


def test_a_broken_page_takes_no_longer_than_its_length():
    """A million characters of each beginning without its end; a pattern that tries each anew would take minutes."""
    for begin in (*BROKEN, *(f"{text}{' ' * 50}" for text in BROKEN)):
        with within(2):
            read(begin * (10**6 // len(begin)))


def test_what_is_too_large_to_be_read_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(publish_check, "LARGEST_PAGE", 900)
    folder = write(tmp_path, {"b.html": HEAD + " " * 900, "sitemap.xml": SITE["sitemap.xml"] + " " * 900})
    assert {str(find).partition(":")[0] for find in finds(folder, largest=2000)} == {"b.html", "sitemap.xml"}
