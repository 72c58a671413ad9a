// Two to four models side by side, each from the site's own; every number is the engine's.

import { categories, conditions, differs, fieldsOf, figure, FIGURES, py } from "../model.mjs"
import {
  about,
  bytes,
  count,
  data,
  exact,
  grouped,
  labelled,
  make,
  modelOf,
  modelsByFamily,
  remember,
  replace,
  select,
  show,
} from "./kit.mjs"

const MOST = 4
/** @type {Record<string, string>} */
const DEFAULTS = { context: "8192", weights: "bfloat16", cache: "bfloat16", on: "h100" }
const SHOWN = [
  "total",
  "active",
  "embedding",
  "non_embedding",
  "weight_bytes",
  "cache_bytes_per_token",
  "cache_bytes",
  "device_bytes",
  "decode_flops",
  "prefill_flops",
  "bytes_moved",
  "decode_seconds",
  "devices_needed",
]
const PARTS = ["Embedding", "Mixing of tokens", "Feed-forward", "Norms", "Head"]

export async function mount(/** @type {HTMLElement} */ place) {
  const { models, accelerators } = await data()
  const first = (place.dataset.models ?? "").split(",").filter((/** @type {string} */ slug) => models.has(slug))
  const given = new URLSearchParams(location.search)
  const state = { ...DEFAULTS, ...Object.fromEntries([...given].filter(([name]) => Object.hasOwn(DEFAULTS, name))) }
  const machineOf = () => /** @type {Engine.Accelerator} */ (accelerators.get(state.on))
  if (!accelerators.has(state.on)) state.on = [...accelerators.keys()][0]
  let chosen = (given.get("models") ?? "")
    .split(",")
    .filter(slug => models.has(slug))
    .slice(0, MOST)
  const another = () => [...first, ...models.keys()].filter(slug => !chosen.includes(slug)).slice(0, 1)
  while (chosen.length < 2) chosen.push(...another())
  const nameOf = (/** @type {string} */ slug) => models.get(slug)?.read("name") ?? slug

  const answer = make("p", { class: "ep-answer", role: "status" }),
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
    make(
      "div",
      { class: "ep-row" },
      labelled(
        "Context, tokens",
        make("input", { type: "number", name: "context", min: 1, step: 1, value: state.context, inputmode: "numeric" }),
      ),
      labelled(
        "On",
        select(
          "on",
          [...accelerators].map(([slug, a]) => [slug, `${a.name}, ${bytes(a.memory_bytes)}`]),
          state.on,
        ),
      ),
    ),
  )
  form.addEventListener("input", event => {
    const { name, value } = /** @type {HTMLInputElement} */ (event.target)
    if (name in DEFAULTS) state[name] = value
    update()
  })

  function pick() {
    replace(
      picks,
      chosen.map((slug, i) =>
        labelled(
          `Model ${i + 1}`,
          select(`model${i}`, modelsByFamily(models), slug, {
            oninput: (/** @type {{ target: HTMLSelectElement }} */ event) => {
              chosen[i] = event.target.value
            },
          }),
        ),
      ),
      chosen.length < MOST
        ? make("button", { type: "button", onclick: () => change([...chosen, ...another()]) }, "One more")
        : null,
      chosen.length > 2
        ? make("button", { type: "button", onclick: () => change(chosen.slice(0, -1)) }, "One fewer")
        : null,
    )
  }
  function change(/** @type {string[]} */ slugs) {
    chosen = slugs
    pick()
    update()
  }

  async function update() {
    const files = await Promise.all(chosen.map(about)),
      all = await Promise.all(files.map(({ keys }) => modelOf(keys))),
      names = chosen.map(nameOf)
    diagrams.hidden = files.some(file => !file.page)
    const context = /^\d+$/.test(state.context) && BigInt(state.context) > 0n ? BigInt(state.context) : 1n
    const machine = machineOf(),
      at = conditions({ context, format: state.weights, dtype: state.cache, accelerator: machine })
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
     * The cells of a row, each with a mark where it rests on a default of a class; a config of one's own has none.
     * @param {import("./kit.mjs").Children[]} row
     * @param {"default_figures" | "default_sizes"} names
     * @param {string} name
     */
    const marked = (row, names, name) => {
      const title = "from a default of a class in transformers"
      return row.map((cell, i) =>
        files[i][names]?.includes(name) ? [cell, " ", make("span", { class: "ep-mark", title }, "§")].flat() : cell,
      )
    }
    const figures = SHOWN.map(name => {
      const f = FIGURES.read(name),
        values = all.map(m => figure(m, name, at))
      return [f.title[0].toUpperCase() + f.title.slice(1), ...marked(cells(values, f.unit), "default_figures", name)]
    })
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
    const totals = all.map(m => m.counts.total),
      fitting = names.filter((_, i) => !py.gt(figure(all[i], "device_bytes", at) ?? 0n, machine.memory_bytes))
    replace(
      answer,
      make("strong", {}, `${names[0]} has ${count(totals[0])} parameters, `),
      names
        .slice(1)
        .map((name, i) => `${name} ${count(totals[i + 1])}, ${times(totals[i + 1], totals[0])}`)
        .join("; "),
      ". ",
      `With ${grouped(context)} tokens in 16 bits, ${fitting.join(" and ") || "none of them"} `,
      `${fitting.length < 2 ? "fits" : "fit"} on one ${machine.name}.`,
    )
    show(ofFigures, "Figures, and how many times the first model's", head, figures)
    show(ofParts, "Where the parameters are", head, parts)
    show(ofSizes, "Hyperparameters; a row is marked where the difference changes something", head, sizes)
    replace(
      more,
      files
        .flatMap(file => [file.caveat, file.defaults])
        .filter(Boolean)
        .map(caveat => make("p", { class: "ep-conventions" }, caveat)),
      make(
        "p",
        {},
        "Everything of ",
        files.flatMap(({ page }, i) => [
          i ? ", " : "",
          page ? make("a", { href: new URL(page, root) }, names[i]) : names[i],
        ]),
        ".",
      ),
    )
    remember({
      models: chosen.join(),
      ...Object.fromEntries(Object.entries(state).filter(([k, v]) => v !== DEFAULTS[k])),
    })
    drawDiagrams()
  }

  // The drawings of the models' pages beside each other, fetched once somebody opens them.
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
        { class: "ep-beside" },
        all.map((drawings, n) =>
          drawings[i]
            ? make(
                "figure",
                {
                  class: "ep-figure",
                  tabindex: 0,
                  "aria-label": `${nameOf(slugs[n])}, ${drawings[i].name}`,
                },
                make("figcaption", {}, drawings[i].name),
                drawings[i].svg,
              )
            : make("div"),
        ),
      ),
    )
    replace(ofDiagrams, make("p", {}, "Marked: what the other models do not have."), rows)
  }

  pick()
  await update()
  replace(place, form, answer, ofFigures, ofParts, ofSizes, diagrams, more) // all at once, so that nothing moves
}

/** @typedef {{ name: string, svg: Element }} Drawing */

/**
 * The drawings of a model's page, each with its name; their links lead where they led there.
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

// Marks the operations that not every other model has, by what they are called.
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

// A list of the layers: each entry with how many of them follow each other.
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
