"""What is wrong with a page's braces, tags and metadata: the line to mend, in plain words, with a mend that helps."""

import subprocess

import jinja2
import pytest
from copies import build, small_site
from mkdocs.utils.meta import get_data

from macros.site.page_syntax import Mend, front_matter_mend, syntax_mend, without_front_matter

TEXT = "write {% raw %} around"
CASES = {
    '{{ value("a"': (1, "two braces are opened and not closed: }} is missing", f"close the braces, or {TEXT} them"),
    '{{ value("a") } x': (
        1,
        "two braces are opened and not closed: }} is missing",
        f"close the braces, or {TEXT} them",
    ),
    "{{ a %} b": (1, "two braces are opened and not closed: }} is missing", f"close the braces, or {TEXT} them"),
    'a {{ value("a" }} b': (1, "a call is not closed: ) is missing", "add it"),
    '{{ value(["a"), 1 }}': (1, "a list is not closed: ] is missing", "add it"),
    '{{ value("a }}': (1, "a text is not closed: a quotation mark is missing", "add it"),
    '{{ value("a") b }}': (1, "unexpected 'b' after the call, between the braces", f"correct the braces, or {TEXT}"),
    "{{ a ? b }}": (1, "unexpected char '?' at", f"correct the braces, or {TEXT}"),
    "a\n{% if x %}\n{{ b }}\n": (2, "{% if %} is not closed", "add {% endif %} behind what it is for"),
    "{% if x %}\n{% if y %}\n{% endif %}\nz": (1, "{% if %} is not closed", "add {% endif %}"),
    "{% raw %}{% for a %}{% endraw %}\n{% for a in b %}": (2, "{% for %} is not closed", "add {% endfor %}"),
    "{% foor x in y %}": (1, "there is no tag {% foor %}", 'did you mean "for"?'),
    "10{%qqqq%}": (1, "there is no tag {% qqqq %}", f"{TEXT} a tag that is meant as text"),
    "a\n{% endraw %}": (2, "{% endraw %} without {% raw %}", "delete it, or open {% raw %} before its text"),
    "{% elif x %}": (1, "{% elif %} without {% if %}", "delete it, or open {% if %}"),
    "{% for a in b %}{% endif %}": (
        1,
        "{% endif %} stands where {% for %} is not closed",
        "add {% endfor %} before it",
    ),
    "{% if x }\na": (1, "a tag is opened and not closed: %} is missing", f"close the tag, or {TEXT} it"),
    "{% if x }}{{ a }}{% endif %}": (
        1,
        "a tag is opened and not closed: %} is missing",
        f"close the tag, or {TEXT} it",
    ),
    "{% if a = 1 %}b{% endif %}": (1, "unexpected '=' in the tag", f"correct the tag, or {TEXT} it"),
    "{% for x of y %}{% endfor %}": (1, "expected token 'in', got 'of'", f"correct the tag, or {TEXT} it"),
    "a\n{% raw %}\nb": (2, "{% raw %} is not closed", "add {% endraw %} behind the text"),
    "{# a": (1, "{# opens a comment that is not closed: #} is missing", "close it, or"),
}


@pytest.mark.parametrize("source", CASES)
def test_a_wrong_tag_has_a_mend_of_its_own(source):
    with pytest.raises(jinja2.TemplateSyntaxError) as raised:
        jinja2.Environment().from_string(source)
    mend, (line, what, how) = syntax_mend(raised.value.message, source, raised.value.lineno), CASES[source]
    assert mend.line == line and mend.what.startswith(what) and mend.how.startswith(how), mend


@pytest.mark.parametrize(
    "text, line, what",
    [
        ("---\ntitle: [a\n---\n\n# A\n", 2, "the metadata above the page are not YAML: "),
        ("---\ntitle: a\ndescription: b: c\n---\n# A\n", 3, "the metadata above the page are not YAML: mapping values"),
        ("---\njust text\n---\n# A\n", 2, "the metadata above the page are no list of settings"),
        ("---\ntitle: A\n\n# A\n", 1, "the metadata above the page have no end"),
    ],
)
def test_metadata_that_mkdocs_would_print_are_told(text, line, what):
    assert get_data(text) == (text, {}), "MkDocs reads them after all"
    mend = front_matter_mend(text)
    assert isinstance(mend, Mend) and mend.line == line and mend.what.startswith(what) and mend.how
    assert without_front_matter(text).strip() == "# A"


@pytest.mark.parametrize(
    "text",
    [
        "# A\n",
        "---\ntitle: A\n---\n# A\n",
        "---\n\nA line across\n\n---\n",
        "---\ntitle: A\n...\n# A\n",
        "---\nA rule\n",
        "",
    ],
)
def test_other_beginnings_of_a_page_are_none(text):
    assert front_matter_mend(text) is None


@pytest.mark.processes
def test_a_build_is_refused_with_the_line(tmp_path):
    site = small_site(tmp_path / "site")
    page = site / "docs/guide/two.md"
    page.write_text(f"---\ntitle: a: b\n---\n\n{page.read_text('utf-8')}", "utf-8")
    built: subprocess.CompletedProcess = build(site)
    assert built.returncode == 1 and not (site / "site").exists()
    (said,) = [line for line in built.stderr.splitlines() if "docs/guide" in line]
    assert (
        "docs/guide/two.md:2: the metadata above the page are not YAML: mapping values are not allowed here; " in said
    )
