// The cells of an answer's tables: what they say stands in the answer, and here how it is drawn.

import { searchOf } from "./address.mjs"
import { exact } from "./tool.mjs"
import { html } from "./view.mjs"

/**
 * @typedef {object} Said
 * @property {string} [text]
 * @property {Engine.Exact?} [value] instead of a text, in a unit
 * @property {string} [unit]
 * @property {string} [title]
 * @property {string} [sort] what a table sorts it by
 * @property {string} [range] in small after the text
 * @property {string} [abbreviates]
 * @property {string} [source] that it leads to
 * @property {Record<string, string>} [to] the choices that it leads to
 * @typedef {string | Said} Cell
 * @typedef {(text: string, to: Record<string, string>, sort?: string) => import("./view.mjs").Child} Link
 */

/**
 * @param {Cell} cell
 * @param {Link} link
 */
function drawn(cell, link) {
  if (typeof cell === "string") return cell
  const { text = "", value = null, unit, title, sort, range, abbreviates, source, to } = cell
  if (unit) return exact(value, unit)
  if (to) return link(text, to, sort)
  if (source) return html`<a href=${source} rel="noreferrer">${text}</a>`
  if (abbreviates) return html`<abbr title=${abbreviates}>${text}</abbr>`
  const more = range && html`<span class="ep-range">${range}</span>`
  return html`<span title=${title} data-sort=${sort}>${text}${more}</span>`
}
/**
 * The rows of an answer as a view has them.
 * @param {(Cell[] & { cls?: string })[]} rows
 * @param {Link} link
 * @returns {import("./view.mjs").Row[]}
 */
export const rowsOf = (rows, link) =>
  rows.map(row =>
    Object.assign(
      row.map(cell => drawn(cell, link)),
      row.cls ? { cls: row.cls } : {},
    ),
  )

/**
 * Takes back the first of these choices of which something differs; false if nothing does.
 * @param {Record<string, any>} values
 * @param {...Record<string, string>} all
 */
export function takenBack(values, ...all) {
  const one = all.find(those => Object.entries(those).some(([name, text]) => values[name] !== text))
  return Boolean(one && Object.assign(values, one))
}
/**
 * A link to a tool's page with other choices, taken without leaving it.
 * @param {import("./tool.mjs").Begun} begun
 * @param {string} text
 * @param {Record<string, string>} values
 * @param {string} [sort]
 * @param {() => void} [after] it was taken
 */
export function linkTo(begun, text, values, sort, after) {
  const at = new URL(location.href)
  at.search = searchOf(begun.tool.address({ ...begun.shown.values, ...values }).values)
  const follow = (/** @type {MouseEvent} */ event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return
    event.preventDefault()
    event.stopPropagation()
    begun.take(values)
    after?.()
  }
  return html`<a href=${at.href} data-sort=${sort} onclick=${follow}>${text}</a>`
}
