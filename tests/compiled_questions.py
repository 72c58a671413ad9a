"""The grammar of questions as a browser runs it, in an engine of its own."""

from __future__ import annotations

import json
import re
from typing import Any

from macros.browser.bundle import OF_RUNTIME_ALONE, RUNTIME, files
from macros.catalogue.question_of_model import Asked, Lead

GRAMMAR, RESOLVER = OF_RUNTIME_ALONE
HEAD = re.compile(r'^import\{py\}from"[^"]*";export\{py\};export const M')


def script() -> str:
    """The runtime, the grammar and the resolver as one script, which defines `py`, `M` and `R`, the resolver's `M`."""
    written = files()
    runtime = written[RUNTIME].replace("export const py", "const py")
    grammar, resolver = (HEAD.sub("const M", written[f"{name}.mjs"]) for name in (GRAMMAR, RESOLVER))
    modules = f"const M = (() => {{ {grammar}\nreturn M }})()\nconst R = (() => {{ {resolver}\nreturn M }})()\n"
    return f"const py = (() => {{ {runtime}\nreturn py }})()\n{modules}"


READ = """
const { Grammar } = M["catalogue.question_table"], { meant } = M["catalogue.question"]
const { leads, note_of } = M["catalogue.question_leads"]
const plain = x => typeof x === "bigint" ? Number(x) : Array.isArray(x) ? x.map(plain) : x
const fields = (one, names) => one && Object.fromEntries(names.map(name => [name, plain(one[name])]))
let grammar
const prepare = (names, records) => { grammar = Grammar(py.parse(names), records) }
function meaningOf(question) {
  grammar.catalog.resolving = null
  try { return meant(question, grammar) } catch { grammar.catalog.resolving = R["catalogue.resolving"].Resolver }
  return meant(question, grammar)
}
function read(question) {
  const meaning = meaningOf(question)
  return {
    leads: leads(meaning, grammar).map(one => ({
      ...fields(one, LEAD), compute: fields(one.compute, ASKED), isComputed: one.compute !== null,
    })),
    note: note_of(meaning),
    corrected: meaning.corrected,
    models: meaning.models.map(one => ({ record: Number(one.record), isSure: one.is_sure })),
    isAbsent: meaning.absent.length > 0,
    isResolved: grammar.catalog.resolving !== null,
  }
}
"""


class Compiled:
    """Reads questions by the compiled grammar."""

    def __init__(self, names: dict[str, Any], records: list[list[str]]) -> None:
        from py_mini_racer import MiniRacer

        self.engine = MiniRacer()
        known = f"const LEAD = {json.dumps(Lead._fields[:-1])}, ASKED = {json.dumps(Asked._fields)}\n"
        self.engine.eval(f"{script()}{known}{READ}; 0")
        self.engine.eval(f"prepare({json.dumps(json.dumps(names))}, {json.dumps(records)}); 0")

    def read(self, question: str) -> dict[str, Any]:
        return json.loads(self.engine.eval(f"JSON.stringify(read({json.dumps(question)}))"))
