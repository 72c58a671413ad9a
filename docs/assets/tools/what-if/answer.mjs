// What becomes of a model with changed hyperparameters. Every number is the engine's, compiled from the Python that
// computes the pages.

import { M } from "../../engine/base.mjs"
import "../../engine/variations.mjs"
import { continued, fieldsOf, figure, FIGURES, parsed, py, said, shorten } from "../../model.mjs"
import { differing } from "../address.mjs"
import { bytes, count, firstListed, givenOf, grouped, isAbout, json, lower } from "../kit.mjs"
import { modelOf, percent, TITLES, upper, withWindows } from "../kit.mjs"
import { notRun } from "../runs.mjs"

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
 * @property {Engine.Conditions?} lacking the conditions, if it does not fit there or no engine runs the format
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
    lacking: left >= 0n && !notRun(now.costs, given) ? null : given,
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
      (enough ? ` It fits on ${grouped(enough.devices)} devices: ${enough.said}.` : "") +
      notRun(now.costs, given),
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

// What is chosen

/** @type {Record<string, string>} */
const DEFAULTS = {
  ...{ model: "llama3-8b", context: "8192", batch: "1", weights: "published", cache: "bfloat16", on: "h100" },
  devices: "1",
}
const CONDITIONS = Object.keys(DEFAULTS).slice(1)

/**
 * @typedef {Record<string, any> & {
 *   set: Map<string, string>, way: string?, own: Engine.Keys?, text: string, name: string, waiting: string,
 * }} Values what is chosen: the conditions, changes by hand, an example change, the reader's config and its text, the
 *   name of a model instead, and the repository of a hub that is not asked yet
 */
/**
 * @param {string | undefined} model of the page
 * @param {Pick<import("../figures.mjs").Data, "models" | "accelerators">} site
 */
export const defaultsOf = (model = DEFAULTS.model, { models, accelerators }) => ({
  ...DEFAULTS,
  model: firstListed(model, models),
  on: firstListed(DEFAULTS.on, accelerators),
})
/** @param {Values} values @returns {Asked["choice"]} */
export const choiceOf = values => ({
  ...{ set: values.set, way: values.way },
  values: Object.fromEntries(CONDITIONS.map(name => [name, values[name]])),
})

// The address

/**
 * The choices of an address; `wrong` gets its invalid parts.
 * @param {URLSearchParams} given
 * @param {string} hash
 * @param {Values} values
 * @param {string[]} wrong
 * @param {(text: string) => Engine.Keys} [keysIn] a config of the reader's own
 * @returns {Values}
 */
export function recalled(given, hash, values, wrong, keysIn) {
  const set = new Map([...given].flatMap(([name, text]) => (name.startsWith("set.") ? [[name.slice(4), text]] : [])))
  let way = given.get("way"),
    own = hash.includes("=") || !hash ? null : values.own // the others lead to a heading
  if (way !== null && !VARIATIONS.has(way)) {
    wrong.push(`way = ${shorten(way)}: no such example`)
    way = null
  }
  try {
    if (hash.startsWith("#config=")) own = keysIn?.(decodeURIComponent(hash.slice(8))) ?? own
  } catch (error) {
    wrong.push(`config: ${said(error)}`)
  }
  const name = hash.startsWith("#name=") ? nameIn(hash.slice(6), wrong) : ""
  if (name && name === values.name) own = values.own
  const text = json(own) === json(values.own) ? (values.text ?? "") : own ? json(own) : ""
  return { ...values, ...{ set, way, own, text, name, title: own && name ? values.title : "", waiting: "", note: "" } }
}
/** @param {string} hash @param {string[]} wrong */
function nameIn(hash, wrong) {
  try {
    return decodeURIComponent(hash).slice(0, LONGEST_NAME)
  } catch (error) {
    wrong.push(`name: ${said(error)}`)
    return ""
  }
}
const LONGEST_NAME = 300
/** The address of a choice. @param {any} values @param {boolean} isOwn */
export function address(values, isOwn) {
  const said = {
    ...differing(values, DEFAULTS, isOwn ? [] : ["model"]),
    way: values.way,
    ...Object.fromEntries([...values.set].map(([key, text]) => [`set.${key}`, text])),
  }
  return isOwn ? { values: said, hash: hashOf(values) } : { values: said }
}

export const hashOf = (/** @type {any} */ { name, own }) =>
  name ? `#name=${encodeURIComponent(name)}` : own ? `#config=${encodeURIComponent(json(own))}` : ""

/**
 * An example change comes first, changes by hand on top of it.
 * @param {Engine.Model} before
 * @param {Values} values
 * @param {string[]} wrong
 * @param {import("../../model.mjs").Stored} [stored]
 */
export async function changedKeys(before, values, wrong, stored) {
  const keys = values.way ? VARIATIONS.read(values.way).change(before.raw, before.config) : before.raw
  if (keys) return changed(keys, (await modelOf(keys, stored)).config, values.set, wrong)
  wrong.push(`way = ${shorten(values.way)}: does not apply to this model`)
  values.way = null
  return changed(before.raw, before.config, values.set, wrong)
}
/**
 * Drops the parts of an address that a problem names, or all of them if it names none or problems go on.
 * @param {any} values
 * @param {Record<string, string>} defaults
 * @param {string} said
 * @param {boolean} isLast
 */
export function leave(values, defaults, said, isLast) {
  const others = CONDITIONS.filter(name => values[name] !== defaults[name]),
    keys = [...values.set.keys()],
    sets = keys.filter(key => said.includes(key)),
    named = others.filter(isAbout(said)),
    isAll = isLast || !(sets.length || named.length),
    isAny = Boolean(others.length || values.set.size || values.way)
  for (const key of isAll ? keys : sets) values.set.delete(key)
  if (isAll) values.way = null
  for (const name of isAll ? others : named) values[name] = defaults[name]
  return isAny
}
/**
 * The fields that a problem is about: a condition, or hyperparameters that were changed.
 * @param {string} said
 * @param {Values} values
 * @param {Set<string>} known to be invalid
 */
export function invalid(said, { set }, known) {
  const condition = CONDITIONS.find(isAbout(said))
  if (condition) return [condition]
  const given = [...set.keys()],
    named = given.filter(key => said.includes(key)),
    isKnown = [...known].some(name => name.startsWith("set."))
  return (named.length || isKnown ? named : given).map(key => `set.${key}`)
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
