"""`ask`: a question in words, parsed by the grammar of the site's search and answered as the commands do."""

from __future__ import annotations

from ..api.changes import changed
from ..catalogue import asked, page_paths, presets
from ..catalogue.question import meant
from ..catalogue.question_leads import leads, note_of
from ..catalogue.question_names import Named
from ..catalogue.question_of_model import Asked, Lead, with_format
from ..catalogue.question_table import Grammar, Meaning
from ..catalogue.question_words import joined, key_of, tokens_of
from ..catalogue.resolving import Resolver
from ..counting import answering
from ..counting.accelerators import accelerators
from ..counting.own_machine import named
from ..views.kit import rounding

Answer = dict[str, str]  # `title`, `said` and `address`, the URL of the page on the site that has it
MOST_PAGES = 3
MOST_TOKENS = 12  # of a page's name
WRITING = answering.Writing(rounding.decimal_bytes, rounding.short, rounding.flops)
NOTHING = "Nothing in this question is counted: name a model, a machine, or what a page is about."


def answers(question: str) -> tuple[Meaning, list[Answer]]:
    """What a question means, and its answers, best first. Raises `Problem` for impossible conditions."""
    grammar = _grammar(False)
    meaning = meant(question, grammar)
    if meaning.changes or meaning.is_full:
        grammar = _grammar(True)
        meaning = meant(question, grammar)
    found = _answered(leads(meaning, grammar))
    if not found:
        models = [_of_model(one) for one in meaning.models]
        is_sure = any(one.is_sure for one in meaning.models) and not meaning.is_reason
        found = [*models, *_pages(question)] if is_sure else [*_pages(question), *models]
    return meaning, found


def as_data(question: str, meaning: Meaning, found: list[Answer]) -> dict[str, object]:
    """The JSON of `ask`."""
    return {
        "question": question,
        "absent": [one.title for one in meaning.absent],
        "read_as": dict(meaning.corrected),
        "not_used": meaning.unused,
        "note": note_of(meaning),
        "answers": found,
    }


def _grammar(has_keys: bool) -> Grammar:
    slugs = asked.oldest_first(presets.readable())
    records = [[_address(page_paths.model_page(slug)), presets.preset(slug).name] for slug in slugs]
    return Grammar(asked.names(slugs, lambda page: True, _address, has_keys), records, Resolver)


def _address(source: str) -> str:
    """A page's URL on the site."""
    return source.removesuffix(".md").removesuffix("index").rstrip("/") + "/"


def _answered(found: list[Lead]) -> list[Answer]:
    """Leads with their answers, each with a format that fits if the requested one does not; models that agree share
    one."""
    computed = {n: _computed(lead.compute) for n, lead in enumerate(found) if lead.compute}
    if one := answering.agreed([*computed.values()], [lead.compute.title for lead in found if lead.compute]):
        first = next(iter(computed))
        others = [lead for lead in found if lead.compute is None]
        return [_shown(found[first], one), *map(_shown, others)]
    answers: list[Answer] = []
    for n, lead in enumerate(found):
        answer = computed.get(n)
        answers.append(_shown(lead, answer))
        if answer and answer.format and "?" in lead.address:  # a tool's
            answers.append(_shown(with_format(lead, answer.format)))
    return answers


def _shown(lead: Lead, answer: answering.Answer | None = None) -> Answer:
    said = answer or lead
    return {"title": said.title, "said": said.said, "address": lead.address}


def _of_model(one: Named) -> Answer:
    """The answer to a question that only names a model."""
    preset = presets.preset(one.slug)
    if preset.config is None:
        return {"title": one.title, "said": "Its maker has not disclosed its sizes.", "address": one.page}
    counts = presets.model(one.slug).counts
    active = f", {counts.active:,} of them active per token" if counts.active < counts.total else ""
    return {"title": one.title, "said": f"{counts.total:,} parameters{active}.", "address": one.page}


def _pages(question: str) -> list[Answer]:
    """The pages and sections whose names the question contains, longest name first."""
    tokens = tokens_of(question)
    keys = {
        joined(tokens[i:j]) for i in range(len(tokens)) for j in range(i + 1, min(i + MOST_TOKENS, len(tokens)) + 1)
    }
    found: list[tuple[int, Answer]] = []
    for (page, anchor), names in asked.all_pages().items():
        held = [name for name in names if key_of(name) in keys]
        if held:
            name = max(held, key=len)
            address = _address(page) + (f"#{anchor}" if anchor else "")
            found.append((len(name), {"title": name, "said": "A page of the site.", "address": address}))
    found.sort(key=lambda one: -one[0])
    return [answer for _, answer in found[:MOST_PAGES]]


def _computed(asked_for: Asked) -> answering.Answer:
    """The answer's title and sentence."""
    model = presets.model(asked_for.slug)
    if asked_for.changes:
        model = changed(model, {key: value for _, key, value in asked_for.changes})
    on = asked_for.on or (answering.USUAL_MACHINE if asked_for.what in answering.OF_TIME else None)
    machine = named(on, accelerators()) if on else None
    return answering.answered(asked_for, model.counts, model.config, model.longest_context[0], machine, WRITING)
