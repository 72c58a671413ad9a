"""The diagrams' Mermaid source, parsed again: the data flow, the list, what each node leads to, and that no name can
become syntax."""

import re
from functools import cache
from html import unescape
from html.parser import HTMLParser

import pytest
from copies import ROOT
from markdown.extensions.toc import slugify

from macros.catalogue import presets
from macros.engine.errors import Problem
from macros.views.diagrams import model_diagrams
from macros.views.trace import guide_links

KNOWN = [slug for slug in presets.paths() if presets.preset(slug).config is not None]
HOSTILE = 'end"] --> n0; click n0 "javascript:alert(1)" <script>#quot; `**x**` {{ 1 }} %% <br/>\nend\nsubgraph x'

_NODE = re.compile(r'^ *(n\d+)(\(\[|\[\(|\(\(|\[)"(.*)"(\]\)|\)\]|\)\)|\])$')
_BOX = re.compile(r'^ *subgraph (b\d+) \["(.*)"\]$')
_EDGE = re.compile(r"^ *(n\d+) -->(\|residual\|)? (n\d+)$")
_CLASS = re.compile(r"^ *class ([nb\d,]+) (\w+)$")
_CLICK = re.compile(r'^ *click (n\d+) "([^"]*)" "([^"]*)"$')


class Parsed:
    """A diagram's source as its parts; a line that is none of them is an error."""

    def __init__(self, source):
        self.nodes, self.boxes, self.edges, self.residual, self.classes, self.links, self.box_of = (
            {},
            {},
            [],
            [],
            {},
            {},
            {},
        )
        first, *lines = source.split("\n")
        assert first == "flowchart TB"
        inside = []
        for line in lines:
            if m := _NODE.match(line):
                self.nodes[m[1]] = re.sub(r"#(\d+);", lambda c: chr(int(c[1])), m[3]).replace("<br/>", "\n")
                self.box_of[m[1]] = tuple(inside)
            elif m := _BOX.match(line):
                self.boxes[m[1]] = re.sub(r"#(\d+);", lambda c: chr(int(c[1])), m[2])
                inside.append(m[1])
            elif line.strip() == "end":
                inside.pop()
            elif m := _EDGE.match(line):
                self.edges.append((m[1], m[3]))
                self.residual += [(m[1], m[3])] if m[2] else []
            elif m := _CLASS.match(line):
                for name in m[1].split(","):
                    self.classes.setdefault(name, set()).add(m[2])
            elif m := _CLICK.match(line):
                self.links[m[1]] = m[2]
            else:
                assert line.lstrip().startswith("%% "), f"not Mermaid that a diagram has: {line!r}"
        assert not inside

    def find(self, title):
        """The one node whose label starts so."""
        [name] = [n for n, said in self.nodes.items() if said.replace("\n", " ").startswith(title)]
        return name


class List(HTMLParser):
    """The figure: its source, the entries of its list, and the links in the list and in the drawing."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.tags, self.source, self.entries, self.links, self.open = [], "", [], [], []
        self.drawn, self.attributes = [], set()
        self.feed(str(html))  # an `Html` would escape what is cut out of it

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attributes}
        if tag in ("br", "wbr"):
            return
        self.open.append(tag)
        if tag == "li":
            self.entries.append("")
        if tag == "a":
            links, name = (self.drawn, "xlink:href") if "svg" in self.open else (self.links, "href")
            links.append(dict(attributes)[name])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "pre" in self.open:
            self.source += data
        elif "li" in self.open:
            self.entries[-1] += data


def link(source):
    return f"../{source}"


def source(drawing):
    """The drawing as Mermaid, its links as on a page one folder down."""
    return model_diagrams.mermaid(drawing, model_diagrams.section_links(link))


def drawings(slug, highlight=None):
    model = presets.model(slug)
    return [
        model_diagrams.whole(model, highlight),
        *(model_diagrams.layer(model, kind, highlight) for kind in model_diagrams.layer_kinds(model)),
    ]


@pytest.mark.parametrize("slug", KNOWN)
def test_every_model_is_one_connected_graph_without_a_cycle_or_an_end_in_between(slug):
    for drawing in drawings(slug):
        parsed = Parsed(source(drawing))
        place = {name: i for i, name in enumerate(parsed.nodes)}
        assert all(place[a] < place[b] for a, b in parsed.edges)
        group = {name: name for name in parsed.nodes}
        for a, b in parsed.edges:
            old, new = group[a], group[b]
            group = {n: new if g == old else g for n, g in group.items()}
        assert len(set(group.values())) == 1, [parsed.nodes[n] for n in set(group.values())]
        assert "#" not in "".join(
            model_diagrams.inert(title) for title in parsed.boxes.values()
        )  # Mermaid leaves codes in a group's title
        *_, last = parsed.nodes
        without_reader = set(parsed.nodes) - {a for a, _ in parsed.edges} - {last}
        assert not without_reader, [parsed.nodes[n] for n in without_reader]


@pytest.mark.share(3)
@pytest.mark.parametrize("slug", KNOWN)
def test_the_list_says_all_that_the_drawing_does(slug):
    for drawing in drawings(slug, "d_model"):
        html = model_diagrams.figure(drawing, "name", link)
        found = List(html)
        parsed = Parsed(found.source)
        assert "\n" not in html
        titles = [item.title for item in drawing.top.items()]
        entries = [e for e in found.entries if not e.endswith(":")]
        assert len(titles) == len(parsed.nodes) == len(entries)
        assert all(entry.startswith(title) for entry, title in zip(entries, titles))
        assert len(found.entries) == len(parsed.nodes) + len(parsed.boxes)
        assert found.drawn == found.links == list(parsed.links.values()) and len(found.links) == len(titles)
        assert not {"style", "id"} & found.attributes and not {"script", "style"} & set(found.tags)
        assert [("depends on d_model" in e) for e in entries] == ["accent" in parsed.classes[n] for n in parsed.nodes]
        assert sum(e.count("the residual connection carries") for e in entries) == len(parsed.residual)


def test_gpt2_as_a_whole():
    parsed = Parsed(source(model_diagrams.whole(presets.model("gpt2"), "d_model")))
    embed, positions = parsed.find("Token embedding"), parsed.find("Position embedding")
    sums = [n for n, said in parsed.nodes.items() if said == "+"]
    tables, attended, fed = sums
    assert {(embed, tables), (positions, tables)} <= set(parsed.edges)
    assert parsed.residual == [(tables, attended), (attended, fed)]
    assert (parsed.find("Fused QKV projection"), parsed.find("KV cache: keys")) in parsed.edges
    assert [parsed.boxes[b] for b in parsed.box_of[attended]] == ["Layer × 12 · transformer block"]
    assert parsed.nodes[parsed.find("Up projection")] == "Up projection\nc_fc\n[d_model, d_ff]\n[768, 3072]"
    assert parsed.links[embed] == "../what-happens/embeddings.md"


def test_llama_3_70b_as_a_whole():
    parsed = Parsed(source(model_diagrams.whole(presets.model("llama3-70b"), "d_model")))
    attended, fed = [n for n, said in parsed.nodes.items() if said == "+"]
    table, norm = parsed.find("Token embedding"), parsed.find("RMSNorm before attention")
    assert parsed.residual == [(table, attended), (attended, fed)]
    assert {(table, norm), (parsed.find("Output projection"), attended), (parsed.find("Down projection"), fed)} <= set(
        parsed.edges
    )
    assert parsed.boxes["b1"] == "Layer × 80 · transformer block" and parsed.classes["b1"] == {"repeat"}
    assert parsed.nodes[parsed.find("Key projection")].split("\n") == [
        "Key projection",
        "k_proj",
        "[d_model, n_kv_heads·d_head]",
        "[8192, 1024]",
    ]
    assert set(parsed.boxes.values()) >= {"Attention · grouped-query attention", "Feed-forward · MLP, SwiGLU"}
    plain = {parsed.nodes[n].split("\n")[0] for n in parsed.nodes if "accent" not in parsed.classes[n]}
    assert plain == {
        "Token ids",
        "RoPE (q)",
        "RoPE (k)",
        "Causal mask",
        "Softmax",
        "KV cache: keys",
        "KV cache: values",
        "Attention scores (QKᵀ)",
        "Attention output",
        "×",
        "Next-token scores",
    }
    assert {parsed.links[n].removeprefix("../what-happens/") for n in parsed.nodes} == {
        "tokens.md",
        "embeddings.md",
        "model-layers.md#the-norms",
        "model-layers.md#the-residual-stream",
        "attention-deep-dive.md#three-vectors-for-each-token",
        "attention-deep-dive.md#position",
        "attention-deep-dive.md#scores-shares-average",
        "attention-deep-dive.md#back-into-the-stream",
        "ffn-deep-dive.md#wider-through-a-function-and-back",
        "ffn-deep-dive.md#with-a-gate",
        "final-vector-to-token.md#a-score-for-every-token",
        "final-vector-to-token.md#from-scores-to-a-word",
        "kv-cache.md",
    }


@cache
def headings(page):
    """The addresses of a page's headings, as the toc extension makes them or as the heading says: `{ #name }`."""
    text = (ROOT / "docs" / page).read_text("utf-8")
    found = re.findall(r"^#+ (.*?)(?: \{ ?#([\w-]+) ?\}| \{.*\})?$", text, re.M)
    return {name or slugify(heading, "-") for heading, name in found}


@pytest.mark.exhaustive
def test_every_node_leads_to_a_section_that_is_there():
    sections = {item.section for slug in KNOWN for drawing in drawings(slug) for item in drawing.top.items()}
    assert len(sections) > 15
    for section in [*sections, *guide_links.INSTEAD, *guide_links.INSTEAD.values()]:
        page, _, heading = section.partition("#")
        assert (ROOT / "docs" / page).is_file()
        assert not heading or heading in headings(page), section


def test_a_state_leads_to_what_explains_it_not_to_attention():
    for slug in ("mamba-130m", "rwkv-4-169m", "qwen3-next-80b-a3b", "minimax-text-01", "granite-4.0-h-small"):
        model = presets.model(slug)
        kind = next(iter(model_diagrams.layer_kinds(model)))
        carried = [
            i for i in model_diagrams.layer(model, kind, None).top.items() if i.title.startswith("From earlier tokens")
        ]
        assert carried and all(item.section.startswith(f"{guide_links.RECURRENT}#") for item in carried)


def test_where_a_page_is_not_part_of_the_site_the_next_one_stands_in():
    def only_what_happens(page):
        return page if page.startswith("what-happens/kv") else None

    assert guide_links.link_to_section(f"{guide_links.RECURRENT}#mamba", only_what_happens) == guide_links.CACHE
    assert guide_links.link_to_section(guide_links.TOKENS, only_what_happens) is None


def test_rotation_mask_and_softmax_stand_where_they_act():
    for slug in ("llama3-8b", "gemma2-9b", "gpt-oss-20b", "deepseek-v3"):
        parsed = Parsed(source(model_diagrams.whole(presets.model(slug), None)))
        after = dict(parsed.edges)
        named = {name: said.split("\n")[0] for name, said in parsed.nodes.items()}
        rotated = [n for n, title in named.items() if title.startswith("RoPE (")]
        masks = [n for n, title in named.items() if title == "Causal mask"]
        assert rotated and masks
        assert all(named[after[n]].startswith("Softmax") for n in masks)
        before = [named[a] for a, b in parsed.edges if b in masks]
        assert all(title.startswith(("Attention scores", "Logit soft-capping")) for title in before)
    assert "RoPE" not in source(model_diagrams.whole(presets.model("gpt2"), None))


def test_one_layer_of_llama_has_every_step():
    parsed = Parsed(source(model_diagrams.layer(presets.model("llama3-70b"), "full", None)))
    q, rotated, scores = (
        parsed.find("Query projection"),
        parsed.find("RoPE (q)"),
        parsed.find("Attention scores"),
    )
    hidden, shares = parsed.find("Causal mask"), parsed.find("Softmax")
    assert {(q, rotated), (rotated, scores), (scores, hidden), (hidden, shares)} <= set(parsed.edges)
    assert (parsed.find("RoPE angles"), rotated) in parsed.edges
    assert (parsed.find("RoPE (k)"), parsed.find("KV cache: keys")) in parsed.edges
    x = parsed.find("Each token’s vector residual stream [T")
    assert parsed.residual[0][0] == x and len(parsed.residual) == 2


def test_a_highlight_is_about_that_symbol():
    parsed = Parsed(source(model_diagrams.whole(presets.model("llama3-70b"), "d_ff")))
    accent = {parsed.nodes[n].split("\n")[0] for n in parsed.nodes if "accent" in parsed.classes[n]}
    assert accent == {"Gate projection", "Up projection", "×", "Down projection"}


def test_each_kind_of_layer_once():
    parsed = Parsed(source(model_diagrams.whole(presets.model("deepseek-v3"), None)))
    layers = [title for title in parsed.boxes.values() if title.startswith("Layer")]
    assert layers == [
        "Layer × 3: dense (layers 0–2) · transformer block",
        "Layer × 58: mixture of experts (layers 3–60) · transformer block",
    ]
    assert "KV cache: latents" in {said.split("\n")[0] for said in parsed.nodes.values()}


def test_each_layer_adds_to_its_stream_and_nothing_else_is_called_residual():
    for slug, sums in (
        ("gpt2", 2),
        ("phi-2", 1),
        ("gemma2-9b", 2),
        ("granite-3.3-8b", 2),
        ("mamba-130m", 1),
        ("rwkv-4-169m", 2),
        ("minimax-text-01", 2),
    ):
        model = presets.model(slug)
        for kind in model_diagrams.layer_kinds(model):
            parsed = Parsed(source(model_diagrams.layer(model, kind, None)))
            assert len(parsed.residual) == sums, slug
            assert all(parsed.nodes[b] == "+" for _, b in parsed.residual)


@pytest.mark.parametrize("slug", ["gpt2", "mamba-130m", "deepseek-v3"])
def test_the_legend_explains_what_is_drawn_and_no_more(slug):
    whole, *layers = drawings(slug)
    for drawing in (
        whole,
        *layers,
        model_diagrams.Drawing(whole.model, layers[0].scope, lambda row: bool(row.weights), None),
    ):
        parsed, said = Parsed(source(drawing)), unescape(model_diagrams.figure(drawing, "name", None))
        kinds = set().union(*parsed.classes.values())
        assert ("White: an operation without weights" in said) == ("op" in kinds)
        assert ("Rounded, blue: data." in said) == ('(["' in source(drawing))
        assert ('class="ep-accent"' in said.partition("</figcaption>")[0]) == ("accent" in kinds)
        assert said.index("<figcaption>") < said.index("<svg")
        assert ("Dashed gray: an operation with weights" in said) == ("weight" in kinds)
        assert ("Cylinder: kept in the cache." in said) == ('[("' in source(drawing))


def test_without_a_site_there_are_no_links():
    assert not Parsed(
        model_diagrams.mermaid(model_diagrams.whole(presets.model("gpt2"), None), model_diagrams.section_links(None))
    ).links
    assert "<a" not in model_diagrams.pipeline("gpt2")


@pytest.mark.parametrize(
    "call, found",
    [
        (lambda: model_diagrams.pipeline("gpt2", "d_modle"), 'did you mean "d_model"?'),
        (lambda: model_diagrams.block("gemma2-9b", "slidin"), 'did you mean "sliding"?'),
        (lambda: model_diagrams.block("gpt2", highlight="n_kv_heads"), "gpt2 has no such size"),
        (lambda: model_diagrams.pipeline("gpt5"), "unknown model"),
    ],
)
def test_a_wrong_call_says_what_was_meant(call, found):
    with pytest.raises(Problem, match=re.escape(found)):
        call()


def test_an_undisclosed_model_is_a_sentence():
    assert "undisclosed" in model_diagrams.pipeline("gpt-4") and "<figure" not in model_diagrams.block("gpt-4")


def test_a_hostile_name_stays_text():
    inert = model_diagrams.inert(HOSTILE)
    assert re.sub(r"#(\d+);", lambda c: chr(int(c[1])), inert) == " ".join(HOSTILE.split())
    assert not set('"#<>`*{}%;\n') & set(re.sub(r"#\d+;", "", inert))
    drawing = model_diagrams.whole(presets.model("gpt2"), None)
    item = next(i for i in drawing.top.items() if i.title == "Token ids")
    item.title = HOSTILE
    try:
        html = model_diagrams.figure(drawing, HOSTILE, link)
    finally:
        item.title = "Token ids"
    found = List(html)
    assert set(found.tags) <= {
        "wbr",
        "figure",
        "div",
        "svg",
        "g",
        "path",
        "rect",
        "circle",
        "text",
        "pre",
        "code",
        "figcaption",
        "details",
        "summary",
        "ol",
        "li",
        "a",
        "span",
        "var",
    }
    parsed = Parsed(found.source)
    assert parsed.nodes["n0"].replace("\n", " ").startswith('end"] --> n0; click n0')
    assert "{{" not in html and "`" not in html and unescape(html).count("<script>") == html.count("&#60;script&#62;")


def test_each_side_has_its_own_positions():
    """What is read has places of its own, and so has what is written."""
    drawing = model_diagrams.whole(presets.model("whisper-small"), None)
    places = [item for item in drawing.top.items() if item.title == "Positions"]
    assert [model_diagrams.in_text(item.shape) for item in places] == ["[n_source]", "[T]"]
    assert len([item for item in drawing.top.items() if item.inputs and places[0] in item.inputs]) == 1


def test_a_window_to_both_sides_hides_no_future():
    titles = [
        item.title for item in model_diagrams.layer(presets.model("modernbert-base"), "sliding", None).top.items()
    ]
    assert "Sliding-window mask" in titles and not any("future" in title for title in titles)
