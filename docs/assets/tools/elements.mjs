// Elements, fields and tables: the parts of the tools that are not drawn by view.mjs yet.

export { accepted, steps } from "./address.mjs"

/**
 * @typedef {Node | string | null | undefined} Child a string is text; null and undefined are left out
 * @typedef {Child | Child[]} Children
 * @typedef {string | number | bigint | boolean | URL | null | undefined | ((event: any) => unknown)} Attribute
 * @typedef {Children[] & { cls?: string }} Row of a table: its cells, and a class
 * @typedef {[value: string, text: string]} Option
 * @typedef {import("./address.mjs").Rule} Rule
 */

/**
 * An element. An attribute that begins with `on` is a listener; one that is false or nothing is left out.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} name
 * @param {Record<string, Attribute>} attributes
 * @param {...Children} children
 */
export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name)
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(key.slice(2), value)
    else if (value === true) element.setAttribute(key, "")
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(key, `${value}`)
  }
  element.append(...those(children))
  return element
}
/** @returns {(Node | string)[]} */
const those = (/** @type {Children[]} */ children) =>
  children.flat().filter(child => child !== null && child !== undefined)
export const replace = (/** @type {Element} */ element, /** @type {Children[]} */ ...children) =>
  element.replaceChildren(...those(children))

/**
 * A choice; options as [value, text] or, below a heading, [heading, options].
 * @param {string} name
 * @param {(Option | [heading: string, options: Option[]])[]} groups
 * @param {string} value
 * @param {Record<string, Attribute>} attributes
 */
export function select(name, groups, value, attributes = {}) {
  const option = (/** @type {Option} */ [v, text]) => make("option", { value: v, selected: v === value }, text)
  return make(
    "select",
    { name, ...attributes },
    groups.map(([first, rest]) =>
      Array.isArray(rest) ? make("optgroup", { label: first }, rest.map(option)) : option([first, rest]),
    ),
  )
}
// Gives a field a value that its reader did not choose there; what is drawn for it hears of it.
export function put(/** @type {HTMLInputElement | HTMLSelectElement | null} */ field, /** @type {string} */ value) {
  if (!field) return
  field.value = value
  field.dispatchEvent(new Event("put"))
}
/**
 * @param {Children} text
 * @param {Children} field
 * @param {...Children} after
 */
export const labelled = (text, field, ...after) => make("label", {}, make("span", {}, text), field, ...after)

/**
 * The rows of a table; a head that begins with # is of numbers. Roles are said, since a style may show them as blocks.
 * @param {string[]} head
 * @param {Row[]} rows
 */
export const lines = (head, rows) =>
  rows.map(row =>
    make(
      "tr",
      { class: row.cls ?? null, role: "row" },
      row.map((cell, i) =>
        make(
          i ? "td" : "th",
          {
            scope: i ? null : "row",
            role: i ? "cell" : "rowheader",
            "data-head": i ? head[i].replace(/^#/, "") : null, // beside the cell where rows are stacked
            class: i && head[i].startsWith("#") ? "num" : null,
            "data-sort": cell instanceof HTMLElement ? cell.dataset.sort : null,
          },
          ...[cell].flat(),
        ),
      ),
    ),
  )
/**
 * @param {string} caption
 * @param {string[]} head
 * @param {Row[]} rows
 */
export const table = (caption, head, rows) =>
  make(
    "div",
    { class: "ep-scroll", tabindex: 0, role: "group", "aria-label": caption },
    make(
      "table",
      { class: head.length > 2 ? "ep-table ep-wide" : "ep-table", role: "table" },
      make("caption", {}, caption),
      make(
        "thead",
        {},
        make(
          "tr",
          {},
          head.map(h =>
            make(
              h ? "th" : "td",
              { scope: h ? "col" : null, class: h.startsWith("#") ? "num" : null },
              h.replace(/^#/, ""),
            ),
          ),
        ),
      ),
      make("tbody", {}, lines(head, rows)),
    ),
  )

// The line that lists the invalid parts of an address.
export function refusals() {
  const line = make("p", { class: "ep-problem", role: "alert", hidden: true })
  const show = (/** @type {string[]} */ wrong) => {
    const more = wrong.length > MOST_SAID ? [`${wrong.length - MOST_SAID} more`] : [],
      said = [...wrong.slice(0, MOST_SAID).map(one => cut(one, 400)), ...more].join(". ")
    line.hidden = !said
    line.textContent = said ? `Ignored parts of the link: ${said}.` : ""
  }
  return { line, show }
}
const MOST_SAID = 3
const cut = (/** @type {string} */ text, /** @type {number} */ most) =>
  text.length > most ? `${text.slice(0, most - 1)}…` : text
