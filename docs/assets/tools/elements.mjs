// Elements, fields, tables, and the address: the parts of every tool.

/**
 * @typedef {Node | string | null | undefined} Child a string is text; null and undefined are left out
 * @typedef {Child | Child[]} Children
 * @typedef {string | number | bigint | boolean | URL | null | undefined | ((event: any) => unknown)} Attribute
 * @typedef {Children[] & { cls?: string }} Row of a table: its cells, and a class
 * @typedef {[value: string, text: string]} Option
 * @typedef {(text: string) => string} Rule checks a value: returns its normal form, or throws what is wrong
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

/**
 * Keeps the choices in the address: after `?` what the server may see, after `#` the reader's own config, which it
 * never sees. Each change is a step of the browser's history; typing into one field, or dragging, is a single step.
 * @param {HTMLElement} place the tool's
 * @param {() => { values: Record<string, string | null | undefined>, hash?: string }} chosen
 * @param {() => void} recall shows the choices of the address
 * @returns {(field?: EventTarget | null) => void} to be called after a change, with its field if it has one
 */
export function steps(place, chosen, recall) {
  const path = location.pathname
  /** @type {EventTarget?} */
  let typed = null
  /** @type {number | undefined} */
  let waiting
  function write(/** @type {"pushState" | "replaceState"} */ how) {
    clearTimeout(waiting)
    waiting = undefined
    if (!place.isConnected) return // the address is another page's by now
    const { values, hash } = chosen(),
      at = new URL(location.href)
    at.search = `${new URLSearchParams(Object.entries(values).flatMap(([k, v]) => (v ? [[k, v]] : [])))}`
    if (hash !== undefined) at.hash = hash
    if (at.href.length <= LONGEST && at.href !== location.href) history[how](history.state, "", at)
  }
  place.addEventListener("focusout", () => {
    if (waiting !== undefined) write("replaceState")
    typed = null
  })
  addEventListener("popstate", function back() {
    if (!place.isConnected) return removeEventListener("popstate", back)
    if (location.pathname !== path) return
    clearTimeout(waiting)
    waiting = undefined
    typed = null
    recall()
  })
  return (field = null) => {
    const goesOn = field !== null && field === typed
    typed = isTyped(field) ? field : null
    if (!goesOn) return write("pushState")
    clearTimeout(waiting)
    waiting = setTimeout(write, 100, "replaceState") // browsers allow an address to change only so often
  }
}
const LONGEST = 500_000 // characters of an address: what every browser keeps
const isTyped = (/** @type {EventTarget?} */ field) =>
  field instanceof HTMLTextAreaElement ||
  (field instanceof HTMLInputElement && ["text", "number", "range"].includes(field.type))

/**
 * The values of an address by the names of the rules, and a line for each invalid one.
 * @template {Record<string, string>} T
 * @param {URLSearchParams} given
 * @param {Record<string, Rule>} rules
 * @param {T} defaults
 * @returns {[values: T, wrong: string[]]}
 */
export function accepted(given, rules, defaults) {
  const values = /** @type {Record<string, string>} */ ({ ...defaults }),
    wrong = []
  for (const [name, rule] of Object.entries(rules)) {
    const text = given.get(name)
    try {
      if (text !== null) values[name] = rule(text)
    } catch (error) {
      wrong.push(error instanceof Error ? error.message : String(error))
    }
  }
  return [/** @type {T} */ (values), wrong]
}

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
