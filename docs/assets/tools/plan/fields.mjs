// What the tasks share: elements, numbers, and rules of fields of their own.

import { BOUNDS, Problem, py, shorten } from "../../conditions.mjs"
import { labelled, make, select } from "../elements.mjs"

export { BOUNDS, Problem, py, shorten }
export * from "../elements.mjs"
export * from "../figures.mjs"
export { exact, finder, modelsByFamily, oneListed, oneMachine } from "../forms.mjs"

/**
 * A choice of names, with what each is where that is known.
 * @param {string} label
 * @param {string} name
 * @param {Iterable<string>} names
 * @param {string} value
 * @param {(name: string) => string} said
 */
export const choice = (label, name, names, value, said = name => name) =>
  labelled(
    label,
    select(
      name,
      [...names].map(one => [one, said(one)]),
      value,
    ),
  )
/**
 * A field for a number or a text; one that is empty leaves the answer to the rule.
 * @param {string} label
 * @param {string} name
 * @param {Record<string, import("../elements.mjs").Attribute>} attributes
 */
export const written = (label, name, attributes = {}) =>
  labelled(label, make("input", { name, spellcheck: "false", autocomplete: "off", size: 8, ...attributes }))
/**
 * A whole number from 0, or nothing.
 * @param {string} name
 * @returns {import("../elements.mjs").Rule}
 */
export const wholeOrNothing = name => text => {
  if (text === "" || (/^\d+$/.test(text) && text.length < 19)) return text && String(BigInt(text))
  throw Problem(`${name} = ${shorten(text)}: expected a whole number`, "correct it, or leave it empty")
}
export const orNull = (/** @type {string} */ text) => (text === "" ? null : BigInt(text))
export const secondsOf = (
  /** @type {Engine.Exact | null | undefined} */ time,
  /** @type {(x: number) => string} */ seconds,
) => (time === null || time === undefined ? "–" : py.truth(time) ? seconds(py.float(time)) : "0")
