// What two to four models come to side by side; the engine computes every number.

import { M } from "../../engine/base.mjs"
import { paced, Problem } from "../../conditions.mjs"
import "../../engine/differing.mjs"
import { categories, fieldsOf, figure, FIGURES, isProblem, py, said } from "../../model.mjs"
import { differing } from "../address.mjs"
import { count, firstListed, givenOf, grouped, one, oneListed, TITLES, upper, withWindows } from "../kit.mjs"

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

const SHOWN = [
  ...["total", "active", "embedding", "non_embedding", "weight_bytes"],
  ...["cache_bytes_per_token_uncapped", "cache_bytes_per_token", "cache_bytes", "device_bytes"],
  ...["decode_flops", "prefill_flops", "bytes_moved", "decode_seconds", "devices_needed"],
]
const PARTS = ["Input embedding", "Token mixing (attention, recurrence)", "Feed-forward", "Norms", "Head"]

/**
 * @typedef {object} Asked
 * @property {Engine.Model[]} models
 * @property {string[]} names
 * @property {import("../figures.mjs").Listed[]} files what is known of each
 * @property {Record<string, string>} values context, weights, cache and on
 * @property {Engine.Machine} on
 * @property {Map<string, Engine.Accelerator>} accelerators
 * @typedef {object} Cell what stands for a model in a row
 * @property {Engine.Exact | null | string} value
 * @property {string} [ratio] to the first model
 * @property {boolean} [isDefault] whether it rests on a default of a class
 * @property {string | null} [split] how it is split over devices
 * @typedef {{ name?: string, title: string, unit: string, cells: Cell[], isMarked?: boolean }} Line `name` of a figure
 * @typedef {{ said: [string, string], figures: Line[], parts: Line[], sizes: Line[] }} Answer
 */

const times = (/** @type {Engine.Exact} */ a, /** @type {Engine.Exact} */ b) =>
  `× ${py.float(py.Fraction(a, b)).toPrecision(3)}`
/**
 * @param {(Engine.Exact | null)[]} values
 * @returns {Cell[]} each with its ratio to the first
 */
const ratios = ([of, ...others]) => [
  { value: of },
  ...others.map(value =>
    value === null || of === null || py.eq(value, of) || !py.truth(of) ? { value } : { value, ratio: times(value, of) },
  ),
]

/**
 * Throws why a model has no weights or no cache in the chosen formats.
 * @param {Asked} asked
 * @param {Engine.Conditions} at
 */
function check({ models, names }, at) {
  models.forEach((m, i) => {
    try {
      for (const name of ["weight_bytes", "cache_bytes"]) figure(m, name, at)
    } catch (error) {
      throw isProblem(error) ? Problem(`${names[i]}: ${said(error)}`) : error
    }
  })
}

/** @param {Asked} asked @returns {Promise<Answer>} */
export async function answer(asked) {
  const { models, files, values, on } = asked,
    at = givenOf(values, on),
    rest = paced(8)
  check(asked, at)
  /** @type {Map<string, (Engine.Exact | null)[]>} */
  const counted = new Map()
  for (const name of SHOWN) {
    counted.set(
      name,
      models.map(m => figure(m, name, at)),
    )
    await rest()
  }
  /** @type {Line[]} */
  const figures = withWindows(SHOWN, name => counted.get(name) ?? []).map(name => {
    const { title, unit } = FIGURES.read(name)
    const cells = ratios(counted.get(name) ?? []).map((cell, i) => ({
      ...cell,
      isDefault: files[i].default_figures?.includes(name),
      split: name === "devices_needed" ? models[i].costs.devices.least_split(at, on.memory_bytes)?.letters : null,
    }))
    return { name, title: upper(TITLES[name] ?? title), unit, cells }
  })
  const formats = models.map(m => ({ value: m.counts.formats.said(values.weights) }))
  figures.push({ title: "Weight format", unit: "", cells: formats })
  const parts = PARTS.map((title, i) => ({
    ...{ title, unit: "parameters", cells: ratios(models.map(m => categories(m)[i])) },
  }))
  await rest()
  return { said: sentence(asked, at), figures, parts, sizes: sizesOf(asked) }
}

/**
 * What the models have, and which of them fit.
 * @param {Asked} asked
 * @param {Engine.Conditions} at
 * @returns {[string, string]}
 */
function sentence({ models, names, values, on, accelerators }, at) {
  const formats = models.map(m => m.counts.formats),
    isOne = formats.every(f => f.said(values.weights) === formats[0].said(values.weights)),
    weights = isOne ? formats[0].phrase(values.weights) : "in the formats of the table"
  const inFormats =
    isOne && formats[0].said(values.weights) === "bfloat16" && values.cache === "bfloat16"
      ? "in 16 bits"
      : `(weights ${weights}, KV cache in ${values.cache})`
  const [total, ...totals] = models.map(m => m.counts.total),
    fitting = names.filter((_, i) => !py.gt(figure(models[i], "device_bytes", at) ?? 0n, on.memory_bytes))
  return [
    `${names[0]} has ${count(total)} parameters, `,
    `${totals.map((n, i) => `${names[i + 1]} has ${count(n)} (${times(n, total)})`).join("; ")}. ` +
      `At ${grouped(BigInt(values.context))} tokens of context ${inFormats}, ` +
      `${fitting.join(" and ") || "none of them"} ${fitting.length < 2 ? "fits" : "fit"} on ` +
      `${one(values.on, on.name, accelerators)}.`,
  ]
}

/** The hyperparameters that a model has; those whose differences have an effect are marked. @param {Asked} asked */
function sizesOf({ models, files }) {
  const fields = new Set(models.flatMap(m => [...fieldsOf(py.type(m.config))].map(f => f.field)))
  return [...fields].flatMap(name => {
    const cells = models.map((m, i) => ({
      value: written(m.config[name]),
      isDefault: files[i].default_sizes?.includes(name),
    }))
    return cells.some(({ value }) => value !== "–")
      ? [{ title: name, unit: "", cells, isMarked: differs(name, models) }]
      : []
  })
}
/** A hyperparameter's value, in words. @param {any} v */
function written(v) {
  if (v == null || v instanceof py.Dict || typeof v === "function") return "–"
  if (Array.isArray(v)) return runs(v)
  if (typeof v === "object" || typeof v === "bigint") return grouped(py.int(v))
  return typeof v === "boolean" ? (v ? "yes" : "no") : py.str(v)
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

// What is chosen

const LEAST = 2,
  MOST = 4
/** @type {Record<string, string>} */
const DEFAULTS = { context: "8192", weights: "published", cache: "bfloat16", on: "h100" }
export const defaultsOf = (/** @type {Map<string, Engine.Accelerator>} */ accelerators) => ({
  ...DEFAULTS,
  on: firstListed(DEFAULTS.on, accelerators),
})
/**
 * The chosen models with one more, and without the last; null for what may not be.
 * @param {string[]} chosen
 * @param {string[]} slugs of all models, those of the page first
 * @returns {[more: string[] | null, less: string[] | null]}
 */
export const others = (chosen, slugs) => [
  chosen.length < MOST ? [...chosen, ...slugs.filter(slug => !chosen.includes(slug)).slice(0, 1)] : null,
  chosen.length > LEAST ? chosen.slice(0, -1) : null,
]
/**
 * The models of an address, and others where it names too few; `wrong` gets its invalid parts.
 * @param {string?} text
 * @param {string[]} slugs
 * @param {string[]} wrong
 */
export function recalled(text, slugs, wrong) {
  /** @type {string[]} */
  const chosen = []
  for (const slug of (text ?? "").split(",").filter(Boolean))
    try {
      if (chosen.length < MOST) chosen.push(oneListed("models", slug, new Set(slugs)))
      else wrong.push(`models: at most ${MOST} can be compared`)
    } catch (error) {
      wrong.push(said(error))
    }
  const missing = Math.max(0, LEAST - chosen.length)
  return [...chosen, ...slugs.filter(slug => !chosen.includes(slug)).slice(0, missing)]
}
/** The address of a choice. @param {import("../tool.mjs").Values} values */
export const address = values => ({ models: values.models.join(), ...differing(values, DEFAULTS) })
/**
 * Drops the formats, which a model may not have.
 * @param {import("../tool.mjs").Values} values
 * @param {Record<string, string>} defaults
 */
export function leave(values, { weights, cache }) {
  const isOther = values.weights !== weights || values.cache !== cache
  Object.assign(values, { weights, cache })
  return isOther
}
