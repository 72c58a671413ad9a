// The numbers that say what they were made of, among them those of what may come next, and the panel that says it.

import { html, table } from "../view.mjs"
import { bar } from "./matrices.mjs"

/**
 * @typedef {{ value: number, of?: string }} Part a number, and its place if it can be asked for in turn
 * @typedef {object} Origin what a number of a run was made of: numbers that were multiplied or added
 * @property {string} title
 * @property {string} how it was made, in words
 * @property {string[]} head of the table of its terms; none if the number is stored
 * @property {[label: string, ...parts: Part[]][]} rows
 * @property {boolean} [isList] whether the last column is not added up
 * @property {[label: string, part: Part][]} then what is done to the sum of the last column, or to the first of these
 * @property {number} value
 * @property {[label: string, place: string][]} next where it goes
 * @property {number[]} [pair] layer, head, and the tokens that look and are looked at, of a score
 * @typedef {{ open(place: string): void, close(): void, toggle(): void, isExact: boolean }} Doing
 */

/**
 * A number of a table that says what it was made of.
 * @param {string} name
 * @param {string} place
 * @param {string} said
 * @param {Pick<Doing, "open">} doing
 */
export const numberOf = (name, place, said, { open }) =>
  html`<button type="button" class="ep-word" data-key=${`cell ${place}`} aria-label=${`${name}: ${said}`}
    onclick=${() => open(place)}>${said}</button>`

/**
 * The cells of a row: the text, which is appended, what stands after it, and its numbers.
 * @param {import("./numbers.mjs").Likely} one
 * @param {{ isFull: boolean, append: (id: number) => void, ask: { open(place: string): void }, more?: string[] }} how
 */
export const cellsOf = (
  { id, name, score, share, before, left, cut, bar: part },
  { isFull, append, ask, more = [] },
) => [
  isFull
    ? name
    : html`<button type="button" class="ep-word" title=${`Append ${name}`} onclick=${() => append(id)}>
        ${name}
      </button>`,
  ...more,
  numberOf(`Logit of ${name}`, `logit/${id}`, score, ask),
  numberOf(`Probability of ${name}`, `chance/${id}`, share, ask),
  ...(before === undefined ? [] : [before]),
  ...(left ? [numberOf(`Probability after the cut of ${name}`, `left/${id}`, left, ask)] : cut ? [cut] : []),
  bar(part),
]
/** @param {string[]} notes */
export const notesOf = notes => notes.map(note => html`<p class="ep-conventions">${note}</p>`)

/**
 * @param {Origin} origin
 * @param {Doing} doing
 */
export function panel({ title, how, head, rows, then, value, next, isList }, { open, close, toggle, isExact }) {
  const said = (/** @type {number} */ x) => (Number.isNaN(x) ? "" : (isExact ? `${x}` : x.toFixed(4)).replace("-", "−"))
  const number = (/** @type {Part} */ { value, of }) =>
    of === undefined
      ? said(value)
      : html`<button type="button" class="ep-word" data-key=${`of ${of}`} onclick=${() => open(of)}>
          ${said(value)}
        </button>`
  const sum = rows.map(row => /** @type {Part} */ (row[row.length - 1]).value).reduce((all, x) => all + x, 0),
    isSum = rows.length > 0 && !isList,
    heads = head.map((name, i) => (i ? `#${name}` : name)),
    escaped = (/** @type {KeyboardEvent} */ event) => event.key === "Escape" && close()
  const terms = rows.map(([label, ...parts]) => [label, ...parts.map(number)])
  return html`<section key=${`origin ${title}`} class="ep-origin" tabindex="-1" data-key="origin"
    aria-label="What this number is made of" onkeydown=${escaped}>
    <p class="ep-what"><strong>${title}</strong>${" = "}<output data-value=${value}>${said(value)}</output></p>
    <p>${how}</p>
    ${rows.length > 0 && table("Its terms", heads, terms)}
    ${
      (isSum || then.length > 0) &&
      html`<dl class="ep-then">
      ${isSum && html`<dt>Sum of the last column</dt><dd data-sum=${sum}>${said(sum)}</dd>`}
      ${then.map(([label, part]) => html`<dt>${label}</dt><dd data-then=${part.value}>${number(part)}</dd>`)}
    </dl>`
    }
    <p class="ep-row">
      ${next.map(
        ([label, place]) =>
          html`<button type="button" data-key=${`next ${place}`} onclick=${() => open(place)}>
            ${`Goes into ${label}`}
          </button>`,
      )}
      <button type="button" data-key="exact" aria-pressed=${isExact} onclick=${toggle}>Full precision</button>
      <button type="button" data-key="close" onclick=${close}>Close</button>
    </p>
  </section>`
}
