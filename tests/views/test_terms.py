"""The field's terms: each step carries one, each stands in the glossary, and each symbol has one spelling."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from types import SimpleNamespace

import pytest

from macros.catalogue import presets
from macros.engine.dims import latex_name
from macros.engine.steps import Role
from macros.site import page_macros
from macros.site.extensions.glossary import entries, term_anchor
from macros.views.diagrams import model_diagrams
from macros.views.tables import parameters
from macros.views.trace import operations, walkthrough
from macros.views.trace.operations import Operation, Section
from macros.views.words import descriptions, notation

ROOT = Path(__file__).parents[2]
KNOWN = [slug for slug in presets.paths() if presets.preset(slug).config is not None]
ONE_OF_EACH = list({presets.model(slug).raw["model_type"]: slug for slug in KNOWN}.values())

GLOSSARY = {term.lower() for entry in entries(ROOT / "docs/includes/glossary.md") for term in entry.terms}


MEND = (
    "has no term; give its weight words with one, by the end of its name in the `names` of a table of "
    "macros/views/words/weights.toml, or its role a term in macros/engine/steps.py, and see docs/includes/glossary.md"
)


def every(section: Section) -> list[Operation | Section]:
    """All that a walkthrough has an entry for."""
    return [one for item in section.content for one in (item, *(every(item) if isinstance(item, Section) else ()))]


def terms(said: str) -> list[str]:
    return said.split(", ") if said else []


@pytest.mark.parametrize("slug", KNOWN)
def test_each_step_has_a_term_of_the_glossary(slug):
    steps = every(operations.sections(presets.model(slug)))
    lacking = dict.fromkeys(one.words.title for one in steps if not one.words.term)
    assert not lacking, "\n" + "\n".join(f"{title}: {MEND}" for title in lacking)
    assert sorted({t for one in steps for t in terms(one.words.term) if t.lower() not in GLOSSARY}) == []


def test_each_role_weight_and_call_has_a_term_of_the_glossary():
    said = [role.term for role in Role]
    said += [w.term for w in (*descriptions.weights().values(), *descriptions.calls().values())]
    norms = [name for name, w in descriptions.weights().items() if not w.term]
    assert [name for name in norms if not re.search(r"[nN]orm|ln", name)] == [], "a norm has the term of its step"
    assert sorted({t for of_one in said for t in terms(of_one) if t.lower() not in GLOSSARY}) == []


def says_a_term(label: str) -> bool:
    """Whether a label has a term of the glossary in it: `RMSNorm before attention`."""
    words = unescape(re.sub("<[^>]+>", "", label)).lower()
    return any(re.search(rf"(?<!\w){re.escape(term)}s?(?!\w)", words) for term in GLOSSARY)


@pytest.mark.parametrize("slug", ONE_OF_EACH)
def test_walkthrough_diagram_and_table_show_it(slug):
    model = presets.model(slug)
    labels = re.findall(r'<div class="ep-what"><strong[^>]*>(.*?)</strong>(.*?)</div>', walkthrough.walkthrough(slug))
    for title, rest in labels[:-1]:  # the last one is the sum
        has_term = 'class="ep-term"' in rest or says_a_term(title)
        assert has_term, f"{title}: {MEND}"
    for drawing in (
        model_diagrams.whole(model, None),
        *(model_diagrams.layer(model, k, None) for k in model_diagrams.layer_kinds(model)),
    ):
        for item in drawing.top.items():
            said = {item.title.lower(), *(term.lower() for term in item.terms)}
            assert item.sign or any(term in one for term in GLOSSARY for one in said), item.title
            assert item.sign or all(
                term in model_diagrams.label(item, drawing.values).replace("<br/>", " ") for term in item.terms
            )
    rows = re.findall(
        r"<th[^>]*><code>[^/]*?</code>(?:<a [^>]*>¶</a>)?<br>(.*?)</th>",
        parameters.parameter_table(slug).replace("<wbr>", ""),
    )
    assert len(rows) >= len(model.drawn.counts.weights)
    assert [row for row in rows if "ep-term" not in row and not says_a_term(row)] == []


def test_each_term_leads_to_its_entry_of_the_glossary():
    page = SimpleNamespace(file=SimpleNamespace(src_uri="models/gpt/gpt2.md"))
    env = SimpleNamespace(variables={"files": {page_macros.GLOSSARY}}, page=page, conf={})
    linked = page_macros.with_glossary_links(walkthrough.walkthrough, env)("jamba-v0.1")
    ways = re.findall(r'<a href="../../../reference/glossary/#([\w-]+)">([^<]+)</a>', linked)
    assert ("grouped-query-attention", "grouped-query attention") in ways and ("softmax", "Softmax") in ways
    assert {to for to, _ in ways} <= {term_anchor(term) for term in GLOSSARY}
    assert re.sub(r"</?a\b[^>]*>", "", linked) == re.sub(r"</?a\b[^>]*>", "", walkthrough.walkthrough("jamba-v0.1"))


def test_what_the_trace_makes_exact():
    """Grouped-query, multi-query, multi-head, latent; SwiGLU, GeGLU, no gate; a window; the final norm."""
    said = {
        slug: {one.words.term for one in every(operations.sections(presets.model(slug)))}
        for slug in ("gpt2", "llama3-8b", "falcon-7b", "deepseek-v3", "gemma2-2b", "mamba-130m", "granite-4.0-h-small")
    }
    assert {"multi-head attention", "MLP", "final norm, LayerNorm", "causal mask"} <= said["gpt2"]
    assert {"grouped-query attention", "MLP, SwiGLU", "final norm, RMSNorm", "RoPE"} <= said["llama3-8b"]
    assert "multi-query attention" in said["falcon-7b"]
    assert {"multi-head latent attention", "routed experts, SwiGLU"} <= said["deepseek-v3"]
    assert {"MLP, GeGLU", "causal mask", "causal mask, sliding window"} <= said["gemma2-2b"]
    assert "Mamba block" in said["mamba-130m"] and "transformer block" not in said["mamba-130m"]
    assert {"Mamba-2 block", "state-space duality"} <= said["granite-4.0-h-small"]
    assert not {"multi-head attention", "multi-query attention"} & said["llama3-8b"]


def test_each_term_is_taught_on_the_page_that_the_glossary_names():
    """Mend: say the term on that page, or name another page in docs/includes/glossary.md."""
    untaught = []
    for entry in entries(ROOT / "docs/includes/glossary.md"):
        page = (ROOT / "docs/reference" / entry.see.partition("#")[0]).read_text("utf-8")
        if not any(term.lower() in " ".join(page.split()).lower() for term in entry.terms):
            untaught.append((entry.terms[0], entry.see))
    assert untaught == []


# One spelling of each symbol

NAMES = sorted((s.name for s in notation.SYMBOLS if "_" in s.name), key=len, reverse=True)
# Where a name is code: a key of a config file, an argument of a macro.
SIZES = {"d_ff", "d_model", "n_heads", "n_layers"}
CODE = dict.fromkeys(("reference/macros.md", "reference/macros-charts.md", "reference/macros-costs.md"), SIZES)
CODE["model-size/index.md"] = {"vocab_size"}


def misspelled(markdown: str, code: frozenset[str] | set[str] = frozenset()) -> list[str]:
    """Symbols that stand in a page otherwise than as `<var>d_ff</var>`, and in a formula otherwise than as letters."""
    for left_out in (
        r"\{%-? *raw.*?endraw *-?%\}",
        r"^( *)(```+|~~~+).*?^\1\2",
        r"\{\{.*?\}\}|\{%.*?%\}",
        r"\]\([^)]*\)",
        r"\{ ?#[^}\n]*\}",  # the anchor of a heading
        r"<var>\w+</var>",
    ):
        markdown = re.sub(left_out, " ", markdown, flags=re.S | re.M)
    found = re.findall(r"\$[^$\n]*?[dn]_\{?\\?(?:text)?\{?\w+\}*", markdown)
    names = re.findall(rf"(?<![\w\\])(?:{'|'.join(NAMES)})(?!\w)", markdown)
    return found + [name for name in names if name not in code]


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda p: p.stem)
def test_a_page_spells_each_symbol_in_one_way(page):
    """Mend: write <var>d_ff</var> in a sentence, and the letter (F) in a formula."""
    assert misspelled(page.read_text("utf-8"), CODE.get(page.relative_to(ROOT / "docs").as_posix(), set())) == []


@pytest.mark.parametrize(
    "said, is_wrong",
    [
        ("a width of <var>d_ff</var>, $F = 4D$, {{ value('x', 'd_ff') }}", False),
        ("a width of d_ff", True),
        ("a width of `d_ff`", True),
        ("$d_{ff} = 4D$", True),
        (r"$$ \sqrt{d_\text{head}} $$", True),
        (r"$2 \cdot n_{\text{kv heads}}$", True),
    ],
)
def test_what_counts_as_misspelled(said, is_wrong):
    assert bool(misspelled(said)) == is_wrong


def test_a_generated_formula_spells_it_alike():
    assert {name: latex_name(name).replace(r"\_", "_") for name in NAMES} == {n: rf"\text{{{n}}}" for n in NAMES}
