// Parses a tool's inputs: conditions, machines, and formats. Needs no forward pass.

import { M } from "./engine/base.mjs"
import "./engine/conditions.mjs"
import { BOUNDS, py } from "./problems.mjs"

export * from "./problems.mjs"
export const WEIGHTS = M["counting.formats"].WEIGHTS,
  formatMeant = M["counting.formats"].format_meant,
  cacheMeant = M["counting.formats"].cache_meant,
  CACHE_BYTES = M["counting.formats"].CACHE_BYTES
/**
 * Loads the rules for formats that come in a separate file: the GGUF formats.
 * @param {...string} formats
 */
export async function loadFormats(...formats) {
  if (formats.some(name => M["counting.gguf_types"].FORMATS.includes(name))) await loadGguf()
}
export const loadGguf = () => import("./engine/gguf.mjs")

// Parses a named input: a whole number, a share, or one of several names.
const { whole, share, one_of } = M["counting.asked"]
export const asked = {
  whole: (/** @type {string} */ name, /** @type {string} */ text, /** @type {bigint} */ most) =>
    whole(name, /^\d+$/.test(text) && text.length <= BOUNDS.MOST_DIGITS ? BigInt(text) : text, most),
  share,
  oneOf: one_of,
}

export const accelerator = (/** @type {object} */ given) => py.apply(M["counting.accelerators"].Accelerator, [], given)
export const OWN_MACHINE = M["counting.own_machine"].EXAMPLE
/**
 * A machine, from its slug or its description. Throws a Problem.
 * @param {string} text
 * @param {Map<string, Engine.Accelerator>} known
 */
export const machine = (text, known) => M["counting.own_machine"].named(text, new py.Dict([...known]))
export const conditions = (/** @type {object} */ given) => py.apply(M["counting.conditions"].Conditions, [], given)
