// What the tasks share: fields and cells as data, numbers, and rules of fields of their own.

import { asked, BOUNDS, Problem, py, shorten } from "../../conditions.mjs"

import { seconds } from "../kit.mjs"

export { BOUNDS, Problem, py, shorten }
export * from "../kit.mjs"
export * from "../words.mjs"

/**
 * @typedef {import("../address.mjs").Rule} Rule
 * @typedef {object} Field of a task
 * @property {string} name
 * @property {string} label none where the links of a table choose
 * @property {string} start what it says until it is changed
 * @property {Rule} rule
 * @property {import("../view.mjs").Groups} [groups] to choose from
 * @property {boolean} [isFound] by typing
 * @property {Record<string, unknown>} [attributes] of a field that one types into
 */

/**
 * A choice of names, with what each is where that is known.
 * @param {string} label
 * @param {string} name
 * @param {Iterable<string>} names
 * @param {string} start
 * @param {string | Rule} what they are called where a text is none of them, or the rule
 * @param {(name: string) => string} said
 * @returns {Field}
 */
export const choice = (label, name, names, start, what, said = name => name) => ({
  ...{ label, name, start },
  rule: typeof what === "function" ? what : text => asked.oneOf(name, text, dictOf(names), what),
  groups: [...names].map(one => [one, said(one)]),
})
const dictOf = (/** @type {Iterable<string>} */ names) => new py.Dict([...names].map(name => [name, name]))
/**
 * A field for a number or a text; one that is empty leaves the answer to the rule.
 * @param {string} label
 * @param {string} name
 * @param {(name: string) => Rule} ruleOf
 * @param {Record<string, unknown>} attributes
 * @returns {Field}
 */
export const written = (label, name, ruleOf, attributes = {}, start = "") => ({
  ...{ label, name, start, attributes },
  rule: ruleOf(name),
})
/** A rule that leaves the text as it was written. @param {(name: string, text: string) => unknown} check */
export const checked = check => (/** @type {string} */ name) => (/** @type {string} */ text) => {
  check(name, text)
  return text
}
/** @returns {import("../cells.mjs").Said} */
export const exact = (/** @type {Engine.Exact?} */ value, /** @type {string} */ unit) => ({ value, unit })
/**
 * What is given, with other values of some fields.
 * @template T
 * @param {T} given
 * @param {object} changes
 * @returns {T}
 */
export const changed = (given, changes) =>
  py.apply(/** @type {any} */ (py).module("dataclasses").replace, [given], changes)
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
/** A time; none where it needs a bandwidth that is not given. @param {Engine.Exact | null | undefined} time */
export const secondsOf = time =>
  time === null || time === undefined ? "–" : py.truth(time) ? seconds(py.float(time)) : "0"
