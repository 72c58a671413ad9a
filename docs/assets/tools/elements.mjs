// Elements, choices, tables, and the address: what every tool is made of.

/**
 * @typedef {Node | string | null | undefined} Child one that is no element is text, one that is nothing is left out
 * @typedef {Child | Child[]} Children
 * @typedef {string | number | bigint | boolean | URL | null | undefined | ((event: any) => unknown)} Attribute
 * @typedef {Children[] & { cls?: string }} Row of a table: its cells, and a class
 * @typedef {[value: string, text: string]} Option
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
/**
 * @param {Children} text
 * @param {Children} field
 * @param {...Children} after
 */
export const labelled = (text, field, ...after) => make("label", {}, make("span", {}, text), field, ...after)

/**
 * The rows of a table; a head that begins with # is of numbers.
 * @param {string[]} head
 * @param {Row[]} rows
 */
export const lines = (head, rows) =>
  rows.map(row =>
    make(
      "tr",
      { class: row.cls ?? null },
      row.map((cell, i) =>
        make(
          i ? "td" : "th",
          { scope: i ? null : "row", class: i && head[i].startsWith("#") ? "num" : null },
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
      { class: "ep-table" },
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

/**
 * The address says what is chosen: what follows `?` for what may be sent to the site, nothing of a reader's own config.
 * @param {Record<string, string | null | undefined>} values
 */
export function remember(values) {
  const at = new URL(location.href)
  at.search = `${new URLSearchParams(Object.entries(values).flatMap(([k, v]) => (v ? [[k, v]] : [])))}`
  history.replaceState(history.state, "", at)
}
