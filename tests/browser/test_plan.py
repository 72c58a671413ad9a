"""Planning a deployment, in a browser: engines, several devices, a host's memory, drafts and training, as Python counts
them, to the last integer; kept in the address, undone, refused in one line.
"""

import gzip
import json
import random
from dataclasses import replace
from urllib.parse import parse_qs, quote, urljoin, urlsplit

import pytest
from chromium import accessibility, ignored, overflow
from serving import own_assets

from macros.api import parallel
from macros.api.bills import bill as bill_of
from macros.api.bills import prices_of
from macros.api.engines import engine_fit
from macros.api.fits import fits, memory
from macros.api.offloading import offload, offloaded
from macros.api.sharing import speculated, speculative
from macros.api.training import plan, train
from macros.catalogue import presets
from macros.counting import engines, training_plan
from macros.counting.accelerators import accelerators
from macros.counting.adapters import BIASES
from macros.counting.asked import share, whole
from macros.counting.bill import Request, bill
from macros.counting.conditions import Conditions
from macros.counting.costs import of as costs_of
from macros.counting.formats import CACHE_BYTES, WEIGHTS
from macros.counting.prefix import shared_prefix
from macros.counting.runs import left_out
from macros.counting.training_plan import Narrowing
from macros.counting.training_setup import GRADIENTS, METHODS, OPTIMIZERS, RECOMPUTED
from macros.engine.errors import Problem
from macros.views.kit import rounding

pytestmark = pytest.mark.browser

MOST_BYTES = 250_000  # of scripts and data of the first load, compressed, besides what every page has
LISTED = (
    *("problems.mjs", "conditions.mjs", "architectures.mjs", "model.mjs", "tools.mjs", "tools/address.mjs"),
    *("tools/figures.mjs", "tools/kit.mjs", "tools/tool.mjs", "tools/view.mjs", "vendor/preact.mjs", "tools/cells.mjs"),
    "tools/words.mjs",
    *("tools/plan.mjs", "tools/plan/view.mjs", "tools/runs.mjs", "engine/runs.mjs"),
    *("engine/python.mjs", "engine/base.mjs"),
    *("engine/conditions.mjs", "engine/engine.mjs", "engine/counting.mjs", "engine/data.json", "engine/plan.json"),
)
TASKS = {  # what each loads besides
    "engine": ("engines", "vllm", "llama_cpp", "serving", "peak"),
    "devices": ("spreads", "links", "prefix"),
    "offload": ("offload",),
    "speculative": ("speculative",),
    "bill": ("bill",),
    "training": (
        *("training_plan", "training_compute", "training_setup", "adapters"),
        *("adapter_choice", "module_tree", "weightless", "patterns"),
    ),
}
MODELS = [slug for slug in presets.paths() if presets.preset(slug).config is not None]
MACHINES = ["24GB", "80GB", "12GB,300GB/s", "64GB,2xDDR5-5600", "24GB,1008GB/s,165TFLOPS,link:64GB/s"]
MACHINES += ["h100,94GB", *accelerators()]
CONTEXTS = (1, 2, 129, 4097, 8192, 32_768, 131_072)


@pytest.fixture
def tool(open_page, site):
    """Open the tool; its answer stands."""

    def open_(asked="", **options):
        page = open_page(urljoin(site, f"tools/plan/{asked}"), **options)
        if options.get("java_script_enabled", True):
            page.locator(".ep-answer strong").first.wait_for()
        return page

    return open_


def answer(page):
    return " ".join(page.locator(".ep-answer").inner_text().split())


def asked(page):
    return {key: value for key, [value] in parse_qs(urlsplit(page.url).query).items()}


def exact(page, name, column, table=0):
    """The exact number of a cell, by the words of its row and its heading."""
    place = page.locator(".ep-tool table").nth(table)
    heads = [" ".join(text.split()) for text in place.locator("thead th").all_inner_texts()]
    row = place.get_by_role("row").filter(has=page.get_by_role("rowheader", name=name, exact=True)).first
    return row.locator("th, td").nth(heads.index(column)).locator("[title]").get_attribute("title")


# --- the same as Python -----------------------------------------------------------------------------------------------

ANSWERS = """
async ([task, cases]) => {
  const source = [...document.scripts].find(s => s.src.includes("/tools.mjs")).src
  const { isProblem, machine, py } = await import(new URL("model.mjs", source))
  const { loaded } = await import(new URL("tools/plan.mjs", source))
  const { givenOf } = await import(new URL("tools/kit.mjs", source))
  const tasks = await import(new URL(`tools/plan/${task}.mjs`, source))
  const site = await loaded()
  for (const name of ["gguf", "llama_server", "vllm_server"]) await import(new URL(`engine/${name}.mjs`, source))
  const text = x => (x === null || x === undefined ? null : py.str(x))
  const terms = dict => py.entries(dict).map(([name, n]) => [name, text(n)])
  const limits = l => l && [l.compute, l.memory, l.links, l.limited_by].map(text)
  const step = ({ transfers, limits: l }) => [
    [...transfers].map(t => [t.kind, t.after, t.times, t.among, t.sent, t.total].map(text)), limits(l),
  ]
  const said = {
    async engine(model, given, on, { engine }) {
      const { serving, context, batch } = await tasks.counted(model, given, on, engine)
      const known = [...serving.terms].map(t => [
        t.key, t.name, text(t.least), text(t.most), text(t.how), t.rule, t.source, text(t.unused),
      ])
      const { pool } = serving
      const left = pool && [...pool.room, ...pool.tokens, ...pool.texts].map(text)
      return [known, terms(serving.settings), left, text(serving.limit(on.memory_bytes)), text(context), text(batch)]
    },
    devices(model, given, on, { dispatch, prefix }) {
      const saved = prefix && tasks.sharing(model, given, BigInt(prefix))
      return [
        saved && [saved.cache_bytes, saved.shared_cache_bytes, saved.flops, saved.shared_flops].map(text),
        tasks.counted(model, given, dispatch).map(one => [
          one.split.said, terms(one.terms), text(one.total), step(one.decode), step(one.prefill),
        ]),
      ]
    },
    offload(model, given, on, { host, layers, experts }) {
      const beside = machine(host, site.accelerators), whole = n => (n === null ? null : BigInt(n))
      const { offload, there } = tasks.counted(model, given, on, whole(layers), whole(experts))
      const times = tasks.timesOf(there, on, beside).map(text)
      const read = [there.device_read, there.host_read, offload.layers, offload.expert_layers].map(text)
      return [terms(there.device), terms(there.host), read, there.fits(on.memory_bytes, beside.memory_bytes), times]
    },
    async speculative(model, given, on, { draft, acceptance, tokens }) {
      const proposes = draft && (await site.modelOf(draft))
      const s = tasks.counted(model, proposes, given, acceptance, tokens && BigInt(tokens))
      return [s.drafted, s.tokens, s.draft_seconds, s.verify.seconds, s.seconds_per_token, s.plain.seconds, s.speedup]
        .map(text)
    },
    bill(model, given, on, state) {
      const { watts, lines } = tasks.counted(model, given, state)
      return [text(watts), lines.map(l =>
        [l.name, l.tokens, l.compute_seconds, l.memory_seconds, l.seconds, l.joules, l.money].map(text)
      )]
    },
    training(model, given, on, state) {
      const planned = tasks.counted(model, state), run = tasks.runOf(planned, state, on, site.watts)
      const { adapters: a } = planned
      return [
        terms(planned.terms), text(planned.trainable), text(planned.flops_per_token), planned.setup.said,
        text(planned.largest_micro_batch(on.memory_bytes)),
        a && [
          [...a.targets], [...a.modules].map(one => [one.module.name, text(one.count)]), text(a.biases), text(a.saved),
        ],
        run && [run.flops, run.seconds, run.device_hours, run.joules].map(text),
      ]
    },
  }
  const answers = []
  for (const one of cases) {
    try {
      const on = machine(one.on, site.accelerators)
      answers.push(await said[task](await site.modelOf(one.model), givenOf(one, on), on, one))
    } catch (error) {
      answers.push(isProblem(error) ? error.what : error.stack)
    }
  }
  return answers
}
"""


def drawn(rng, **more):
    """Conditions as the page has them: texts."""
    return {
        "model": rng.choice(MODELS),
        "on": rng.choice(MACHINES),
        "context": str(rng.choice(CONTEXTS)),
        "batch": str(rng.choice((1, 1, 3, 64))),
        "weights": rng.choice(["published", "published", *WEIGHTS]),
        "cache": rng.choice(["bfloat16", *CACHE_BYTES]),
        "devices": "1",
        **more,
    }


def given_of(case):
    on = memory(case["on"])
    numbers = int(case["context"]), int(case["batch"])
    given = Conditions(*numbers, case["weights"], case["cache"], int(case["devices"]))
    return presets.model(case["model"]), replace(given, accelerator=on.accelerator), on


def text(value):
    return None if value is None else str(value)


def terms(sizes):
    return [[name, str(n)] for name, n in sizes.items()]


def of_engine(case):
    model, given, on = given_of(case)
    vendor = on.accelerator.vendor if on.accelerator else ""
    fit = engine_fit(model, given, case["engine"], on.name, on.size, vendor)
    known = [[t.key, t.name, str(t.least), str(t.most), str(t.how), t.rule, t.source, str(t.unused)] for t in fit.terms]
    pool = fit.pool and [str(n) for n in (*fit.pool.room, *fit.pool.tokens, *fit.pool.texts)]
    most = text(fit.longest_context), text(fit.largest_batch)
    return [known, terms(fit.serving.settings), pool, str(fit.limit), *most]


def of_devices(case):
    model, given, _ = given_of(case)
    prefix = case["prefix"]
    if prefix:
        whole("prefix", prefix, given.tokens - 1)
        saved = shared_prefix(costs_of(model.counts), prefix, given)
        prefix = [str(n) for n in (saved.cache_bytes, saved.shared_cache_bytes, saved.flops, saved.shared_flops)]

    def step(one):
        sent = [list(map(str, (t.kind, t.after, t.times, t.among, t.sent, t.total))) for t in one.transfers]
        return [sent, one.limits and [text(getattr(one.limits, name)) for name in LIMITS]]

    found = parallel.every_spread(model, given, case["dispatch"])
    return [
        prefix,
        [[s.split.said, terms(s.terms), str(s.total), step(s.decode), step(s.prefill)] for s in found],
    ]


LIMITS = "compute", "memory", "links", "limited_by"


def of_offload(case):
    model, given, on = given_of(case)
    there = offloaded(model, given, on, memory(case["host"]), case["layers"], case["experts"])
    placed, where = there.placed, there.offload
    numbers = placed.device_read, placed.host_read, where.layers, where.expert_layers
    times = [text(there.computed_seconds), text(there.moved_seconds)]
    return [terms(placed.device), terms(placed.host), list(map(str, numbers)), there.is_enough, times]


def of_speculative(case):
    model, given, _ = given_of(case)
    draft = case["draft"] and presets.model(case["draft"])
    s = speculated(model, draft, given, share("acceptance", case["acceptance"], may_be_zero=True), case["tokens"]).found
    numbers = s.drafted, s.tokens, s.draft_seconds, s.verify.seconds, s.seconds_per_token, s.plain.seconds, s.speedup
    return list(map(str, numbers))


def of_training(case):
    model, _, on = given_of(case)
    is_full = case["method"] == "full"
    numbers = {name: int(case[name]) for name in ("devices", "sequence", "micro_batch", "tensor", "pipeline", "expert")}
    same = {name: case[name] for name in ("method", "optimizer", "zero", "recompute", "gradients")}
    of_adapters = {
        "rank": None if is_full or not case["rank"] else int(case["rank"]),
        "target_modules": None if is_full else case["target_modules"] or None,
        "bias": None if is_full else case["bias"],
        "modules_to_save": None if is_full else case["modules_to_save"] or None,
    }
    yes = {"sequence_parallel": case["sequence_parallel"] == "yes", "no_master_weights": case["master_weights"] == "no"}
    options = type("Options", (), {**numbers, **same, **of_adapters, **yes})
    tokens = training_plan.amount_of_tokens(case["tokens"]) if case["tokens"] else None
    watts = int(case["watts"]) if case["watts"] else None
    setup, adapter = training_plan.asked(options)
    narrowing = Narrowing(*[None if is_full else case[name] or None for name in Narrowing._fields])
    adapter = training_plan.narrowed(adapter, narrowing)
    t = plan(model, setup, adapter, on, case["on"], tokens, float(case["utilization"]), watts)
    a, run = t.adapters, t.run
    return [
        terms(t.terms),
        str(t.trainable),
        str(t.flops_per_token),
        setup.said,
        text(t.largest_micro_batch),
        a and [list(a.targets), [[m.module.name, str(m.count)] for m in a.modules], str(a.biases), str(a.saved)],
        run and [text(n) for n in (run.flops, run.seconds, run.device_hours, run.joules)],
    ]


def of_bill(case):
    model, given, _ = given_of(case)
    request = Request(int(case["input"]), int(case["output"]), int(case["cached"] or 0), given.batch)
    prices = prices_of(*(case[name] or None for name in ("price_per_hour", "purchase", "years", "electricity")))
    costs_of(model.counts).devices.check_split(given)
    found = bill(costs_of(model.counts), given, request, share("utilization", case["utilization"]), prices)
    return [
        text(found.watts),
        [
            [l.name, *map(text, (l.tokens, l.compute_seconds, l.memory_seconds, l.seconds, l.joules, l.money))]
            for l in found.lines
        ],
    ]


def bill_cases(rng):
    able = [name for name in MACHINES if memory(name).accelerator]
    for _ in range(60):
        rented = ("", "", ""), ("1.99", "", ""), ("", "700", "4"), ("", "30000", "2.5"), ("", "", "")
        wrong = ("1.99", "9", "1"), ("", "9", ""), ("x", "", ""), ("1.2.3", "", "")
        per_hour, purchase, years = rng.choice(rented * 3 + wrong)
        yield drawn(
            rng,
            on=rng.choice((*able, "24GB")),
            devices=str(rng.choice((1, 1, 1, 2, 8))),
            input=str(rng.choice((1, 1000, 4097))),
            cached=str(rng.choice(("", "", 1, 3000))),
            output=str(rng.choice((1, 1000))),
            utilization=rng.choice(("1", "1", "0.4", "0.123", "0.5", "2")),
            price_per_hour=per_hour,
            purchase=purchase,
            years=years,
            electricity=rng.choice(("", "", "0.3", "0.1", "0.25", "0")),
        )


def engine_cases(rng):
    for _ in range(60):
        yield drawn(rng, engine=rng.choice(engines.names()), cache=rng.choice(("bfloat16", "bfloat16", "fp8", "q8_0")))


def devices_cases(rng):
    for _ in range(60):
        devices, prefix = str(rng.choice((1, 2, 2, 4, 4, 8, 8, 16, 6))), rng.choice((None, None, 1, 100, 4000))
        yield drawn(rng, devices=devices, dispatch=rng.choice(("bfloat16", "fp8")), prefix=prefix)


def offload_cases(rng):
    hosts = ("64GB,2xDDR5-5600", "96GB,2xDDR5-5600,link:64GB/s", "128GB", "h100")
    for _ in range(60):
        layers, experts = rng.choice(((None, None), (None, None), (0, None), (7, None), (20, 3), (None, 5), (999, 1)))
        yield drawn(rng, host=rng.choice(hosts), layers=layers, experts=experts)


def speculative_cases(rng):
    able = [name for name in MACHINES if memory(name).accelerator]
    for _ in range(40):
        yield drawn(
            rng,
            on=rng.choice(able),
            devices=str(rng.choice((1, 1, 2, 8))),
            draft=rng.choice((None, *rng.sample(MODELS, 3))),
            acceptance=rng.choice(("0", "0.5", ".75", "0.8", "1", "0.123456")),
            tokens=rng.choice((None, None, 1, 4, 64)),
        )


def training_cases(rng):
    for _ in range(80):
        method = rng.choice(["full", *METHODS])
        degrees = ("1", "1", "2", "4") if method == "full" else ("1",)
        yield drawn(
            rng,
            devices=str(rng.choice((8, 8, 16, 64))),
            method=method,
            rank=rng.choice(("", "1", "16", "64")),
            target_modules=rng.choice(("", "all-linear", "all-linear", "q_proj,v_proj", r".*\.[qv]_proj", "zzz")),
            target_parameters=rng.choice(("", "", "", "experts.gate_up_proj", "down_proj")),
            exclude_modules=rng.choice(("", "", "v_proj", r"^(?!.*layers\.\d\.).*", "out_proj")),
            layers_to_transform=rng.choice(("", "", "", "0-3", "1,2")),
            layers_pattern=rng.choice(("", "", "", "layers")),
            rank_pattern=rng.choice(("", "", "q_proj=32", r".*\.1\..*=2")),
            alpha_pattern=rng.choice(("", "", "zzz=32")),
            bias=rng.choice(["none", "none", *BIASES]),
            modules_to_save=rng.choice(("", "", "", "", "lm_head")),
            optimizer=rng.choice(list(OPTIMIZERS)),
            zero=rng.choice(list(training_plan.ZERO)),
            tensor=rng.choice(degrees),
            pipeline=rng.choice(degrees[:3]),
            expert=rng.choice(degrees[:3]),
            sequence_parallel=rng.choice(("no", "yes")),
            recompute=rng.choice(list(RECOMPUTED)),
            gradients=rng.choice(list(GRADIENTS)),
            master_weights=rng.choice(("yes", "no")),
            sequence=str(rng.choice((1, 129, 4096))),
            micro_batch=str(rng.choice((1, 2, 7))),
            tokens=rng.choice(("", "15T", "1.5B", "1000000")),
            utilization=rng.choice(("0.4", "1", "0.33")),
            watts=rng.choice(("", "700")),
        )


COUNTED = {
    "engine": (engine_cases, of_engine),
    "devices": (devices_cases, of_devices),
    "offload": (offload_cases, of_offload),
    "speculative": (speculative_cases, of_speculative),
    "bill": (bill_cases, of_bill),
    "training": (training_cases, of_training),
}


@pytest.mark.share(5)
@pytest.mark.parametrize("task", COUNTED)
@pytest.mark.timeout(600)
def test_the_browser_plans_what_python_plans(tool, task):
    """Every number of an answer, of many models under drawn conditions; what is refused, in the same words."""
    draw, count = COUNTED[task]
    cases = list(draw(random.Random(task)))
    here = tool().evaluate(ANSWERS, [task, cases])
    there = []
    for case in cases:
        try:
            there.append(json.loads(json.dumps(count(case))))
        except Problem as problem:
            there.append(problem.what)
    wrong = [pair for pair in zip(here, there, cases, strict=True) if pair[0] != pair[1]]
    assert wrong == [], f"{len(wrong)} of {len(cases)}: {wrong[0]}"
    assert sum(not isinstance(answer, str) for answer in there) > len(there) / 4


# --- the page ---------------------------------------------------------------------------------------------------------


def test_an_engine_has_its_terms_with_how_each_is_known(tool):
    model = presets.model("llama3.1-8b")
    on = memory("rtx-4090")
    fit = engine_fit(model, Conditions(8192, accelerator=on.accelerator), "vllm", on.name, on.size, "NVIDIA")
    page = tool("?task=engine&model=llama3.1-8b&on=rtx-4090&engine=vllm&context=8192")
    assert f"fits on {on.name} with vLLM" in answer(page)
    assert f"certain to fit is {fit.longest_context:,} tokens" in answer(page)
    for term in fit.terms:
        row = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name=term.name, exact=True))
        assert term.how.value in row.inner_text()
        wanted = f"{term.least:,}" if term.least == term.most else f"{term.least:,} to {term.most:,}"
        assert exact(page, term.name, "Memory") == f"{wanted} bytes"
    page.locator("select[name=engine]").select_option("llama.cpp")
    page.get_by_role("rowheader", name="KV buffer").wait_for()
    assert asked(page)["engine"] == "llama.cpp"


def test_a_task_is_chosen_kept_and_undone(tool):
    page = tool()
    assert page.get_by_role("button", name="Inference engine").get_attribute("aria-pressed") == "true"
    page.get_by_role("button", name="Several devices").click()
    page.locator(".ep-answer").get_by_text("splits fit").wait_for()
    assert asked(page)["task"] == "devices" and page.get_by_label("Devices", exact=True).input_value() == "8"
    page.get_by_label("Devices", exact=True).fill("4")
    page.locator(".ep-answer").get_by_text("on 4 ×").wait_for()
    model = presets.model(asked(page)["model"])
    on = memory("h100")
    given = Conditions(8192, 16, devices=4, accelerator=on.accelerator)
    found = parallel.every_spread(model, given)
    assert page.locator(".ep-tool table").first.locator("tbody th").all_inner_texts() == [
        one.split.letters for one in found
    ]
    assert exact(page, found[0].split.letters, "Total") == f"{found[0].total:,} bytes"
    page.get_by_role("link", name=found[1].split.letters, exact=True).click()
    page.get_by_text(f"Messages of a decode step with {found[1].split.letters}").first.wait_for()
    again = tool(f"?{urlsplit(page.url).query}")
    assert answer(again) == answer(page)


def test_layers_or_experts_are_on_the_host(tool):
    there = offload("gpt-oss-120b", "rtx-4090", "96GB,2xDDR5-5600,link:64GB/s", context=8192)
    page = tool("?task=offload")
    assert there.what in answer(page) and "fits on GeForce RTX 4090" in answer(page)
    assert exact(page, "Weights", "On the host") == f"{there.placed.host['weights']:,} bytes"
    page.locator("input[name=gpu_layers]").fill("999")
    page.locator(".ep-problem:not([hidden])").get_by_text("gpu_layers = 999: the model has 36 layers").wait_for()


def test_a_draft_has_its_bound(tool):
    there = speculative("llama3.3-70b", "llama3.2-1b", "h200", context=8192)
    page = tool("?task=speculative")
    assert f"{there.found.drafted} draft tokens" in answer(page)
    assert f"{there.speedup:.3g} times as fast" in answer(page)


def test_a_bill_stands_at_the_bound_at_a_share_and_at_a_published_runs(tool):
    """The share is the page's; an engine holds no more requests than by the command line."""
    run = bill_of("llama3.1-8b", "h100", batch=1024, engine="vllm")
    [published] = run.to_dict()["published"]
    page = tool("?task=bill&model=llama3.1-8b&batch=1024&utilization=0.5&engine=vllm")
    most = run.found.request.batch
    assert f"with {most} at once. vLLM is certain to hold no more than these, not 1,024." in answer(page)
    said = page.locator(".ep-tool table").first.inner_text()
    share = f"{round(100 * published['share_of_bound'])}% of it, as the run"
    assert all(said.count(at) == 2 for at in ("the bound", "0.5 of it", share))
    assert "vLLM 0.11.1" in page.locator(".ep-tool table").nth(1).inner_text()


def test_formats_that_no_engine_runs_there_are_not_offered_and_are_said(tool):
    page = tool("?task=devices&model=deepseek-v3&on=v100&devices=8")
    assert left_out("fp8", accelerators()["v100"]) in answer(page)
    offered = page.get_by_label("Weights").locator("option")
    names = offered.all_inner_texts()
    assert "Q2_K" in names and not {"fp8", "nvfp4"} & {*names}
    page = tool("?task=devices&model=llama3-8b&on=tpu-v5e&devices=1&weights=Q2_K")
    names = page.get_by_label("Weights").locator("option").all_inner_texts()
    assert "Q2_K, not run there" in names and "Q3_K_M" not in names and "No engine runs Q2_K on TPU v5e" in answer(page)


def test_an_engines_answer_adds_the_best_format_that_it_serves_there(tool):
    """By the engine's own bound; so do the splits, by the memory alone."""
    model, there = presets.model("llama3.3-70b"), memory("h100")
    given = Conditions(8192, accelerator=there.accelerator)
    served = engine_fit(model, given, "vllm", there.name, there.size, "NVIDIA")
    best = served.advice.rpartition(". ")[2]
    assert best.startswith("int4 fits, with up to ")
    page = tool("?task=engine&model=llama3.3-70b&engine=vllm&on=h100&context=8192")
    assert best in answer(page)
    for engine, options in (("sglang", ""), ("ollama", ""), ("tensorrt-llm", ""), ("vllm", "--max-num-seqs 8")):
        served = fits("llama3.3-70b", "h100", context=8192, engine=engine, options=options)
        (best,) = [one for one in served.deployment.advice if one.endswith(" fits with the same options.")]
        page = tool(f"?task=engine&model=llama3.3-70b&engine={engine}&on=h100&context=8192&options={quote(options)}")
        assert best in answer(page), engine
    page = tool("?task=devices&model=llama3.3-70b&on=rtx-3090&devices=2&context=8192&batch=1")
    assert fits("llama3.3-70b", "rtx-3090", devices=2, context=8192).best in answer(page)


def test_a_model_is_trained_in_full_and_with_adapters(tool):
    page = tool("?task=training&model=llama3.1-8b&on=24GB&devices=1&method=qlora&rank=16&recompute=full&zero=0")
    there = train("llama3.1-8b", "24GB", method="qlora", rank=16, recompute="full")
    assert f"{there.trainable:,} trainable parameters" in answer(page)
    assert exact(page, "Total", "Memory") == f"{there.total:,} bytes"
    assert f"largest micro-batch that fits is {there.largest_micro_batch}" in answer(page)
    page.locator("select[name=method]").select_option("full")
    page.locator(".ep-answer").get_by_text("in full does not fit on 24 GB").wait_for()
    assert page.locator("input[name=rank]").is_hidden() and "rank" in asked(page)


HOSTILE = [
    ("?task=constructor&model=__proto__", "task = 'constructor': no such task"),
    (f"?context={'9' * 20_000}", "context = "),
    ("?engine=toString", "engine = 'toString': no such engine"),
    ("?on=%3Cimg%20src%3Dx%3E", "on = '<img src=x>': neither an accelerator nor a size"),
    ("?task=devices&split=0,0,0", "split = '0,0,0': no split"),
    ("?task=devices&split=3,1,1", "split = '3,1,1': not over 8 devices"),
    ("?task=devices&devices=7", "no split over 7 devices"),
    ("?task=devices&prefix=-1", "prefix = '-1': expected a whole number"),
    ("?task=offload&host=zzz&gpu_layers=1e3", "host = 'zzz': neither an accelerator nor a size"),
    ("?task=speculative&acceptance=2&draft=zzz", "acceptance = '2': expected a share from 0 to 1"),
    ("?task=training&tokens=many&utilization=0", "tokens = 'many' is not a number of tokens"),
    ("?task=training&method=lora&target_modules=zzz", "target modules 'zzz': no module that is left"),
]


@pytest.mark.share(3)
@pytest.mark.parametrize("given, said", HOSTILE)
def test_what_an_address_says_and_cannot_be_is_said(tool, given, said):
    page = tool(given)
    assert said in ignored(page)
    assert page.locator(".ep-problem:not([hidden])").count() == 1 and page.locator(".ep-tool table").count()


def test_without_scripts_an_example_of_each_task_stands(tool):
    page = tool(java_script_enabled=False)
    assert page.locator(".ep-tool table").count() >= 5
    assert parallel.every_spread(presets.model("llama3.3-70b"), Conditions(8192, 16, devices=8))[0].split.said
    total = sum(offload("gpt-oss-120b", "rtx-4090", "96GB,2xDDR5-5600,link:64GB/s", context=8192).placed.host.values())
    assert rounding.decimal_bytes(total) in page.locator(".ep-tool").inner_text()


@pytest.mark.share(3)
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("width", [390, 1280])
def test_on_a_phone_and_for_everybody(tool, task, width):
    page = tool(f"?task={task}&method=lora", viewport={"width": width, "height": 900})
    assert not overflow(page)
    scrolls = "() => [...document.querySelectorAll('.ep-stacks .ep-scroll')].some(e => e.scrollWidth > e.clientWidth)"
    assert page.locator(".ep-stacks table").count() and not page.evaluate(scrolls)
    assert not accessibility(page)


def test_the_first_load_is_light_and_a_task_brings_its_own(tool, site_folder):
    assets = own_assets(site_folder)
    sizes = {path.relative_to(assets).as_posix(): path for path in assets.rglob("*") if path.is_file()}
    weigh = {name: len(gzip.compress(path.read_bytes())) for name, path in sizes.items() if name in LISTED}
    assert set(weigh) == set(LISTED)
    page = tool("?task=offload")
    loaded = "() => performance.getEntriesByType('resource').map(e => new URL(e.name).pathname)"
    asks = page.evaluate(loaded)
    others = {"served.json", *(name for task, names in TASKS.items() if task != "offload" for name in names)}
    assert not [path for path in asks if path.rpartition("/")[2].removesuffix(".mjs") in others]
    for task, names in TASKS.items():
        own = [f"tools/plan/{task}.mjs", "tools/plan/fields.mjs", *(f"engine/{name}.mjs" for name in names)]
        more = sum(len(gzip.compress((assets / name).read_bytes())) for name in own)
        assert sum(weigh.values()) + more <= MOST_BYTES, (task, weigh, more)
