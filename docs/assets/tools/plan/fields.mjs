// What the tasks share: fields and cells as data, numbers, and rules of fields of their own.

import { BOUNDS, Problem, py, shorten } from "../../conditions.mjs"

export { BOUNDS, Problem, py, shorten }
export * from "../kit.mjs"

/**
 * @typedef {object} Field of a task
 * @property {string} label
 * @property {string} name
 * @property {import("../view.mjs").Groups} [groups] to choose from
 * @property {boolean} [isFound] by typing
 * @property {Record<string, unknown>} [attributes] of a field that one types into
 */

/**
 * A choice of names, with what each is where that is known.
 * @param {string} label
 * @param {string} name
 * @param {Iterable<string>} names
 * @param {(name: string) => string} said
 * @returns {Field}
 */
export const choice = (label, name, names, said = name => name) => ({
  ...{ label, name },
  groups: [...names].map(one => [one, said(one)]),
})
/**
 * A field for a number or a text; one that is empty leaves the answer to the rule.
 * @param {string} label
 * @param {string} name
 * @param {Record<string, unknown>} attributes
 * @returns {Field}
 */
export const written = (label, name, attributes = {}) => ({ label, name, attributes })
/** @returns {import("../cells.mjs").Said} */
export const exact = (/** @type {Engine.Exact?} */ value, /** @type {string} */ unit) => ({ value, unit })
/** A row that adds up those before it. @param {import("../cells.mjs").Cell[]} cells */
export const total = cells => Object.assign(cells, { cls: "total" })
/**
 * A whole number from 0, or nothing.
 * @param {string} name
 * @returns {import("../address.mjs").Rule}
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
