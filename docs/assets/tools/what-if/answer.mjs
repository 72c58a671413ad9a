// What becomes of a model with changed hyperparameters. Every number is the engine's, compiled from the Python that
// computes the pages.

import { M } from "../../engine/base.mjs"
import "../../engine/variations.mjs"
import { continued, fieldsOf, figure, FIGURES, parsed, py, shorten } from "../../model.mjs"
import { bytes, count, givenOf, grouped, lower, percent, TITLES, upper, withWindows } from "../kit.mjs"

export const { VARIATIONS } = M["engine.variations"]
const SHOWN = [
  ...["total", "active", "embedding", "cache_bytes_per_token_uncapped", "cache_bytes_per_token", "cache_bytes"],
  ...["weight_bytes", "device_bytes", "decode_flops", "prefill_flops", "bytes_moved", "decode_seconds"],
  ...["tokens_per_second", "prefill_seconds", "largest_context"],
]
/** @type {Record<string, string>} */
const TERMS = { weights: "Weights", cache: "KV cache", activations: "Activations (largest operation)" }

/**
 * @typedef {Record<string, string>} Conditions
 * @typedef {object} Choice
 * @property {Map<string, string>} set the changes by hand, by their keys
 * @property {string?} way the example change that comes before them
 * @typedef {object} Asked
 * @property {Engine.Model} before the original model
 * @property {Engine.Model} now
 * @property {Choice & { values: Conditions }} choice
 * @property {Engine.Machine} on
 * @property {string} where the machine in a sentence
 * @property {string} name of the model
 * @property {bigint | null} [context] that the model is made for
 * @typedef {{ name: string, title: string, unit: string, now: Engine.Exact?, before: Engine.Exact? }} Line of a figure
 * @typedef {object} Answer
 * @property {[uncounted: string, head: string, fits: string, rest: string]} said
 * @property {Line[]} figures
 * @property {[title: string, bytes: bigint, share: string][]} memory of the fullest device
 * @property {string} device
 */

/** @param {Asked} asked @returns {Answer} */
export function answer(asked) {
  const { now, before, choice, on } = asked,
    given = givenOf(choice.values, on),
    split = now.costs.split(given, on.memory_bytes)
  if (!split) throw now.costs.devices.without_split(given.devices, given.batch)
  const terms = now.costs.devices.split_bytes(split, given),
    needed = py.sum([...terms].map(t => terms.read(t))),
    left = on.memory_bytes - needed,
    conditions = Object.values(choice.values).join()
  /** @type {[string, bigint][]} */
  const held = [
    ...[...terms].map(t => /** @type {[string, bigint]} */ ([TERMS[t], terms.read(t)])),
    ["Total", needed],
    [left >= 0n ? "Free" : "Too much", left >= 0n ? left : -left],
  ]
  const value = (/** @type {Engine.Model} */ m, /** @type {string} */ name) => valueOf(m, name, given, conditions)
  const both = now === before ? [now] : [before, now]
  return {
    said: sentence(asked, given, split, needed),
    figures: withWindows(SHOWN, name => both.map(m => value(m, name))).map(name => {
      const { title, unit } = FIGURES.read(name)
      return { name, title: upper(TITLES[name] ?? title), unit, now: value(now, name), before: value(before, name) }
    }),
    memory: held.map(([title, n]) => [title, n, percent(n, on.memory_bytes)]),
    device: given.devices > 1n ? "the fullest device" : on.name,
  }
}
/**
 * A figure of a model, cached for its latest conditions.
 * @param {Engine.Model} m
 * @param {string} name
 * @param {Engine.Conditions} given
 * @param {string} key of the conditions
 */
function valueOf(m, name, given, key) {
  const values = (m.valuesFor === key && m.values) || new Map()
  Object.assign(m, { valuesFor: key, values })
  const value = values.has(name) ? values.get(name) : figure(m, name, given)
  values.set(name, value)
  return value ?? null
}

/**
 * Whether the model fits, with what, and how long a context may be.
 * @param {Asked} asked
 * @param {Engine.Conditions} given
 * @param {Engine.Split} split
 * @param {bigint} needed bytes
 * @returns {Answer["said"]}
 */
function sentence({ now, before, choice, on, where, name, context }, given, split, needed) {
  const left = on.memory_bytes - needed,
    isMany = given.devices > 1n,
    enough = left < 0n ? now.costs.devices.least_split(given, on.memory_bytes) : null,
    there = isMany ? `${grouped(given.devices)} × ${on.name} (${split.said})` : where,
    changed = now === before ? "" : ` with ${changes(choice)}`
  return [
    now.sizes.length ? `Not counted, unknown size keys: ${now.sizes.join(", ")}. ` : "",
    now.head ? `${now.head.name}: ${now.head.said}. ` : "",
    `${name}${changed} ${left >= 0n ? "fits" : "does not fit"} on ${there}: `,
    `${count(now.counts.total)} parameters ${now.counts.formats.phrase(choice.values.weights)} ` +
      `and the KV cache of ${grouped(given.batch)} ` +
      `${given.batch === 1n ? "sequence" : "sequences"} of ${grouped(given.context)} tokens ` +
      `in ${choice.values.cache} ` +
      `take ${bytes(needed)} of ${bytes(on.memory_bytes)}${isMany ? " on the fullest device" : ""}, ` +
      (left >= 0n ? `which leaves ${bytes(left)} free. ` : `${bytes(-left)} too much. `) +
      longest(now.costs.largest_context(on.memory_bytes, given), context) +
      (enough ? ` It fits on ${grouped(enough.devices)} devices: ${enough.said}.` : ""),
  ]
}
const changes = (/** @type {Choice} */ { set, way }) =>
  [
    ...(way ? [lower(VARIATIONS.read(way).title)] : []),
    ...[...set].map(([key, text]) => `${key} = ${text.length > 60 ? `${text.slice(0, 60)}…` : text}`),
  ].join(", ")
/**
 * The longest context that fits, and whether the model supports it.
 * @param {Engine.Exact?} context
 * @param {bigint | null | undefined} end that the model is made for
 */
function longest(context, end) {
  if (context === 0n) return "Not even one token of context fits."
  const made = end && (context === null || py.gt(context, end)) ? `; the model supports ${grouped(end)}` : ""
  return context === null
    ? `Memory does not limit the context${made}.`
    : `The longest context that fits is ${grouped(py.int(context))} tokens${made}.`
}

// Changes

/**
 * The keys with the changes by hand; one of a key that this model does not have is dropped and noted.
 * @param {Engine.Keys} base
 * @param {Engine.Config} config
 * @param {Map<string, string>} set
 * @param {string[]} wrong
 */
export function changed(base, config, set, wrong) {
  const keys = new py.Dict(py.entries(base)),
    known = [...fieldsOf(py.type(config))]
  for (const [name, text] of set) {
    const field = known.find(f => f.key === name)
    if (!field) {
      set.delete(name)
      wrong.push(`set.${shorten(name).slice(1, -1)}: not a hyperparameter of this model`)
      continue
    }
    const value = meant(text)
    if (field.field === "n_layers" && typeof value === "bigint")
      for (const [k, v] of py.entries(keys)) keys.put(k, continued(v, config.symbols.read("n_layers"), value))
    for (const spelling of field.also) keys.map.delete(spelling)
    keys.put(name, value)
  }
  return keys
}
/** @returns {Engine.Json} of a text that is JSON, or the text itself */
function meant(/** @type {string} */ text) {
  try {
    return parsed(text)
  } catch {
    return text
  }
}
