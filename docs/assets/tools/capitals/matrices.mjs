// Numbers as a reader sees them: rounded, as shares, as bars, in matrices with shaded cells and in small maps.

import { html } from "../view.mjs"
import { two } from "./numbers.mjs"

export * from "./numbers.mjs"

export const bar = (/** @type {number} */ share) =>
  html`<svg viewBox="0 0 100 8" preserveAspectRatio="none" class="ep-share" aria-hidden="true">
    <rect width=${100 * share} height="8" />
  </svg>`
/** A small map of shares: a square for each row and column, the darker the larger. */
export const small = (/** @type {number[][]} */ rows) =>
  html`<svg viewBox=${`0 0 ${rows.length} ${rows.length}`} class="ep-thumb" aria-hidden="true">
    ${rows.map((row, y) =>
      row.map((share, x) => html`<rect x=${x} y=${y} width="1" height="1" fill-opacity=${share.toFixed(3)} />`),
    )}
  </svg>`

/** @typedef {{ chosen: string | Set<string>, open(place: string): void }} Ask which is asked for, and how to ask */

/**
 * A matrix with cells shaded by magnitude; `null` is masked.
 * @param {string} name
 * @param {string[]} heads
 * @param {string[]} columns
 * @param {(number | null)[][]} rows
 * @param {object} [how]
 * @param {number} [how.newest] the row that is new
 * @param {number} [how.lit] the row that is lit
 * @param {(i: number, j: number) => string} [how.place] of a cell's number, by which it is asked for
 * @param {Ask} [how.ask]
 * @param {(x: number) => string} [how.said]
 * @param {[title: string, texts: string[]]} [how.after] a last column of texts
 */
export function matrix(name, heads, columns, rows, { newest, lit, place, ask, said = two, after } = {}) {
  const largest = Math.max(...rows.flat().map(x => Math.abs(x ?? 0))) || 1
  const shade = (/** @type {number?} */ x) => {
    if (x === null) return "masked"
    const steps = Math.ceil((4 * Math.abs(x)) / largest - 1e-9)
    return steps ? `${x < 0 ? "minus" : "plus"}-${steps}` : ""
  }
  const cell = (/** @type {number?} */ x, /** @type {number} */ i, /** @type {number} */ j) => {
    const of = x === null || !place ? null : place(i, j) || null
    return html`<td class=${`num ${shade(x)}`} ...${asked(of, ask)}>${x === null ? "–" : said(x)}</td>`
  }
  return html`<div class="ep-scroll" tabindex="0" role="group" aria-label=${name}>
    <table class="ep-table ep-matrix" ...${place && ask ? asking(ask) : {}}>
      <caption>${name}</caption>
      <thead>
        <tr>
          <td></td>${columns.map(title => html`<th scope="col" class="num">${title}</th>`)}
          ${after && html`<th scope="col">${after[0]}</th>`}
        </tr>
      </thead>
      <tbody>
        ${rows.map(
          (row, i) =>
            html`<tr class=${i === newest ? "newest" : i === lit ? "lit" : undefined}>
              <th scope="row">${heads[i]}</th>${row.map((x, j) => cell(x, i, j))}
              ${after && html`<td>${after[1][i]}</td>`}
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`
}

// A cell that can be asked for: one of a table is reached by Tab, the others by the arrow keys.
const asked = (/** @type {string?} */ of, /** @type {Ask | undefined} */ ask) =>
  of === null || !ask
    ? {}
    : { "data-place": of, "data-key": `cell ${of}`, tabindex: "-1", "aria-selected": isChosen(ask, of) }
const isChosen = (/** @type {Ask} */ { chosen }, /** @type {string} */ of) =>
  typeof chosen === "string" ? chosen === of : chosen.has(of)
/** @returns {Record<string, any>} */
const asking = (/** @type {Ask} */ ask) => ({
  role: "grid",
  "aria-multiselectable": typeof ask.chosen === "string" ? undefined : "true",
  ref: (/** @type {Element?} */ table) => table && reach(table),
  onclick: (/** @type {MouseEvent} */ event) => {
    const cell = cellOf(event.target)
    if (cell) ask.open(cell.dataset.place ?? "")
  },
  onfocusin: (/** @type {FocusEvent} */ event) => {
    const cell = cellOf(event.target)
    if (cell) reach(/** @type {HTMLElement} */ (event.currentTarget), cell)
  },
  onkeydown: (/** @type {KeyboardEvent} */ event) => {
    const cell = cellOf(event.target)
    if (!cell) return
    if (event.key === "Enter" || event.key === " ") ask.open(cell.dataset.place ?? "")
    else {
      const to = beside(cell, event.key)
      if (!to) return
      to.focus()
    }
    event.preventDefault()
  },
})
const cellOf = (/** @type {EventTarget?} */ target) =>
  target instanceof Element ? /** @type {HTMLElement?} */ (target.closest("td[data-place]")) : null
function beside(/** @type {HTMLElement} */ cell, /** @type {string} */ key) {
  const row = /** @type {HTMLTableRowElement} */ (cell.parentElement),
    column = [...row.cells].indexOf(/** @type {HTMLTableCellElement} */ (cell))
  /** @type {Record<string, () => Element | null | undefined>} */
  const there = {
    ArrowLeft: () => cell.previousElementSibling,
    ArrowRight: () => cell.nextElementSibling,
    ArrowUp: () => /** @type {HTMLTableRowElement?} */ (row.previousElementSibling)?.cells[column],
    ArrowDown: () => /** @type {HTMLTableRowElement?} */ (row.nextElementSibling)?.cells[column],
    Home: () => row.querySelector("td[data-place]"),
    End: () => [...row.querySelectorAll("td[data-place]")].at(-1),
  }
  return Object.hasOwn(there, key) ? cellOf(there[key]() ?? null) : null
}
/** Makes a cell the one of its table that Tab reaches; the first, unless one is given. */
export function reach(/** @type {Element} */ table, /** @type {Element?} */ cell = null) {
  const cells = [...table.querySelectorAll("td[data-place]")],
    one = cell ?? cells.find(each => each.getAttribute("aria-selected") === "true") ?? cells[0]
  for (const each of cells) each.setAttribute("tabindex", each === one ? "0" : "-1")
}

/**
 * A table of small maps, one of each head in each layer, and of what stands beside them.
 * @param {string} one what a row and a column of a map is for
 * @param {string[]} titles of the columns after that of the layers
 * @param {[layer: string, ...cells: import("../view.mjs").Child[]][]} rows
 */
export const tableOfHeads = (one, titles, rows) => {
  const caption = `All heads: a row for each ${one}, a column for each ${one} that it looks at. Press one to open it.`
  return html`<div class="ep-scroll" tabindex="0" role="group" aria-label="All heads">
    <table class="ep-table ep-heads">
      <caption>${caption}</caption>
      <thead><tr>${["Layer", ...titles].map(title => html`<th scope="col">${title}</th>`)}</tr></thead>
      <tbody>
        ${rows.map(
          ([layer, ...cells]) =>
            html`<tr key=${layer}><th scope="row">${layer}</th>${cells.map(cell => html`<td>${cell}</td>`)}</tr>`,
        )}
      </tbody>
    </table>
  </div>`
}
