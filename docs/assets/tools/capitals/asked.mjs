// The panel that says what a number was made of.

import { make, table } from "../elements.mjs"

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
  make(
    "button",
    {
      type: "button",
      class: "ep-word",
      "data-key": `cell ${place}`,
      "aria-label": `${name}: ${said}`,
      onclick: () => open(place),
    },
    said,
  )

/**
 * @param {Origin} origin
 * @param {Doing} doing
 */
export function panel({ title, how, head, rows, then, value, next, isList }, { open, close, toggle, isExact }) {
  const said = (/** @type {number} */ x) => (Number.isNaN(x) ? "" : (isExact ? `${x}` : x.toFixed(4)).replace("-", "−"))
  const number = (/** @type {Part} */ { value, of }) =>
    of === undefined
      ? said(value)
      : make(
          "button",
          { type: "button", class: "ep-word", "data-key": `of ${of}`, onclick: () => open(of) },
          said(value),
        )
  const last = rows.map(row => /** @type {Part} */ (row[row.length - 1]).value),
    sum = last.reduce((all, x) => all + x, 0)
  return make(
    "section",
    {
      class: "ep-origin",
      tabindex: -1,
      "data-key": "origin",
      "aria-label": "What this number is made of",
      onkeydown: (/** @type {KeyboardEvent} */ event) => event.key === "Escape" && close(),
    },
    make(
      "p",
      { class: "ep-what" },
      make("strong", {}, title),
      " = ",
      make("output", { "data-value": value }, said(value)),
    ),
    make("p", {}, how),
    rows.length
      ? table(
          "Its terms",
          head.map((name, i) => (i ? `#${name}` : name)),
          rows.map(([label, ...parts]) => [label, ...parts.map(number)]),
        )
      : null,
    (rows.length && !isList) || then.length
      ? make(
          "dl",
          { class: "ep-then" },
          rows.length && !isList
            ? [make("dt", {}, "Sum of the last column"), make("dd", { "data-sum": sum }, said(sum))]
            : [],
          then.flatMap(([label, part]) => [
            make("dt", {}, label),
            make("dd", { "data-then": part.value }, number(part)),
          ]),
        )
      : null,
    make(
      "p",
      { class: "ep-row" },
      next.map(([label, place]) =>
        make(
          "button",
          { type: "button", "data-key": `next ${place}`, onclick: () => open(place) },
          `Goes into ${label}`,
        ),
      ),
      make(
        "button",
        { type: "button", "data-key": "exact", "aria-pressed": `${isExact}`, onclick: toggle },
        "Full precision",
      ),
      make("button", { type: "button", "data-key": "close", onclick: close }, "Close"),
    ),
  )
}
