// Two to four models of the site side by side; the engine computes every number.

import { M } from "../engine/base.mjs"
import { paced } from "../conditions.mjs"
import "../engine/differing.mjs"
import { categories, conditions, fieldsOf, figure, FIGURES, isProblem, loadFormats, machine, py } from "../model.mjs"
import {
  about,
  accepted,
  conditionFields,
  conditionRules,
  count,
  data,
  exact,
  finder,
  grouped,
  machineFields,
  make,
  modelOf,
  modelsByFamily,
  one,
  oneListed,
  pause,
  put,
  refusals,
  replace,
  said,
  show,
  steps,
  TITLES,
  upper,
  withWindows,
} from "./kit.mjs"

const { side, differs: changes } = M["counting.differing"]
/**
 * Whether a hyperparameter changes something from one model to another.
 * @param {string} field
 * @param {Engine.Model[]} models
 */
const differs = (field, models) =>
  changes(
    field,
    models.map(m => (m.sides ??= side(m.config, m.counts.trace))),
  )

const MOST = 4
/** @type {Record<string, string>} */
const DEFAULTS = { context: "8192", weights: "published", cache: "bfloat16", on: "h100" }
const SHOWN = [
  "total",
  "active",
  "embedding",
  "non_embedding",
  "weight_bytes",
  "cache_bytes_per_token_uncapped",
  "cache_bytes_per_token",
  "cache_bytes",
  "device_bytes",
  "decode_flops",
  "prefill_flops",
  "bytes_moved",
  "decode_seconds",
  "devices_needed",
]
const PARTS = ["Embedding", "Token mixing (attention, recurrence)", "Feed-forward", "Norms", "Head"]

export async function mount(/** @type {HTMLElement} */ place) {
  const { models, accelerators } = await data()
  await pause()
  const first = (place.dataset.models ?? "").split(",").filter((/** @type {string} */ slug) => models.has(slug))
  const defaults = { ...DEFAULTS }
  if (!accelerators.has(defaults.on)) defaults.on = [...accelerators.keys()][0]
  const { context, weights, cache, on } = conditionRules(accelerators),
    rules = { context, weights, cache, on }
  const state = { ...defaults },
    remember = steps(place, inAddress, recall)
  const machines = machineFields(accelerators)
  const machineOf = () => machine(state.on, accelerators)
  /** @type {string[]} */
  let chosen = []
  let turn = 0
  const another = () => [...first, ...models.keys()].filter(slug => !chosen.includes(slug)).slice(0, 1)
  const nameOf = (/** @type {string} */ slug) => models.get(slug)?.read("name") ?? slug

  const answer = make("p", { class: "ep-answer", role: "status" }),
    problem = make("p", { class: "ep-problem", role: "alert", hidden: true }),
    refused = refusals(),
    picks = make("div", { class: "ep-row" })
  const ofFigures = make("div"),
    ofParts = make("div"),
    ofSizes = make("div"),
    ofDiagrams = make("div"),
    more = make("div")
  const diagrams = make(
    "details",
    { ontoggle: () => drawDiagrams() },
    make("summary", {}, "Diagrams side by side"),
    ofDiagrams,
  )
  const form = make(
    "form",
    { class: "ep-whatif", onsubmit: (/** @type {Event} */ event) => event.preventDefault() },
    picks,
    make("div", { class: "ep-row" }, conditionFields().context, ...machines.fields),
    refused.line,
    problem,
  )
  const fieldOf = (/** @type {string} */ name) =>
    /** @type {HTMLInputElement | HTMLSelectElement | null} */ (form.elements.namedItem(name))
  form.addEventListener("input", ({ target }) => {
    update()
    remember(target)
  })

  // Reads the address, with a line for each part of it that is invalid.
  async function recall() {
    const given = new URLSearchParams(location.search),
      [values, wrong] = accepted(given, rules, defaults)
    Object.assign(state, values)
    for (const name of Object.keys(rules)) put(fieldOf(name), state[name])
    machines.show(state.on)
    chosen = []
    for (const slug of (given.get("models") ?? "").split(",").filter(Boolean))
      try {
        if (chosen.length < MOST) chosen.push(oneListed("models", slug, models))
        else wrong.push(`models: at most ${MOST} can be compared`)
      } catch (error) {
        wrong.push(said(error))
      }
    while (chosen.length < 2) chosen.push(...another())
    const cannot = await refusal()
    if (cannot) {
      wrong.push(cannot)
      for (const name of ["weights", "cache"]) state[name] = defaults[name]
    }
    pick()
    await update()
    refused.show([...new Set(wrong)])
  }

  function pick() {
    replace(
      picks,
      chosen.map((slug, i) =>
        finder(`Model ${i + 1}`, `model${i}`, modelsByFamily(models), slug, {
          oninput: (/** @type {{ target: HTMLSelectElement }} */ event) => {
            chosen[i] = event.target.value
          },
        }),
      ),
      chosen.length < MOST
        ? make("button", { type: "button", onclick: () => change([...chosen, ...another()]) }, "Add model")
        : null,
      chosen.length > 2
        ? make("button", { type: "button", onclick: () => change(chosen.slice(0, -1)) }, "Remove model")
        : null,
    )
  }
  function change(/** @type {string[]} */ slugs) {
    chosen = slugs
    pick()
    update()
    remember()
  }

  // One line says what is invalid; the figures stay.
  function refuse(/** @type {string} */ what) {
    problem.hidden = false
    problem.textContent = `${what}.${answer.textContent ? " The figures below are unchanged." : ""}`
  }
  // Why a model has no weights or no cache in the chosen formats; null if it has.
  function impossible(/** @type {Engine.Model} */ m) {
    const at = conditions({ context: BigInt(state.context), format: state.weights, dtype: state.cache })
    try {
      for (const name of ["weight_bytes", "cache_bytes"]) figure(m, name, at)
    } catch (error) {
      if (!isProblem(error)) throw error
      return said(error)
    }
    return null
  }
  // The first chosen model with such a problem, and why.
  async function refusal() {
    await loadFormats(state.weights)
    const all = await Promise.all(chosen.map(async slug => modelOf((await about(slug)).keys)))
    const reasons = all.map(impossible),
      first = reasons.findIndex(Boolean)
    return first < 0 ? null : `${nameOf(chosen[first])}: ${reasons[first]}`
  }

  async function update() {
    const mine = ++turn
    refused.show([])
    try {
      for (const [name, rule] of Object.entries(rules)) {
        const { value, validity } = fieldOf(name) ?? { value: state[name] }
        state[name] = rule(validity?.badInput ? "…" : value || defaults[name])
        fieldOf(name)?.removeAttribute("aria-invalid")
      }
    } catch (error) {
      if (!isProblem(error)) throw error
      refuse(said(error))
      fieldOf(said(error).split(" = ")[0])?.setAttribute("aria-invalid", "true")
      return
    }
    const [files] = await Promise.all([Promise.all(chosen.map(about)), loadFormats(state.weights)]),
      all = await Promise.all(files.map(({ keys }) => modelOf(keys))),
      names = chosen.map(nameOf)
    if (mine !== turn) return // a later change is under way
    const cannot = await refusal()
    if (mine !== turn) return
    if (cannot) return refuse(cannot)
    problem.hidden = true
    diagrams.hidden = files.some(file => !file.page)
    const context = BigInt(state.context)
    const formats = all.map(m => m.counts.formats.said(state.weights)),
      isOne = formats.every(f => f === formats[0])
    const weights = isOne ? all[0].counts.formats.phrase(state.weights) : "in the formats of the table"
    const inFormats =
      isOne && formats[0] === "bfloat16" && state.cache === DEFAULTS.cache
        ? "in 16 bits"
        : `(weights ${weights}, KV cache in ${state.cache})`
    const on = machineOf(),
      at = conditions({ context, format: state.weights, dtype: state.cache, accelerator: on.accelerator })
    const head = ["", ...names.map(name => `#${name}`)]
    const times = (/** @type {Engine.Exact} */ a, /** @type {Engine.Exact} */ b) =>
      `× ${py.float(py.Fraction(a, b)).toPrecision(3)}`
    /**
     * @param {(Engine.Exact | null)[]} values
     * @param {string} unit
     * @returns {import("./kit.mjs").Children[]}
     */
    const cells = ([of, ...others], unit) => [
      exact(of, unit),
      ...others.map(v =>
        v === null || of === null || py.eq(v, of) || !py.truth(of)
          ? exact(v, unit)
          : [exact(v, unit), " ", make("span", { class: "ep-range" }, times(v, of))],
      ),
    ]
    /**
     * The cells of a row, marked where they rest on a class default.
     * @param {import("./kit.mjs").Children[]} row
     * @param {"default_figures" | "default_sizes"} names
     * @param {string} name
     */
    const marked = (row, names, name) => {
      const title = "from a class default in transformers"
      return row.map((cell, i) =>
        files[i][names]?.includes(name) ? [cell, " ", make("span", { class: "ep-mark", title }, "§")].flat() : cell,
      )
    }
    // The number of devices, and how the model is split over them.
    const withSplit = (/** @type {import("./kit.mjs").Children} */ cell, /** @type {number} */ i) => {
      const letters = all[i].costs.least_split(at, on.memory_bytes)?.letters
      return letters ? [cell, make("span", { class: "ep-range" }, ` ${letters}`)].flat() : cell
    }
    const rest = paced(8)
    /** @type {Map<string, (Engine.Exact | null)[]>} */
    const counted = new Map()
    for (const name of SHOWN) {
      counted.set(
        name,
        all.map(m => figure(m, name, at)),
      )
      await rest()
    }
    const figures = withWindows(SHOWN, name => counted.get(name) ?? []).map(name => {
      const f = FIGURES.read(name),
        values = counted.get(name) ?? []
      const row = marked(cells(values, f.unit), "default_figures", name)
      return [upper(TITLES[name] ?? f.title), ...(name === "devices_needed" ? row.map(withSplit) : row)]
    })
    figures.push(["Weight format", ...formats])
    const fields = [...new Set(all.flatMap(m => [...fieldsOf(py.type(m.config))].map(f => f.field)))]
    const value = (/** @type {Engine.Model} */ m, /** @type {string} */ name) => {
      const v = m.config[name]
      if (v == null || v instanceof py.Dict || typeof v === "function") return "–"
      if (Array.isArray(v)) return runs(v)
      if (typeof v === "object" || typeof v === "bigint") return grouped(py.int(v))
      return typeof v === "boolean" ? (v ? "yes" : "no") : py.str(v)
    }
    const sizes = fields.flatMap(name => {
      const values = all.map(m => value(m, name)),
        cls = differs(name, all) ? { cls: "ep-differs" } : {}
      const row = Object.assign([name, ...marked(values, "default_sizes", name)], cls)
      return values.some(v => v !== "–") ? [row] : []
    })
    const ofPart = (/** @type {number} */ i) => all.map(m => categories(m)[i])
    const parts = PARTS.map((name, i) => [name, ...cells(ofPart(i), "parameters")])
    await rest()
    if (mine !== turn) return
    const totals = all.map(m => m.counts.total),
      fitting = names.filter((_, i) => !py.gt(figure(all[i], "device_bytes", at) ?? 0n, on.memory_bytes))
    replace(
      answer,
      make("strong", {}, `${names[0]} has ${count(totals[0])} parameters, `),
      names
        .slice(1)
        .map((name, i) => `${name} has ${count(totals[i + 1])} (${times(totals[i + 1], totals[0])})`)
        .join("; "),
      ". ",
      `At ${grouped(context)} tokens of context ${inFormats}, ${fitting.join(" and ") || "none of them"} `,
      `${fitting.length < 2 ? "fits" : "fit"} on ${one(state.on, on.name, accelerators)}.`,
    )
    show(ofFigures, "Figures, with the ratio to the first model", head, figures)
    show(ofParts, "Where the parameters are", head, parts)
    show(ofSizes, "Hyperparameters; differences that have an effect are marked", head, sizes)
    replace(
      more,
      files
        .flatMap(file => [file.caveat, file.defaults])
        .filter(Boolean)
        .map(caveat => make("p", { class: "ep-conventions" }, caveat)),
      make(
        "p",
        {},
        "All about ",
        files.flatMap(({ page }, i) => [
          i ? ", " : "",
          page ? make("a", { href: new URL(page, root) }, names[i]) : names[i],
        ]),
        ".",
      ),
    )
    drawDiagrams()
  }

  function inAddress() {
    const others = Object.entries(state).filter(([k, v]) => v !== DEFAULTS[k])
    return { values: { models: chosen.join(), ...Object.fromEntries(others) } }
  }

  // The diagrams of the models' pages side by side, fetched when they are opened.
  const root = new URL("../../", import.meta.url)
  let drawn = ""
  async function drawDiagrams() {
    if (!diagrams.open || drawn === chosen.join()) return
    drawn = chosen.join()
    const slugs = [...chosen],
      all = await Promise.all(slugs.map(async slug => drawingsOf(new URL((await about(slug)).page ?? "", root))))
    if (drawn !== slugs.join()) return // others are chosen by now
    mark(all)
    const rows = Array.from({ length: Math.max(...all.map(drawings => drawings.length)) }, (_, i) =>
      make(
        "div",
        { class: "ep-beside", role: "group", "aria-label": rowName(all, i) },
        all.map(drawings =>
          drawings[i]
            ? make(
                "figure",
                {
                  class: "ep-figure",
                  "aria-label": drawings[i].name,
                },
                make("figcaption", {}, drawings[i].name),
                drawings[i].svg,
              )
            : make("div"),
        ),
      ),
    )
    replace(ofDiagrams, make("p", {}, "Operations that another model lacks are marked."), rows)
  }

  await recall()
  replace(place, form, answer, ofFigures, ofParts, ofSizes, diagrams, more) // all at once, so that nothing moves
}

/** @typedef {{ name: string, svg: Element }} Drawing */

/**
 * The diagrams of a model's page, each with its name; their links keep their targets.
 * @param {URL} address
 * @returns {Promise<Drawing[]>}
 */
async function drawingsOf(address) {
  const page = new DOMParser().parseFromString(await (await fetch(address)).text(), "text/html")
  return [...page.querySelectorAll("figure.diagram")].flatMap(figure => {
    const svg = figure.querySelector(".ep-canvas > svg")
    if (!svg) return []
    document.adoptNode(svg)
    for (const link of svg.querySelectorAll("a"))
      for (const name of ["href", "xlink:href"]) {
        const to = link.getAttribute(name)
        if (to !== null) link.setAttribute(name, `${new URL(to, address)}`)
      }
    return [{ name: figure.getAttribute("aria-label") ?? "", svg }]
  })
}

// The name of a row of diagrams.
const rowName = (/** @type {Drawing[][]} */ all, /** @type {number} */ i) =>
  all.flatMap(drawings => drawings[i]?.name ?? []).join(", ")

// Marks the operations that some other model lacks, by their titles.
function mark(/** @type {Drawing[][]} */ all) {
  const titled = (/** @type {Element} */ node) =>
      [...node.querySelectorAll("text:not(.ep-small, .ep-term)")].map(text => text.textContent).join(""),
    nodes = (/** @type {Drawing[]} */ drawings) => drawings.flatMap(({ svg }) => [...svg.querySelectorAll(".node")])
  const titles = all.map(drawings => new Set(nodes(drawings).map(titled)))
  all.forEach((drawings, i) =>
    nodes(drawings).forEach(node =>
      node.classList.toggle(
        "ep-differs",
        titles.some((known, j) => j !== i && !known.has(titled(node))),
      ),
    ),
  )
}

// A list by layer, with runs of equal entries written as a count.
function runs(/** @type {unknown[]} */ list) {
  /** @type {{ x: string, n: number }[]} */
  const all = []
  for (const x of list.map(String)) {
    const last = all.at(-1)
    if (last?.x === x) last.n++
    else all.push({ x, n: 1 })
  }
  return all.length > 8
    ? `${list.length} entries, ${new Set(list.map(String)).size} kinds`
    : all.map(({ x, n }) => (n > 1 ? `${n} × ${x}` : x)).join(", ")
}
