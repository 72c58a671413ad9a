// Two to four models side by side, each from the site's own; every number is the engine's.

import { categories, conditions, fieldsOf, figure, FIGURES, py } from "../model.mjs"
import { about, bytes, count, data, exact, grouped, labelled, make, modelOf, modelsByFamily, remember, replace, select, show } from "./kit.mjs"

const FIRST = ["llama3.1-8b", "qwen3-8b"], MOST = 4
const DEFAULTS = { context: "8192", weights: "bfloat16", cache: "bfloat16", on: "h100" }
const SHOWN = ["total", "active", "embedding", "non_embedding", "weight_bytes", "cache_bytes_per_token", "cache_bytes", "device_bytes", "decode_flops", "prefill_flops", "bytes_moved", "decode_seconds", "devices_needed"]
const PARTS = ["Embedding", "Mixing of tokens", "Feed-forward", "Norms", "Head"]

export async function mount(place) {
  const { models, accelerators } = await data()
  const given = new URLSearchParams(location.search)
  const state = { ...DEFAULTS, ...Object.fromEntries([...given].filter(([name]) => Object.hasOwn(DEFAULTS, name))) }
  if (!accelerators.has(state.on)) state.on = [...accelerators.keys()][0]
  let chosen = (given.get("models") ?? "").split(",").filter(slug => models.has(slug)).slice(0, MOST)
  while (chosen.length < 2) chosen.push(FIRST.find(slug => !chosen.includes(slug)))

  const answer = make("p", { class: "ep-answer", role: "status" }), picks = make("div", { class: "ep-row" })
  const ofFigures = make("div"), ofParts = make("div"), ofSizes = make("div"), ofDiagrams = make("div"), more = make("div")
  const diagrams = make("details", { ontoggle: () => drawDiagrams() }, make("summary", {}, "Diagrams side by side"), ofDiagrams)
  const form = make("form", { class: "ep-whatif", onsubmit: event => event.preventDefault() }, picks,
    make("div", { class: "ep-row" },
      labelled("Context, tokens", make("input", { type: "number", name: "context", min: 1, step: 1, value: state.context, inputmode: "numeric" })),
      labelled("On", select("on", [...accelerators].map(([slug, a]) => [slug, `${a.name}, ${bytes(a.memory_bytes)}`]), state.on))))
  form.addEventListener("input", event => {
    const { name, value } = event.target
    if (name in DEFAULTS) state[name] = value
    update()
  })

  function pick() {
    replace(picks, chosen.map((slug, i) => labelled(`Model ${i + 1}`, select(`model${i}`, modelsByFamily(models), slug, {
      oninput: event => { chosen[i] = event.target.value },
    }))),
      chosen.length < MOST ? make("button", { type: "button", onclick: () => change([...chosen, [...FIRST, ...models.keys()].find(slug => !chosen.includes(slug))]) }, "One more") : null,
      chosen.length > 2 ? make("button", { type: "button", onclick: () => change(chosen.slice(0, -1)) }, "One fewer") : null)
  }
  function change(slugs) {
    chosen = slugs
    pick()
    update()
  }

  async function update() {
    const files = await Promise.all(chosen.map(about)), all = await Promise.all(files.map(({ keys }) => modelOf(keys))), names = chosen.map(slug => models.get(slug).read("name"))
    diagrams.hidden = files.some(file => !file.page)
    const context = /^\d+$/.test(state.context) && BigInt(state.context) > 0n ? BigInt(state.context) : 1n
    const machine = accelerators.get(state.on), at = conditions({ context, format: state.weights, dtype: state.cache, accelerator: machine })
    const head = ["", ...names.map(name => `#${name}`)]
    const cells = (values, cell) => values.map((v, i) => i === 0 || v === null || values[0] === null || py.eq(v, values[0]) || !py.truth(values[0]) ? cell(v) : [cell(v), " ", make("span", { class: "ep-range" }, `× ${py.float(py.Fraction(v, values[0])).toPrecision(3)}`)])
    const figures = SHOWN.map(name => {
      const f = FIGURES.read(name), values = all.map(m => figure(m, name, at))
      return [f.title[0].toUpperCase() + f.title.slice(1), ...cells(values, v => exact(v, f.unit))]
    })
    const fields = [...new Set(all.flatMap(m => [...fieldsOf(py.type(m.config))].map(f => f.field)))]
    const value = (m, name) => {
      const v = m.config[name]
      return v == null || v instanceof py.Dict || typeof v === "function" ? "–" : Array.isArray(v) ? runs(v) : typeof v === "object" || typeof v === "bigint" ? grouped(py.int(v)) : typeof v === "boolean" ? (v ? "yes" : "no") : py.str(v)
    }
    const sizes = fields.map(name => {
      const row = [name, ...all.map(m => value(m, name))]
      if (new Set(row.slice(1)).size > 1) row.cls = "ep-differs"
      return row
    }).filter(row => row.slice(1).some(v => v !== "–"))
    const parts = PARTS.map((name, i) => [name, ...cells(all.map(m => categories(m)[i]), v => exact(v, "parameters"))])
    const totals = all.map(m => m.counts.total), fits = all.map(m => figure(m, "device_bytes", at) <= machine.memory_bytes)
    replace(answer, make("strong", {}, `${names[0]} has ${count(totals[0])} parameters, `), names.slice(1).map((name, i) => `${name} ${count(totals[i + 1])}, × ${py.float(py.Fraction(totals[i + 1], totals[0])).toPrecision(3)}`).join("; "), ". ",
      `With ${grouped(context)} tokens in 16 bits, ${names.filter((_, i) => fits[i]).join(" and ") || "none of them"} ${fits.filter(Boolean).length === 1 || !fits.some(Boolean) ? "fits" : "fit"} on one ${machine.name}.`)
    show(ofFigures, "Figures, and how many times the first model's", head, figures)
    show(ofParts, "Where the parameters are", head, parts)
    show(ofSizes, "Hyperparameters; a row that differs is marked", head, sizes)
    replace(more,
      files.map(file => file.caveat).filter(Boolean).map(caveat => make("p", { class: "ep-conventions" }, caveat)),
      make("p", {}, "Everything of ", names.flatMap((name, i) => [i ? ", " : "", files[i].page ? make("a", { href: new URL(files[i].page, root) }, name) : name]), "."))
    remember({ models: chosen.join(), ...Object.fromEntries(Object.entries(state).filter(([k, v]) => v !== DEFAULTS[k])) })
    drawDiagrams()
  }

  // The drawings of the models' pages beside each other, fetched once somebody opens them.
  const root = new URL("../../", import.meta.url)
  let drawn = ""
  async function drawDiagrams() {
    if (!diagrams.open || drawn === chosen.join()) return
    drawn = chosen.join()
    const slugs = [...chosen], all = await Promise.all(slugs.map(async slug => drawingsOf(new URL((await about(slug)).page, root))))
    if (drawn !== slugs.join()) return // others are chosen by now
    mark(all)
    const rows = Array.from({ length: Math.max(...all.map(drawings => drawings.length)) }, (_, i) => make("div", { class: "ep-beside" }, all.map((drawings, n) =>
      drawings[i] ? make("figure", { class: "ep-figure", tabindex: 0, "aria-label": `${models.get(slugs[n]).read("name")}, ${drawings[i].name}` }, make("figcaption", {}, drawings[i].name), drawings[i].svg) : make("div"))))
    replace(ofDiagrams, make("p", {}, "Marked: what the other models do not have."), rows)
  }

  pick()
  await update()
  replace(place, form, answer, ofFigures, ofParts, ofSizes, diagrams, more) // all at once, so that nothing moves
}

// The drawings of a model's page, each with its name; their links lead where they led there.
async function drawingsOf(address) {
  const page = new DOMParser().parseFromString(await (await fetch(address)).text(), "text/html")
  return [...page.querySelectorAll("figure.diagram")].map(figure => {
    const svg = document.adoptNode(figure.querySelector(".ep-canvas > svg"))
    for (const link of svg.querySelectorAll("a")) for (const name of ["href", "xlink:href"]) if (link.hasAttribute(name)) link.setAttribute(name, new URL(link.getAttribute(name), address))
    return { name: figure.getAttribute("aria-label"), svg }
  })
}

// Marks the operations that not every other model has, by what they are called.
function mark(all) {
  const titled = node => [...node.querySelectorAll("text:not(.ep-small, .ep-term)")].map(text => text.textContent).join(""), nodes = drawings => drawings.flatMap(({ svg }) => [...svg.querySelectorAll(".node")])
  const titles = all.map(drawings => new Set(nodes(drawings).map(titled)))
  all.forEach((drawings, i) => nodes(drawings).forEach(node => node.classList.toggle("ep-differs", titles.some((known, j) => j !== i && !known.has(titled(node))))))
}

// A list of the layers: each entry with how many of them follow each other.
function runs(list) {
  const all = []
  for (const x of list.map(String)) {
    if (all.length && all.at(-1)[0] === x) all.at(-1)[1]++
    else all.push([x, 1])
  }
  return all.length > 8 ? `${list.length} entries, ${new Set(list.map(String)).size} kinds` : all.map(([x, n]) => n > 1 ? `${n} × ${x}` : x).join(", ")
}
