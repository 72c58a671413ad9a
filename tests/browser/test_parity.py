"""The browser's numbers and Python's, to the last digit: the engine and the counting, compiled, in Chromium."""

import json
import shutil
from pathlib import Path

import pytest
from conftest import served, until
from random_models import cases

from macros.browser.bundle import files
from macros.counting.accelerators import accelerators

pytestmark = pytest.mark.browser

ASSETS = Path(__file__).parent.parent.parent / "docs" / "assets"

CHECK = """
import { accelerator, conditions, FIGURES, isProblem, load, model, py } from "./model.mjs"
const plain = dict => Object.fromEntries(py.entries(dict))
const inNumbers = (_, x) => (typeof x === "bigint" ? Number(x) : x instanceof py.Dict ? plain(x) : x)
globalThis.check = async (cases, machines) => {
  const known = py.parse(machines), wrong = []
  let counts
  for (const one of py.parse(cases)) {
    const raw = one.read("raw")
    const same = (what, here, there) => {
      const keys = JSON.stringify(raw, inNumbers)
      if (here !== there) wrong.push(`${one.read("slug")}, ${what}: ${here} and not ${there}: ${keys}`)
    }
    try {
      await load(raw.read("model_type"))
      if (one.read("is_another")) counts = undefined
      if (!counts) ({ counts } = model(raw))
      same("problem", null, one.read("problem", null))
      if (one.has("problem")) continue
      const machine = accelerator(plain(known.read(one.read("accelerator"))))
      const given = conditions({ ...plain(one.read("given")), accelerator: machine })
      for (const [name, there] of py.entries(one.read("figures"))) {
        const here = FIGURES.read(name).of(counts, given)
        same(name, here === null ? null : py.str(here), there)
      }
      const weights = [...counts.trace.weights.map.values()].map(([, weight]) => weight)
      const shapes = weights.map(w => [w.shape.map(d => py.int(d)).join("x"), py.str(w.count.expr)])
      same("shapes", JSON.stringify(shapes), JSON.stringify(one.read("shapes")))
    } catch (error) {
      const here = isProblem(error) ? error.what ?? "ShapeError" : error?.$class?.__name__ ?? error.stack
      same("problem", here, one.read("problem", null))
    }
  }
  return wrong
}
globalThis.ready = true
"""


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    """A folder with the compiled engine and a page that compares."""
    folder = tmp_path_factory.mktemp("engine")
    shutil.copy(ASSETS / "model.mjs", folder)
    (folder / "engine").mkdir()
    for name, text in files().items():
        (folder / "engine" / name).write_text(text, "utf-8")
    (folder / "check.mjs").write_text(CHECK, "utf-8")
    (folder / "index.html").write_text('<!doctype html><script type="module" src="check.mjs"></script>', "utf-8")
    with served(folder) as address:
        yield address


def wrong(open_page, engine, number, seed, each=1):
    page = open_page(engine)
    until(page, "globalThis.ready")
    machines = {
        slug: dict(
            name=a.name,
            vendor=a.vendor,
            peak_flops=a.peak_flops,
            bytes_per_second=a.bytes_per_second,
            memory_bytes=a.memory_bytes,
            source=a.source,
        )
        for slug, a in accelerators().items()
    }
    given = cases(number, seed, each)
    counted = sum("figures" in case for case in given)
    assert counted > number / 3, f"only {counted} of {number} models can be"
    found = []
    for i in range(0, number, 500):
        found += page.evaluate(
            "([cases, machines]) => check(cases, machines)",
            [json.dumps(given[i : i + 500], default=str), json.dumps(machines)],
        )
    return found


def test_the_browser_counts_what_python_counts(open_page, engine):
    assert not wrong(open_page, engine, 200, seed=13)


@pytest.mark.slow("ten thousand counts, each made twice")
@pytest.mark.timeout(3600)
def test_the_browser_counts_ten_thousand_times_what_python_counts(open_page, engine):
    """Each model under four conditions."""
    assert not wrong(open_page, engine, 10_000, seed=31, each=4)
