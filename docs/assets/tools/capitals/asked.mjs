// The panel that says what a number was made of.

import { make, table } from "../elements.mjs"

/**
 * @typedef {import("./origin.mjs").Origin} Origin
 * @typedef {import("./origin.mjs").Part} Part
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
export function panel({ title, how, head, rows, then, value, next }, { open, close, toggle, isExact }) {
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
    rows.length || then.length
      ? make(
          "dl",
          { class: "ep-then" },
          rows.length ? [make("dt", {}, "Sum of the last column"), make("dd", { "data-sum": sum }, said(sum))] : [],
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
