// What the tools' pages share, besides elements and figures: conditions, their fields, and tables of results.

import {
  asked,
  BOUNDS,
  CACHE_BYTES,
  cacheMeant,
  WEIGHTS,
  formatMeant,
  isProblem,
  machine,
  OWN_MACHINE,
  Problem,
  py,
  said,
  shorten,
} from "../conditions.mjs"
import { mount, order } from "../tables.mjs"
import { labelled, lines, make, put, replace, select, table } from "./elements.mjs"
import { bytes, grouped, written } from "./figures.mjs"

export * from "./elements.mjs"
export { finder } from "./find.mjs"
export * from "./figures.mjs"

// Conditions

/**
 * @param {string} name
 * @param {string} text
 * @param {Map<string, unknown>} known
 */
export function oneListed(name, text, known) {
  if (known.has(text)) return text
  throw Problem(`${name} = ${shorten(text)}: not in the list`, "choose one from the list")
}
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
 * @returns {Record<"context" | "batch" | "weights" | "cache" | "on" | "devices", import("./elements.mjs").Rule>}
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
 * @param {import("./figures.mjs").Models} models
 * @returns {[family: string, models: import("./elements.mjs").Option[]][]}
 */
export function modelsByFamily(models) {
  /** @type {Map<string, import("./elements.mjs").Option[]>} */
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
  /** @type {Map<string, import("./elements.mjs").Option[]>} */
  const vendors = new Map()
  for (const [slug, a] of accelerators)
    vendors.set(a.vendor, [...(vendors.get(a.vendor) ?? []), [slug, `${a.name}, ${bytes(a.memory_bytes)}`]])
  return [...vendors]
}
/**
 * The fields for a machine: one of a list, named "on", or the reader's own, as text, which the list takes as its value.
 * @param {Map<string, Engine.Accelerator>} accelerators
 */
export function machineFields(accelerators) {
  const own = /** @type {HTMLOptionElement} */ (make("option", { value: OWN_MACHINE }, "Custom"))
  const chosen = /** @type {HTMLSelectElement} */ (
    select("on", machinesByVendor(accelerators), "", { oninput: () => show(chosen.value) })
  )
  const text = /** @type {HTMLInputElement} */ (
    make("input", {
      name: "machine",
      size: 28,
      spellcheck: "false",
      autocomplete: "off",
      oninput: () => take(text.value),
    })
  )
  const written = labelled("Memory, bandwidth, peak FLOPS", text)
  chosen.prepend(own)
  function take(/** @type {string} */ on) {
    own.value = on
    chosen.selectedIndex = 0
  }
  function show(/** @type {string} */ on) {
    written.hidden = accelerators.has(on)
    if (written.hidden) chosen.value = on
    else {
      text.value = on
      take(on)
    }
  }
  return { fields: [labelled("Machine", chosen), written], show }
}
export const pairs = (/** @type {Iterable<string>} */ texts) =>
  [...texts].map(text => /** @type {[string, string]} */ ([text, text]))
export const numberField = (/** @type {string} */ name, /** @type {bigint} */ most, value = "") =>
  make("input", { type: "number", name, min: 1, max: most, step: 1, value, inputmode: "numeric" })
/**
 * The fields for what a model is run under; `best` goes before the formats.
 * @param {import("./elements.mjs").Option[]} best
 */
export const conditionFields = (best = []) => ({
  devices: labelled("Devices", numberField("devices", BOUNDS.MOST_DEVICES)),
  context: labelled("Context, tokens", numberField("context", BOUNDS.MOST_TOKENS)),
  batch: labelled("Batch size", numberField("batch", BOUNDS.MOST_TEXTS)),
  weights: labelled(
    "Weights",
    select("weights", [...best, ["published", "as published"], ...pairs([...WEIGHTS].slice(1))], ""),
  ),
  cache: labelled("KV cache", select("cache", pairs(CACHE_BYTES), "")),
})
/** @typedef {Record<string, import("./elements.mjs").Rule>} Rules */
/**
 * A form whose fields hold a state, and the line that says what is invalid.
 * @param {HTMLFormElement} form
 * @param {{ show: (on: string) => void }} machines
 */
export function stateIn(form, machines) {
  const problem = make("p", { class: "ep-problem", role: "alert", hidden: true })
  const fieldOf = (/** @type {string} */ name) =>
    /** @type {HTMLInputElement | HTMLSelectElement | null} */ (form.elements.namedItem(name))
  return {
    problem,
    fieldOf,
    write(/** @type {Record<string, string>} */ state) {
      for (const [name, value] of Object.entries(state)) put(fieldOf(name), value)
      machines.show(state.on)
    },
    /**
     * Takes the fields' values; throws the problem of an invalid one.
     * @param {Record<string, string>} state
     * @param {Record<string, string>} defaults
     * @param {Rules} rules
     */
    read(state, defaults, rules) {
      for (const field of form.querySelectorAll("[aria-invalid]")) field.removeAttribute("aria-invalid")
      for (const [name, rule] of Object.entries(rules)) {
        const { value, validity } = fieldOf(name) ?? { value: state[name] }
        state[name] = rule(validity?.badInput ? "…" : value || defaults[name])
      }
    },
    /** Shows an error, and returns it if it is the reader's. @param {unknown} error */
    refuse(error) {
      const isMistake = !isProblem(error)
      problem.hidden = false
      problem.textContent = `${isMistake ? "internal error: " : ""}${said(error)}. The figures below are unchanged.`
      fieldOf(said(error).split(" = ")[0])?.setAttribute("aria-invalid", "true")
      if (isMistake) reportError(error)
      return isMistake ? "" : said(error)
    },
  }
}
/**
 * Shows a table in its place. If the same table is there already, only its rows are replaced, and it stays sorted.
 * @param {HTMLElement} place
 * @param {string} caption
 * @param {string[]} head
 * @param {import("./elements.mjs").Row[]} rows
 */
export function show(place, caption, head, rows) {
  const name = [caption, ...head].join("|"),
    there = place.dataset.table === name && place.querySelector("table")
  if (!there) {
    place.dataset.table = name
    const made = table(caption, head, rows),
      inside = made.querySelector("table")
    replace(place, made)
    if (inside) mount(inside)
    return
  }
  there.tBodies[0].replaceChildren(...lines(head, rows))
  if (there.tHead?.querySelector("[aria-sort]")) order(there)
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

/**
 * A number in a readable unit, with the exact one as its title.
 * @param {Engine.Exact?} value
 * @param {string} unit
 */
export const exact = (value, unit) =>
  make("span", { title: typeof value === "bigint" ? `${grouped(value)} ${unit}` : null }, written(value, unit))
