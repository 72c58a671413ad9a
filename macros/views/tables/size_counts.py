"""The counts of a model that are all called "size", with every difference explained down to zero."""

from __future__ import annotations

from ...cache.memory import memoized
from ...catalogue import preset_file
from ...catalogue.headlines import looked_up
from ...catalogue.models import Model
from ...counting import design
from ...counting.parts import HEAD, INPUT_TABLES
from ...engine.tensors import Weight
from ..kit import disclosure, rounding
from ..kit.html import Html, Row, block, conventions, heading, html, joined, number, table
from ..kit.shapes import tensor_name, var
from . import headlines


@memoized
@disclosure.view("its size")
def which_number(model: Model) -> Html:
    """The counts that are all called "the size", each difference explained down to zero."""
    counts, preset, published = model.counts, model.preset, model.published
    figures = [published, *published.other] if published else []
    total = _result("Unique trainable parameters", counts.total)

    why = "each tensor once, including the tied embedding" if counts.is_tied else "each tensor once"
    start = [_result("Unique trainable parameters", counts.total, why)]
    if preset and preset.headline:
        start.insert(0, Row(["The maker’s headline", preset.headline, headlines.headline(model, preset.headline)]))
    sections = [("The model", start)]
    if counts.embedding:
        tables = [_step(tensor_name(w.name), -int(w.count), use) for w, use in _tables(model)]
        rest = _result(
            "Non-embedding",
            counts.non_embedding,
            "as in the scaling laws of Kaplan et al.; Chinchilla’s count all",
        )
        sections.append(("Without embedding and LM head", [total, *tables, rest]))
    if design.is_sparse(model.counts):
        sections.append(("Used by one token", _active(model, total)))
    alike = [f for f in figures if f.exact and f.parameters == counts.total and not f.extra]
    if alike:
        sections.append(
            (
                "The same count elsewhere",
                [_result("Published", f.parameters, html("{}; the same number", f.source)) for f in alike],
            )
        )
    sections += [(f.source, _published(model, f, total)) for f in figures if f not in alike]
    return block(
        table(
            html("Which number is “the size” of {}?", model.name),
            ["Count", number("Parameters"), "Meaning"],
            *([heading(title, 3), *rows] for title, rows in sections),
            name=f"The counts of {model.name}",
            cls="ep-table ep-which",
        ),
        conventions(
            _contradiction(model),
            html("Lines with + or − explain the difference between the count above and the one below."),
        ),
    )


def _result(title: str, n: int, why: object = "") -> Row:
    return Row([title, rounding.grouped(n), why], "total")


def _step(title: object, n: int, why: object) -> Row:
    return Row([title, html("+" if n > 0 else "") + rounding.grouped(n), why], "ep-step")


def _active(model: Model, total: Row) -> list[Row]:
    """From the total to the parameters that a token uses, by both conventions, and the maker's figure."""
    counts, published = model.counts, model.published
    idle: dict[tuple[str, int, int], list[Weight]] = {}
    for w in counts.weights:
        if w.routed is not None and int(w.active) != int(w.count):
            held, used = map(int, w.routed)
            idle.setdefault((w.name, held, used), []).append(w)  # for every kind of layer
    rows = [total]
    for (name, held, used), weights in idle.items():
        n = sum(int(w.layer_count) for w in weights)
        left_out = sum(int(w.active) - int(w.count) for w in weights)
        layers = f"in {n:,} {'layer' if n == 1 else 'layers'}"
        why = f"{held - used:,} of {held:,} experts that a token does not choose, {layers}"
        rows.append(_step(tensor_name(name), left_out, why))
    in_full = "embeddings, tables of n-grams and LM head" if counts.ngram_tables else "embeddings and LM head"
    multiplied = html("the parameters that one token uses; {} in full", in_full)
    rows.append(_result("Active per token", counts.active, multiplied))
    excluding = counts.active_excluding_input_embedding
    if excluding != counts.active:
        of_ngrams = sum(int(w.count) for w in counts.ngram_tables)
        if of_ngrams:
            tables = "table" if len(counts.ngram_tables) == 1 else "tables"
            rows.append(_step(f"the {tables} of n-grams", -of_ngrams, "a lookup of a few rows"))
        rows += [
            _step("the token embedding", excluding - counts.active + of_ngrams, "a lookup of one row"),
            _result(f"Active without {looked_up(counts)}", excluding, "another common convention"),
        ]
    if (rest := counts.active_non_embedding) != excluding:
        others = [
            tensor_name(w.name)
            for w, use in _tables(model)
            if use != "the token embedding" or excluding == counts.active
        ]
        rows += [
            _step(joined(others, " and "), rest - excluding, "as in the non-embedding count"),
            _result("Active, non-embedding", rest, "a third convention"),
        ]
    if published and published.active:
        source = html("; {}", published.active_source) if published.active_source else ""
        rows.append(
            Row(
                [
                    "The maker’s figure",
                    published.active,
                    headlines.headline(model, f"A{published.active}") + source,
                ]
            )
        )
    return rows


def _tables(model: Model) -> list[tuple[Weight, str]]:
    """The tables at either end of the model, each with its use."""
    uses: dict[Weight, list[str]] = {}
    for node in model.trace.root.children:
        for role, what in (
            (INPUT_TABLES[0], "the token embedding"),
            (INPUT_TABLES[1], "the position table"),
            (INPUT_TABLES[2], "the segment table"),
            (HEAD, "the LM head"),
        ):
            for w in node.all_weights() if node.role is role else ():
                if not w.is_buffer:
                    uses.setdefault(w, []).append(what)
    return [(w, " and ".join(dict.fromkeys(what))) for w, what in uses.items()]


def _published(model: Model, published: preset_file.Published, total: Row) -> list[Row]:
    """From the total to a published figure, each difference by name and count."""
    counts = model.counts
    if not published.exact:
        n = published.parameters
        why = html("the count {}; a rounded figure allows no exact check", headlines.difference_text(counts.total, n))
        return [total, _step("rounded there", n - counts.total, why), _result("Published, rounded", n)]
    rows, explained = [total], counts.total
    for name in dict.fromkeys(w.name for w in counts.buffers):
        n = sum(int(w.count) for w in counts.buffers if w.name == name)
        rows.append(_step(tensor_name(name), n, html("a buffer: stored, not trained")))
        explained += n
    for extra in published.extra:
        why = "counted there, not part of this forward pass" if extra.count > 0 else "not counted there"
        rows.append(_step(extra.name, extra.count, why))
        explained += extra.count
    rest = html("unexplained: {}", rounding.grouped(published.parameters - explained))
    return [*rows, _result("Published", published.parameters, rest)]


def _contradiction(model: Model) -> Html | str:
    """A config whose heads together are narrower or wider than the model: a design choice, or an error in a paper."""
    sizes = model.counts.values()
    if not {"n_heads", "d_head", "d_model"} <= sizes.keys():
        return ""
    together = sizes["n_heads"] * sizes["d_head"]
    if together == sizes["d_model"]:
        return ""
    product = html(
        "{} × {} = {:,} × {:,} = {:,}", var("n_heads"), var("d_head"), sizes["n_heads"], sizes["d_head"], together
    )
    width = html("{} = {:,}", var("d_model"), sizes["d_model"])
    if any("d_head" in d.symbols for w in model.counts.weights for d in w.shape):
        return html(
            "The heads together are not as wide as the model: {}, and {}. "
            "The projections change the width on the way in and out.",
            product,
            width,
        )
    return html(
        "The source contradicts itself: {}, and {} (a difference of {}). Attention is taken to be as wide as {} here.",
        product,
        width,
        rounding.grouped(together - sizes["d_model"]),
        var("d_model"),
    )
