// What the tools are drawn with: Preact, in templates of htm, and the parts that several of their views have.

import { Component, html, render } from "../vendor/preact.mjs"
import { mount, order, sortable } from "../tables.mjs"

export { Component, html, render }

/**
 * @typedef {import("../vendor/preact.mjs").Child} Child
 * @typedef {import("../vendor/preact.mjs").VNode} VNode
 * @typedef {Child[] & { cls?: string, line?: VNode }} Row of a table: its cells, a class, and what is drawn of it
 * @typedef {(import("./kit.mjs").Option | [heading: string, options: import("./kit.mjs").Option[]])[]} Groups
 * @typedef {Record<string, unknown>} Attributes
 */

// Fields

/** What a form does when it is sent, and a place over which files are held. @param {Event} event */
export const stay = event => event.preventDefault()
/**
 * @param {Child} text
 * @param {Child} field
 */
export const labelled = (text, field, isHidden = false) =>
  html`<label hidden=${isHidden}><span>${text}</span>${field}</label>`

/** Options that are called as they are. @returns {import("./kit.mjs").Option[]} */
export const pairs = (/** @type {Iterable<string | number>} */ values) =>
  [...values].map(value => [`${value}`, `${value}`])
/** @returns {VNode[]} */
export const optionsOf = (/** @type {Groups} */ groups) =>
  groups.map(([first, rest]) =>
    Array.isArray(rest)
      ? html`<optgroup label=${first}>${optionsOf(rest)}</optgroup>`
      : html`<option value=${first}>${rest}</option>`,
  )
/**
 * A choice; options as [value, text] or, below a heading, [heading, options].
 * @param {string} name
 * @param {Groups} groups
 * @param {string} value
 * @param {Attributes} attributes
 */
export const select = (name, groups, value, attributes = {}) =>
  html`<select name=${name} value=${value} ...${attributes}>${optionsOf(groups)}</select>`

// Results

/**
 * The rows of a table; a head that begins with # is of numbers. Roles are said, since a style may show them as blocks.
 * @param {string[]} head
 * @param {Row[]} rows
 */
const lines = (head, rows) =>
  rows.map(
    row =>
      (row.line ??= html`<tr class=${row.cls} role="row">
        <th scope="row" role="rowheader" data-sort=${sortOf(row[0])}>${row[0]}</th>
        ${row.slice(1).map(
          (cell, i) =>
            html`<td role="cell" data-head=${head[i + 1].replace(/^#/, "")} data-sort=${sortOf(cell)}
              class=${head[i + 1].startsWith("#") ? "num" : undefined}>${cell}</td>`,
        )}
      </tr>`),
  )
const headOf = (/** @type {string[]} */ head) => {
  const title = (/** @type {string} */ text) =>
    text
      ? html`<th scope="col" class=${text.startsWith("#") ? "num" : undefined}>${text.replace(/^#/, "")}</th>`
      : html`<td></td>`
  return html`<thead><tr>${head.map(title)}</tr></thead>`
}
const sortOf = (/** @type {any} */ cell) => cell?.props?.["data-sort"]
/**
 * @typedef {{ caption: string, head: string[], rows: Row[], isTaken?: boolean }} Tabled
 * @extends {Component<Tabled>}
 */
class Table extends Component {
  /** @type {HTMLTableElement | undefined} */
  table
  head = headOf(this.props.head)
  componentDidMount() {
    if (this.table && this.props.isTaken) mount(this.table)
  }
  /** Rows are changed, and others added, in the order that they have here. */
  componentWillUpdate() {
    this.sort(true)
  }
  componentDidUpdate() {
    if (this.table && this.props.isTaken) sortable(this.table)
    this.sort()
  }
  sort(isBack = false) {
    if (this.table?.tHead?.querySelector("[aria-sort]")) order(this.table, isBack)
  }
  /** @param {Tabled} props */
  render({ caption, head, rows }) {
    return html`<div class="ep-scroll" tabindex="0" role="group" aria-label=${caption}>
      <table ref=${(/** @type {HTMLTableElement} */ one) => void (this.table = one)} role="table"
        class=${head.length > 2 ? "ep-table ep-wide" : "ep-table"}>
        <caption>${caption}</caption>
        ${this.head}
        <tbody>${lines(head, rows)}</tbody>
      </table>
    </div>`
  }
}
/**
 * @param {string} caption
 * @param {string[]} head
 * @param {Row[]} rows
 */
export const table = (caption, head, rows, isTaken = false) =>
  html`<${Table} key=${[caption, ...head].join("|")} ...${{ caption, head, rows, isTaken }} />`
/**
 * A table as wide as what it holds, which can be copied, and sorted, and stays so while its caption and heads do.
 * @param {string} caption
 * @param {string[]} head
 * @param {Row[]} rows
 */
export const show = (caption, head, rows) => html`<div data-table=${caption}>${table(caption, head, rows, true)}</div>`

/**
 * A part that is drawn again only when something else is what it is of.
 * @extends {Component<{ of: unknown[], children: () => Child }>}
 */
export class Kept extends Component {
  shouldComponentUpdate(/** @type {{ of: unknown[] }} */ { of }) {
    return of.some((one, i) => one !== this.props.of[i])
  }
  render() {
    return this.props.children()
  }
}
/**
 * Details, which are drawn only while they are open, by a script that is loaded then.
 * @typedef {{ title: string, load?: () => Promise<any>, children: (loaded: any) => Child, hidden?: boolean }} Fold
 * @extends {Component<Fold, { isOpen: boolean, loaded: any }>}
 */
export class Folded extends Component {
  /** @type {{ isOpen: boolean, loaded: any }} */
  state = { isOpen: false, loaded: null }
  /** @type {Child} */
  last = null
  /** @param {{ target: any }} event */
  async toggle({ target }) {
    this.setState({ isOpen: target.open })
    if (target.open) this.setState({ loaded: (await this.props.load?.()) ?? {} })
  }
  render() {
    const { title, children, hidden = false } = this.props,
      { isOpen, loaded } = this.state
    if (isOpen && loaded) this.last = children(loaded)
    return html`<details hidden=${hidden} ontoggle=${this.toggle.bind(this)}>
      <summary>${title}</summary><div>${this.last}</div>
    </details>`
  }
}

const MOST_SAID = 3
const cut = (/** @type {string} */ text, /** @type {number} */ most) =>
  text.length > most ? `${text.slice(0, most - 1)}…` : text
// The line that lists the invalid parts of an address.
export const refusals = (/** @type {string[]} */ wrong) => {
  const more = wrong.length > MOST_SAID ? [`${wrong.length - MOST_SAID} more`] : [],
    said = [...wrong.slice(0, MOST_SAID).map(one => cut(one, 400)), ...more].join(". ")
  return alert(said && `Ignored parts of the link: ${said}.`)
}
/** A line that is said as soon as it is there. @param {string} text */
export const alert = text => html`<p class="ep-problem" role="alert" hidden=${!text}>${text}</p>`
