"""Engines with their own options, and their logs, in a browser: the same as Python, on Plan and on Read a log."""

import json
import shlex
import sys
from pathlib import Path
from urllib.parse import quote, urljoin

import pytest

sys.path.append(str(Path(__file__).parent.parent / "counting"))

from test_engine_options import rows as options_of_engines
from test_engine_rows import ASKED, answer
from test_logs import LOGGED, PERSONAL, SECRET, read, written
from test_whole_logs import LOGS, lines_of, plain
from test_whole_logs import read as read_whole

from macros.api.logs import parts_of, reading
from macros.cli.arguments import parser
from macros.cli.commands import engine_words
from macros.views.kit import rounding

pytestmark = pytest.mark.browser

LOADED = """
  const source = [...document.scripts].find(s => s.src.includes("/tools.mjs")).src
  const { conditions, load, model, py } = await import(new URL("model.mjs", source))
  const names = ["base", "engines", "deploying", "engine_options", "cards", "vllm_server", "sglang", "llama_devices",
    "ollama", "tensorrt_llm", "gguf", "log_forms", "log_commands", "log_facts", "log_reader", "log_rows", "log_replay",
    "llama_options",
    "vllm_options", "fitting", "runs"]
  for (const name of names) await import(new URL(`engine/${name}.mjs`, source))
  const { M } = await import(new URL("engine/base.mjs", source))
  const { cards_of } = M["counting.cards"], { options, deploy } = M["counting.deploying"]
  const cardsOf = on => (on ? cards_of(on, new py.Dict([]), 1n) : [])
  const given = one => conditions({
    context: 4096n, batch: 1n, format: one.read("weights"), dtype: one.read("cache"), devices: 1n, accelerator: null,
  })
  const counted = async one => {
    await load(one.read("raw").read("model_type"))
    return model(one.read("raw"))
  }
"""
DEPLOYED = f"""async cases => {{ {LOADED}
  const found = []
  for (const one of py.parse(cases)) {{
    const [chosen] = options(one.read("engine"), one.read("words")), tower = one.read("tower")
    const values = tower === null ? chosen : new py.Dict([...py.entries(chosen), ["tower", tower]])
    const {{ costs, counts }} = await counted(one)
    const d = deploy(one.read("engine"), costs, given(one), values, cardsOf(one.read("on")), one.read("version"),
      one.read("longest"), null, counts.formats)
    found.push([
      ...[...d.figures].map(f => `${{f.what}} ${{f.text}}`), ...[...d.places].map(p => `${{p.least}} ${{p.most}}`),
      ...d.command, ...d.advice, ...d.notes,
    ])
  }}
  return found
}}"""
REPLAYED = f"""async cases => {{ {LOADED}
  const found = []
  for (const one of py.parse(cases)) {{
    const [values] = options(one.read("engine"), one.read("words"))
    const {{ costs }} = await counted(one)
    const log = M["counting.log_reader"].read_log(one.read("text"))
    log.quantization = one.read("quantization")
    const r = M["counting.log_replay"].replay(log, costs, given(one),
      cardsOf(one.read("on")), one.read("longest"), values, one.read("version"), one.read("parts"))
    found.push([
      ...[...r.rows].map(x => [x.line, x.what, x.printed, x.counted, x.state.value ?? x.state, x.why].map(String)),
      ...r.advice,
    ])
  }}
  return found
}}"""


def of_call(row):
    """A row as a case for the browser, and what Python says of it."""
    served = answer(row["call"])
    rest, own = engine_words(["fits", *_words(row["call"])])
    options = parser("fits").parse_args(rest)
    deployment = served.deployment
    case = {
        "engine": served.engine,
        "raw": dict(served.model.raw),
        "words": own,
        "on": options.on or "",
        "version": options.engine_version,
        "weights": options.weights or "published",
        "cache": options.cache,
        "longest": served.model.longest_context[0] or 0,
        "tower": served.model.image_tower if served.engine == "sglang" else None,
    }
    there = [
        *(f"{f.what} {f.text}" for f in deployment.figures),
        *(f"{place.least} {place.most}" for place in deployment.places),
        *deployment.command,
        *deployment.advice,
        *deployment.notes,
    ]
    return case, there


def _words(call):
    return shlex.split(call)


SIZES = {
    "a100-80gb": "80GB",
    "h100": "80GB",
    "h200": "141GB",
    "b200": "180GB",
    "mi300x": "192GB",
    "rtx-5090": "32GB",
    "l40s": "48GB",
}
SIZES |= {"rtx-3090": "24GB", "rtx-4090,free:20GB": "24GB,free:20GB", "rtx-4090": "24GB"}


def unlisted(call: str) -> str:
    """A call with the sizes of its machines instead of their names, and the context of the cases here."""
    for name, size in SIZES.items():
        call = call.replace(name, size)
    head, _, rest = call.partition(" --context ")
    return f"{head} {rest.partition(' ')[2]}" if rest else call


def test_every_row_is_answered_as_in_python(open_page, site):
    """And every option at two values. Without listed machines and drafts: the browser is given none here."""
    calls = [row["call"] for row in ASKED if "rtx" not in row["call"]]
    calls += [unlisted(call) for call in options_of_engines().values() if "draft-model" not in call]
    pairs = [of_call({"call": call}) for call in calls if "model-draft" not in call]
    page = open_page(urljoin(site, "tools/plan/"))
    here = page.evaluate(DEPLOYED, json.dumps([case for case, _ in pairs]))
    wrong = [(case["words"], a, b) for (case, there), found in zip(pairs, here) for a, b in zip(there, found) if a != b]
    assert wrong == [], "\n".join(map(str, wrong))
    assert [len(found) for found in here] == [len(there) for _, there in pairs]


def of_log(text, reading, engine, words=(), on="", version=""):
    """A log as a case for the browser, and what Python says of it."""
    case = {
        "engine": engine,
        "raw": dict(reading.model.raw),
        "words": list(words),
        "text": text,
        "on": on,
        "version": version,
        "weights": reading.weights,
        "quantization": reading.log.quantization,  # a mix of the maker's own, by the model's name
        "cache": "bfloat16",
        "longest": reading.model.longest_context[0] or 0,
        "parts": parts_of(reading.model),
    }
    rows = [[str(r.line), r.what, r.printed, r.counted, r.state.value, r.why] for r in reading.replay.rows]
    return case, [*rows, *reading.replay.advice]


def test_every_log_is_read_as_in_python(open_page, site):
    """The rows in their engine's format, and whole logs."""
    pairs = []
    for row in LOGGED:
        engine, text, own, said = written(row)
        if "rtx" not in said.get("--on", ""):
            version = said.get("--engine-version", "")
            pairs.append(of_log(text, read(row), engine, own, said.get("--on") or "", version))
    for log in LOGS:
        lines = [plain(log["engine"], line, i) for i, line in enumerate(lines_of(log))]
        pairs.append(of_log("\n".join(lines), read_whole(log), log["engine"]))
    page = open_page(urljoin(site, "tools/log/"))
    here = page.evaluate(REPLAYED, json.dumps([case for case, _ in pairs]))
    there = [said for _, said in pairs]
    assert [pair for pair in zip(here, there) if pair[0] != pair[1]] == []


def test_a_log_is_pasted(open_page, site):
    """The model is found, each figure is there, and nothing personal is in the answer."""
    page = open_page(urljoin(site, "tools/log/"))
    page.locator("textarea[name=log]").fill(PERSONAL)
    page.locator(".ep-answer strong").wait_for()
    assert "Qwen3 14B: 3 figures: 2 equal" in page.locator(".ep-answer").inner_text()
    table = page.locator(".ep-tool table")
    assert "42,656" in table.inner_text()
    said = page.locator(".ep-tool .ep-stacks").inner_text() + page.locator(".ep-answer").inner_text()
    assert [one for one in SECRET if one in said] == []
    assert cells_by_heading(table) == [
        {"Line": str(r.line), "Figure": r.what, "Printed": r.printed, "Counted": r.counted, "State": r.state.value}
        for r in reading(PERSONAL, "qwen3-14b").replay.rows
    ]
    assert page.locator(".ep-tool > div > .ep-conventions").inner_text() == " ".join(
        reading(PERSONAL, "qwen3-14b").replay.advice
    )
    page.locator("textarea[name=log]").fill("nothing of an engine")
    page.locator(".ep-tool .ep-problem").wait_for()
    assert table.is_visible()  # the last answer stays
    page.locator("textarea[name=log]").fill(PERSONAL.replace("42,656", "43,656"))
    page.get_by_text("1 different").wait_for()
    assert page.locator(".ep-tool .ep-problem").is_hidden()


@pytest.mark.parametrize(
    ("lines", "is_known"),
    [
        (["[model.py:1] Resolved architecture: Qwen3ForCausalLM"], True),
        (["[model.py:1] Resolved architecture: LlamaForCausalLM"], False),
        (["[model.py:1] Resolved architecture: AnotherForCausalLM"], True),  # that vLLM does not list
    ],
)
def test_a_pasted_log_is_of_the_architecture_that_it_names(open_page, site, lines, is_known):
    """As in Python: the model that it names is not taken for one of another architecture."""
    page = open_page(urljoin(site, "tools/log/"))
    page.locator("textarea[name=log]").fill("\n".join([*lines, PERSONAL]))
    said = page.locator(".ep-answer strong" if is_known else ".ep-tool .ep-problem")
    said.wait_for()
    assert ("Qwen3 14B" in said.inner_text()) == is_known


def cells_by_heading(table) -> list[dict[str, str]]:
    """The rows of the table of a log, without what explains them."""
    head, *rows = [row.locator("th, td").all_inner_texts() for row in table.locator("tr").all()]
    return [{name: cell for name, cell in zip(head, row) if name != "Why"} for row in rows]


def test_plan_takes_options_and_several_devices(open_page, site):
    """They are in the link, and the answer names the engine's version."""
    options = "--max-model-len 131072 --kv-cache-dtype fp8"
    page = open_page(
        urljoin(
            site,
            f"tools/plan/?task=engine&model=qwen3-14b&on=rtx-3090&context=8192&cards=2xrtx-3090&options={quote(options)}",
        )
    )
    page.locator(".ep-answer strong").first.wait_for()
    said = " ".join(page.locator(".ep-answer").inner_text().split())
    assert "with vLLM 0.33" in said
    served = answer(f"qwen3-14b --engine vllm --on 2xrtx-3090 {options}")
    assert rounding.decimal_bytes(served.deployment.places[0].most) in said
    page.locator("input[name=options]").fill("--no-such-option")
    page.get_by_text("no option of vLLM that is known here").wait_for()
