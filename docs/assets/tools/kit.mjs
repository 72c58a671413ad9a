// What the tools share besides elements: numbers in a reader's units, and the models that a page may start from.

import { accelerator, load, model, py, said } from "../model.mjs"
import { mount, order } from "../tables.mjs"
import { lines, make, replace, table } from "./elements.mjs"

export * from "./elements.mjs"
export { said }

const fetched = name => fetch(new URL(`../engine/${name}`, import.meta.url)).then(answer => answer.text()).then(py.parse)
const files = new Map()
// A listed model: the keys of its config, its page, what is to be said of it, the context that it is made for.
export function about(slug) {
  if (!files.has(slug)) files.set(slug, fetched(`models/${slug}.json`).then(file => Object.fromEntries(py.entries(file))))
  return files.get(slug)
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

const digits = new Intl.NumberFormat("en")
export const grouped = n => (n < 0n ? "−" : "") + digits.format(n < 0n ? -n : n)
const UNITS = ["", "k", "M", "B", "T", "P", "E"]
// Three digits and a unit: 8.03B, 16.1 GB.
function scaled(n, units, space) {
  let x = Math.abs(Number(n)), i = 0
  while (x >= 999.5 && i < units.length - 1) x /= 1000, i++
  const places = i === 0 && Number.isInteger(x) ? 0 : x >= 99.95 ? 0 : x >= 9.995 ? 1 : 2
  return `${n < 0 ? "−" : ""}${x.toFixed(places)}${space}${units[i]}`
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

export function modelsByFamily(models) {
  const families = new Map()
  for (const [slug, m] of models) {
    const family = m.read("family")
    families.set(family, [...(families.get(family) ?? []), [slug, m.read("name")]])
  }
  return [...families]
}
// A table in its place. Where it stands there already its rows alone are new: what it is sorted by remains.
export function show(place, caption, head, rows) {
  const name = [caption, ...head].join("|"), there = place.dataset.table === name && place.querySelector("table")
  if (!there) {
    place.dataset.table = name
    replace(place, table(caption, head, rows))
    mount(place.querySelector("table"))
    return
  }
  there.tBodies[0].replaceChildren(...lines(head, rows))
  if (there.tHead.querySelector("[aria-sort]")) order(there)
}

// A number in a reader's unit, the exact one beside it for whoever wants it.
export const exact = (value, unit) => make("span", { title: typeof value === "bigint" ? `${grouped(value)} ${unit}` : null }, written(value, unit))
