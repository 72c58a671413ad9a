// What the tools share: elements, numbers in a reader's units, and the models that a page may start from.

import { accelerator, load, model, py, said } from "../model.mjs"
import { mount, order } from "../tables.mjs"

export { said }

// An element; a child that is no element is text.
export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name)
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value)
    else if (value === true) element.setAttribute(key, "")
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value)
  }
  element.append(...children.flat().filter(child => child !== null && child !== undefined))
  return element
}
export const replace = (element, ...children) => element.replaceChildren(...children.flat().filter(child => child !== null && child !== undefined))

const fetched = name => fetch(new URL(`../engine/${name}`, import.meta.url)).then(answer => answer.text()).then(py.parse)
const keys = new Map()
// The keys of a listed model's config.
export function keysOf(slug) {
  if (!keys.has(slug)) keys.set(slug, fetched(`models/${slug}.json`))
  return keys.get(slug)
}

let loaded
// The models and the accelerators of the site, each by its slug; titles and colours of a model's parts.
export function data() {
  return loaded ??= fetched("data.json").then(all => {
    const byName = part => new Map(py.entries(all.read(part)))
    const machines = [...byName("accelerators")].map(([slug, d]) => [slug, accelerator(Object.fromEntries(py.entries(d)))])
    return { models: byName("models"), accelerators: new Map(machines), titles: all.read("titles"), colours: all.read("colours") }
  })
}

const kept = new Map()
// A model by its keys, kept while the page lives: most changes are of conditions and not of the model.
export async function modelOf(keys) {
  const name = json(keys)
  if (!kept.has(name)) {
    await load(keys.read("model_type", null))
    if (kept.size > 20) kept.clear()
    kept.set(name, model(keys))
  }
  return kept.get(name)
}

// Keys as JSON, whole numbers written out.
export function json(value) {
  if (typeof value === "bigint") return String(value)
  if (value instanceof py.Dict) return `{${py.entries(value).map(([k, v]) => `${JSON.stringify(k)}:${json(v)}`).join()}}`
  if (Array.isArray(value)) return `[${value.map(json).join()}]`
  return JSON.stringify(value ?? null)
}

// Numbers

export const grouped = n => (n < 0n ? "−" : "") + (n < 0n ? -n : n).toLocaleString("en")
const UNITS = ["", "k", "M", "B", "T", "P", "E"]
// Three digits and a unit: 8.03B, 16.1 GB.
function scaled(n, units, space) {
  let x = Math.abs(Number(n)), i = 0
  while (x >= 999.5 && i < units.length - 1) x /= 1000, i++
  const digits = i === 0 && Number.isInteger(x) ? 0 : x >= 99.95 ? 0 : x >= 9.995 ? 1 : 2
  return `${n < 0 ? "−" : ""}${x.toFixed(digits)}${space}${units[i]}`
}
export const count = n => n < 10000n && n > -10000n ? grouped(BigInt(n)) : scaled(n, UNITS, "")
// As the pages round: 8.03B of parameters, 16.7% of them.
export const short = n => scaled(n, ["", "K", "M", "B", "T"], "")
export const percent = (n, of) => of ? n && 2000n * n < of ? "<0.1%" : `${((Number((2000n * n + of) / (2n * of))) / 10).toFixed(1)}%` : "–"
export const bytes = n => scaled(n, ["bytes", "kB", "MB", "GB", "TB", "PB"], " ")
export const flops = n => `${scaled(n, ["", "k", "M", "G", "T", "P", "E", "Z", "Y"], " ")}FLOP`
export const seconds = x => x < 0 ? `−${seconds(-x)}` : x >= 1 ? scaled(x, ["s", "ks"], " ") : x >= 1e-3 ? `${(x * 1e3).toPrecision(3)} ms` : `${(x * 1e6).toPrecision(3)} µs`
const WRITERS = { bytes, FLOPs: flops, seconds: x => seconds(py.float(x)), "tokens per second": x => count(py.int(x)) }
export function written(value, unit) {
  if (value === null) return "no end"
  return WRITERS[unit] ? WRITERS[unit](typeof value === "bigint" ? value : py.float(value)) : typeof value === "bigint" ? count(value) : py.float(value).toPrecision(3)
}
// The difference of two values, signed, and how many times one is the other.
export function difference(now, before, unit) {
  if (now === null || before === null) return ""
  const d = py.sub(now, before)
  if (!py.truth(d)) return "same"
  const ratio = py.truth(before) && py.truth(now) ? py.float(py.Fraction(now, before)) : null
  return `${py.gt(d, 0n) ? "+" : ""}${written(d, unit)}${ratio === null ? "" : `, × ${ratio.toPrecision(3)}`}`
}

// A choice; options as [value, text] or, below a heading, [heading, options].
export function select(name, groups, value, attributes = {}) {
  const option = ([v, text]) => make("option", { value: v, selected: v === value }, text)
  return make("select", { name, ...attributes }, groups.map(([first, rest]) => Array.isArray(rest) ? make("optgroup", { label: first }, rest.map(option)) : option([first, rest])))
}
export function modelsByFamily(models) {
  const families = new Map()
  for (const [slug, m] of models) {
    const family = m.read("family")
    families.set(family, [...(families.get(family) ?? []), [slug, m.read("name")]])
  }
  return [...families]
}
export const labelled = (text, field, ...after) => make("label", {}, make("span", {}, text), field, ...after)

// A table in its place. Where it stands there already its rows alone are new: what it is sorted by remains.
export function show(place, caption, head, rows) {
  const isNumber = head.map(h => h.startsWith("#")), name = [caption, ...head].join("|")
  const body = rows.map(row => make("tr", { class: row.cls ?? null }, row.map((cell, i) => make(i ? "td" : "th", { scope: i ? null : "row", class: i && isNumber[i] ? "num" : null }, ...[cell].flat()))))
  let table = place.querySelector("table")
  if (!table || place.dataset.table !== name) {
    place.dataset.table = name
    table = make("table", { class: "ep-table" }, make("caption", {}, caption),
      make("thead", {}, make("tr", {}, head.map((h, i) => make(h ? "th" : "td", { scope: h ? "col" : null, class: isNumber[i] ? "num" : null }, h.replace(/^#/, ""))))), make("tbody", {}, body))
    replace(place, make("div", { class: "ep-scroll", tabindex: 0, role: "group", "aria-label": caption }, table))
    mount(table)
    return
  }
  table.tBodies[0].replaceChildren(...body)
  if (table.tHead.querySelector("[aria-sort]")) order(table)
}
// A number in a reader's unit, the exact one beside it for whoever wants it.
export const exact = (value, unit) => make("span", { title: typeof value === "bigint" ? `${grouped(value)} ${unit}` : null }, written(value, unit))

// The address says what is chosen: what follows `?` for what may be sent to the site, nothing of a reader's own config.
export function remember(values) {
  const at = new URL(location.href)
  at.search = new URLSearchParams(Object.entries(values).filter(([, v]) => v !== undefined && v !== null && v !== ""))
  history.replaceState(history.state, "", at)
}
