// What the tools and the search compute with: the site's models and accelerators, numbers in a reader's units. Nothing
// of a page, so that a worker can load it.

import { accelerator, pause, py, said } from "../conditions.mjs"

export { pause, said }

/**
 * A file of JSON beside the engine.
 * @param {string} name
 * @returns {Promise<any>}
 */
export const fetched = name =>
  fetch(new URL(`../engine/${name}`, import.meta.url))
    .then(answer => answer.text())
    .then(py.parse)
/**
 * @typedef {object} Listed a model of the site
 * @property {Engine.Keys} keys of its config
 * @property {string} [page] where it is, if it has one
 * @property {string} [caveat] what is to be said of it
 * @property {bigint?} [context] that it is made for
 * @property {bigint[]?} [tower] layers and width of its tower of images, if it has one; null if they are not stated
 * @property {string[]} [default_sizes] the sizes that are defaults of a class
 * @property {string[]} [default_figures] the figures that rest on such a size
 * @property {string} [defaults] what is to be said of them
 * @property {import("../model.mjs").Stored} [stored] the reader's file that it is in
 */
/** @type {Map<string, Promise<Listed>>} */
const files = new Map()
export function about(/** @type {string} */ slug) {
  const asked = () => fetched(`models/${slug}.json`).then(all => Object.fromEntries(py.entries(all)))
  const file = files.get(slug) ?? /** @type {Promise<Listed>} */ (asked())
  files.set(slug, file)
  return file
}

/**
 * @typedef {Map<string, Engine.Dict<"name" | "family", string>>} Models by their slugs
 * @typedef {object} Data
 * @property {Models} models
 * @property {Map<string, Engine.Accelerator>} accelerators by their slugs
 * @property {import("../model.mjs").Titles} titles of a model's parts
 * @property {Engine.Dict<string, string>} colours of their categories
 */
/** @type {Promise<Data> | undefined} */
let loaded
// What the site has to choose from.
export function data() {
  return (loaded ??= fetched("data.json").then(all => {
    const accelerators = new Map()
    for (const [slug, d] of py.entries(all.read("accelerators")))
      accelerators.set(slug, accelerator(Object.fromEntries(py.entries(d))))
    const models = new Map()
    for (const [slug, [name, family]] of py.entries(all.read("models")))
      models.set(slug, new py.Dict(Object.entries({ name, family })))
    return { models, accelerators, titles: all.read("titles"), colours: all.read("colours") }
  }))
}

/** @type {Map<string, Promise<Engine.Model>>} */
const kept = new Map()
/**
 * A model by its keys, kept while the page lives: most changes are of conditions and not of the model.
 * @param {Engine.Keys} keys
 * @param {import("../model.mjs").Stored?} stored the file that they are of, maybe with changes
 */
export async function modelOf(keys, stored = null) {
  const name = `${json(keys)}${stored?.id ?? ""}`
  let one = kept.get(name)
  if (!one) {
    if (kept.size > 20) kept.clear()
    kept.set(name, (one = counted(keys, stored)))
    one.catch(() => kept.delete(name))
  }
  return one
}
async function counted(/** @type {Engine.Keys} */ keys, /** @type {import("../model.mjs").Stored?} */ stored) {
  const { load, model } = await import("../model.mjs")
  await load(keys.read("model_type", null))
  await pause()
  return model(keys, stored, stored?.json === json(keys))
}

/**
 * Keys as JSON, whole numbers written out.
 * @param {unknown} value
 * @returns {string}
 */
export function json(value) {
  if (typeof value === "bigint") return String(value)
  if (value instanceof py.Dict)
    return `{${py
      .entries(value)
      .map(([k, v]) => `${JSON.stringify(k)}:${json(v)}`)
      .join()}}`
  if (Array.isArray(value)) return `[${value.map(json).join()}]`
  return JSON.stringify(value ?? null)
}

// Numbers

const digits = new Intl.NumberFormat("en")
export const grouped = (/** @type {bigint} */ n) => (n < 0n ? "−" : "") + digits.format(n < 0n ? -n : n)
const UNITS = ["", "k", "M", "B", "T", "P", "E"]
/**
 * Three digits and a unit: 8.03B, 16.1 GB.
 * @param {bigint | number} n
 * @param {string[]} units
 * @param {string} space
 */
function scaled(n, units, space) {
  let x = Math.abs(Number(n)),
    i = 0
  for (; x >= 999.5 && i < units.length - 1; i++) x /= 1000
  const places = i === 0 && Number.isInteger(x) ? 0 : x >= 99.95 ? 0 : x >= 9.995 ? 1 : 2
  return `${n < 0 ? "−" : ""}${x.toFixed(places)}${space}${units[i]}`
}
export const count = (/** @type {bigint} */ n) => (n < 10000n && n > -10000n ? grouped(n) : scaled(n, UNITS, ""))
// As the pages round: 8.03B of parameters, 16.7% of them.
export const short = (/** @type {bigint} */ n) => scaled(n, ["", "K", "M", "B", "T"], "")
export const percent = (/** @type {bigint} */ n, /** @type {bigint} */ of) =>
  of ? (n && 2000n * n < of ? "<0.1%" : `${(Number((2000n * n + of) / (2n * of)) / 10).toFixed(1)}%`) : "–"
export const bytes = (/** @type {bigint | number} */ n) => scaled(n, ["bytes", "kB", "MB", "GB", "TB", "PB"], " ")
export const flops = (/** @type {bigint | number} */ n) =>
  `${scaled(n, ["", "k", "M", "G", "T", "P", "E", "Z", "Y"], " ")}FLOP`
/**
 * @param {number} x
 * @returns {string}
 */
export const seconds = x =>
  x < 0
    ? `−${seconds(-x)}`
    : x >= 1
      ? scaled(x, ["s", "ks"], " ")
      : x >= 1e-3
        ? `${(x * 1e3).toPrecision(3)} ms`
        : `${(x * 1e6).toPrecision(3)} µs`
/** @type {Record<string, (x: bigint | number) => string>} */
const WRITERS = { bytes, FLOPs: flops, seconds: x => seconds(py.float(x)), "tokens per second": x => count(py.int(x)) }
/**
 * @param {Engine.Exact?} value
 * @param {string} unit
 */
export function written(value, unit) {
  if (value === null) return unit === "bytes" || unit === "devices" ? "no valid split" : "unlimited"
  return WRITERS[unit]
    ? WRITERS[unit](typeof value === "bigint" ? value : py.float(value))
    : typeof value === "bigint"
      ? count(value)
      : py.float(value).toPrecision(3)
}
/**
 * The difference of two values, signed, and how many times one is the other.
 * @param {Engine.Exact?} now
 * @param {Engine.Exact?} before
 * @param {string} unit
 */
export function difference(now, before, unit) {
  if (now === null || before === null) return ""
  const d = py.sub(now, before)
  if (!py.truth(d)) return "unchanged"
  const ratio = py.truth(before) && py.truth(now) ? py.float(py.Fraction(now, before)) : null
  return `${py.gt(d, 0n) ? "+" : ""}${written(d, unit)}${ratio === null ? "" : `, × ${ratio.toPrecision(3)}`}`
}
