"""Models side by side: one row per model, a column for any figure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ...catalogue import presets
from ...catalogue.models import Model
from ...engine.errors import Problem
from ..kit import disclosure, values
from ..kit.context_limits import PAST_MARK
from ..kit.conventions import DEFAULT_MARK, and_list, caveat
from ..kit.html import Html, Link, block, conventions, html, joined, linked, number, table, tag, text
from ..kit.shapes import var
from ..words import notation


def comparison(
    models: Iterable[str],
    columns: Iterable[str | tuple[str, str]],
    context: int | None = None,
    link: Link | None = None,
) -> Html:
    """Models side by side: one row per model, a column for any figure that `value` gives."""
    slugs, labelled = tuple(_listed(models, "models")), [_labelled(c) for c in _listed(columns, "columns")]
    rows = [
        [
            linked(presets.preset(slug).name, slug, link),
            *(_figure(slug, name, context) for name, _ in labelled),
        ]
        for slug in slugs
    ]
    used, known = {n for c, _ in labelled for n in _names(c)}, {m.slug: m for m in disclosure.models(slugs)}
    at_context = f" at {context:,} tokens" if context and any(map(values.depends_on_context, used)) else ""
    notes = []
    if any("cache" in n for n in used):
        notes.append("KV cache at 2 bytes per element.")
    if any("flops" in n for n in used):
        notes.append("A multiply-add is 2 FLOPs.")
    if "prefill_flops" in used:
        notes.append("Prefill counts the scores of all pairs, including masked ones.")
    if "stored" in used:
        notes.append(text("Numbers in the file: the hub’s total for the model’s own file, scales included."))
        if any(m.is_stored_computed for m in known.values()):
            notes.append(
                html("{} computed: no total of its own file is known, so it is parameters and buffers.", _COMPUTED)
            )
    latent = [m.name for m in known.values() if "kv_lora_rank" in m.counts.values()] if "n_kv_heads" in used else []
    if latent:
        notes.append(
            html(
                # claim: deepseek-keeps-latents
                "“–” for {}: {} {}, from which the keys and values of all heads are made.",
                var("n_kv_heads"),
                and_list(latent),
                "keeps latents" if len(latent) == 1 else "keep latents",
            )
        )
    past = [m for m in known.values() if m.is_beyond(context)] if context and at_context else []
    if past:
        ends = [html("{} {:,}{}", m.name, *_end(m)) for m in past]
        notes.append(html("† beyond the tokens that the config allows: {}.", joined(ends, ", ")))
    if any("cache" in n or "flops" in n for n in used):
        notes.append(caveat(slugs))
    if len(known) < len(set(slugs)):
        notes.append(html("“{}”: the maker has published no sizes, and guesses are left out.", disclosure.UNDISCLOSED))
    as_table = table(
        f"{len(slugs)} model{'s side by side' if len(slugs) > 1 else ''}{at_context}",
        ["Model", *(number(label) if name not in values.ABOUT else label for name, label in labelled)],
        rows,
        name="Comparison of models",
    )
    return block(as_table, conventions(*notes)) if notes else as_table


def _end(model: Model) -> tuple[int | None, Html]:
    end, is_hard = model.longest_context
    return end, html(" (position table)" if is_hard else "")


def _listed(given: object, name: str) -> Iterable[str]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise Problem("expected a list", f'write {name}=["…", "…"]').about(name, given)
    return given


def _labelled(column: object) -> tuple[str, Html]:
    """A column's figure and its heading: the given label, or the figure itself."""
    match column:
        case str():
            spelt = _spelt(column)
            return column, spelt[:1].upper() + spelt[1:]
        case (str(label), str(name)):
            return name, text(label)
    raise Problem(
        f"columns holds {column!r}: expected a figure, or a label with it",
        'write "d_ff / d_model", or ("times as wide", "d_ff / d_model")',
    )


SIGNS = {"*": "·", "/": " / ", "//": " / ", "-": " − ", "+": " + "}


def _spelt(source: str) -> Html:
    """A figure or a formula of figures in the usual notation: sizes by name, counts in words, `·` for `*`."""

    def spell(m: re.Match) -> str:
        if m["name"]:
            return (
                var(m[0])
                if notation.known(m[0]) or m[0] in notation.config_sizes()
                else text(values.column_title(m[0]))
            )
        return tag("sup", m["power"]) if m["power"] else SIGNS.get(m[0].strip()) or text(m[0])

    return Html(re.sub(r"(?P<name>[A-Za-z_]\w*)|\s*\*\*\s*(?P<power>\d+)|\s*(?://|[*/+-])\s*|.", spell, source))


def _names(source: str) -> list[str]:
    return re.findall(r"[A-Za-z_]\w*", source)


def _figure(slug: str, name: str, context: int | None) -> Html | str:
    """A figure of a model, as a cell."""
    try:
        shown = values.value(slug, name, context=context)
    except Problem:
        if (
            name in values.PUBLISHED
            or name.isidentifier()
            and (notation.known(name) or name in notation.config_sizes())
        ):
            return "–"
        raise
    model = disclosure.model(slug)
    if model is None:
        return shown
    is_past = any(map(values.depends_on_context, _names(name))) and context is not None and model.is_beyond(context)
    is_computed = "stored" in _names(name) and model.is_stored_computed
    is_default = any(map(model.rests_on_default, _names(name)))
    marks = (PAST_MARK, is_past), (_COMPUTED, is_computed), (DEFAULT_MARK, is_default)
    applying = [mark for mark, applies in marks if applies]
    return html("{} {}", joined(applying), shown) if applying else shown


_COMPUTED = html('<span class="ep-mark" title="computed, not published">‡</span>')
