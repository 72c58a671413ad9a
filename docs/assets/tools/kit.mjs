// What the tools compute with, besides figures: conditions and what there is to choose from. Nothing of a page.

import { asked, BOUNDS, CACHE_BYTES, cacheMeant, conditions, formatMeant, isProblem, machine } from "../conditions.mjs"
import { Problem, py, said, shorten, WEIGHTS } from "../conditions.mjs"
import { bytes } from "./figures.mjs"

export * from "./figures.mjs"

/** @typedef {[value: string, text: string]} Option */

// Conditions

/**
 * @param {string} name
 * @param {string} text
 * @param {Pick<Set<string>, "has">} known
 */
export function oneListed(name, text, known) {
  if (known.has(text)) return text
  throw Problem(`${name} = ${shorten(text)}: not in the list`, "choose one from the list")
}
/** The name of a choice, or else of the first. @param {string} name @param {Map<string, unknown>} known */
export const firstListed = (name, known) => (known.has(name) ? name : [...known.keys()][0])
/**
 * The text of a machine, listed or the reader's own.
 * @param {string} name
 * @param {string} text
 * @param {Map<string, Engine.Accelerator>} known
 */
export function oneMachine(name, text, known) {
  try {
    machine(text, known)
    return text
  } catch (error) {
    throw isProblem(error) ? Problem(`${name} = ${shorten(text)}: ${said(error)}`) : error
  }
}
/**
 * @param {Map<string, Engine.Accelerator>} accelerators
 * @returns {Record<"context" | "batch" | "weights" | "cache" | "on" | "devices", import("./address.mjs").Rule>}
 */
export const conditionRules = accelerators => ({
  context: text => `${asked.whole("context", text, BOUNDS.MOST_TOKENS)}`,
  batch: text => `${asked.whole("batch", text, BOUNDS.MOST_TEXTS)}`,
  weights: text => asked.oneOf("weights", formatMeant(text), WEIGHTS),
  cache: text => asked.oneOf("cache", cacheMeant(text), CACHE_BYTES),
  on: text => oneMachine("on", text, accelerators),
  devices: text => `${asked.whole("devices", text, BOUNDS.MOST_DEVICES)}`,
})
/**
 * Whether a problem is about a field: "context = 0: …", "no split over 7 devices: …".
 * @param {string} said
 */
export const isAbout = said => (/** @type {string} */ name) =>
  said.startsWith(`${name} = `) || said.includes(` ${name}: `)
/**
 * The conditions of an answer on a machine; a batch and devices where they are asked for.
 * @param {Record<string, string>} values
 * @param {Engine.Machine} on
 */
export const givenOf = ({ context, batch = "1", weights, cache, devices = "1" }, on) =>
  conditions({
    context: BigInt(context),
    batch: BigInt(batch),
    format: weights,
    dtype: cache,
    devices: BigInt(devices),
    accelerator: on.accelerator,
  })
/**
 * @param {import("./figures.mjs").Models} models
 * @returns {[family: string, models: Option[]][]}
 */
export function modelsByFamily(models) {
  /** @type {Map<string, Option[]>} */
  const families = new Map()
  for (const [slug, m] of models) {
    const family = m.read("family")
    families.set(family, [...(families.get(family) ?? []), [slug, m.read("name")]])
  }
  return [...families]
}
/**
 * A device in a sentence: one of the list, or an amount of memory.
 * @param {string} on
 * @param {string} name
 * @param {Map<string, Engine.Accelerator>} known
 */
export const one = (on, name, known) => (known.has(on) ? `one ${name}` : name)
/** The accelerators to choose from, vendor by vendor. @param {Map<string, Engine.Accelerator>} accelerators */
export function machinesByVendor(accelerators) {
  /** @type {Map<string, Option[]>} */
  const vendors = new Map()
  for (const [slug, a] of accelerators)
    vendors.set(a.vendor, [...(vendors.get(a.vendor) ?? []), [slug, `${a.name}, ${bytes(a.memory_bytes)}`]])
  return [...vendors]
}
/**
 * The titles of figures whose values carry a unit.
 * @type {Record<string, string>}
 */
export const TITLES = {
  weight_bytes: "weights",
  cache_bytes: "KV cache",
  cache_bytes_per_token: "KV cache per token",
  cache_bytes_per_token_uncapped: "KV cache per token until windows are full",
  device_bytes: "memory per device while generating",
  decode_seconds: "time per generated token",
  prefill_seconds: "prefill time",
}

/**
 * The names of figures without what windows hide, where no model has one: at long context its tokens take no room.
 * @param {string[]} names
 * @param {(name: string) => (Engine.Exact | null)[]} values of each model
 */
export const withWindows = (names, values) => {
  const late = values("cache_bytes_per_token"),
    early = values("cache_bytes_per_token_uncapped"),
    grows = early.some((value, i) => value !== null && late[i] !== null && py.float(value) > py.float(late[i]))
  return grows ? names : names.filter(name => name !== "cache_bytes_per_token_uncapped")
}
// The first letter in lower or upper case; the rest may be a name.
export const lower = (/** @type {string} */ text) => text[0].toLowerCase() + text.slice(1)
export const upper = (/** @type {string} */ text) => text[0].toUpperCase() + text.slice(1)
