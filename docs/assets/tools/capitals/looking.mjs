// One head over a text: its attention weights, as lines too, and its keys in the cache.

import { html } from "../view.mjs"
import { lines } from "./lines.mjs"
import { matrix } from "./matrices.mjs"

/**
 * @typedef {object} Head
 * @property {string} name of the table
 * @property {string[]} names of the tokens, from the first that is shown
 * @property {number} layer
 * @property {number} head
 * @property {number} [from] the first token that is shown
 * @property {import("./matrices.mjs").Ask} ask
 * @property {number} [lit] the row that is lit
 */

/**
 * @param {Head & { rows: (number | null)[][] }} of null is masked
 * @param {string} one what the text is made of
 * @param {boolean} hasLines
 * @param {(chosen: { lines: string }) => void} set
 */
export const attention = ({ name, names, rows, layer, head, from = 0, ask, lit }, one, hasLines, set) => [
  matrix(name, names, names, rows, {
    place: (i, j) => `share/${layer}/${head}/${from + i}/${from + j}`,
    ...{ ask, lit },
  }),
  html`<label class="ep-on">
    <input type="checkbox" data-key="lines" checked=${hasLines}
      onchange=${() => set({ lines: hasLines ? "" : "1" })} />${`Lines from ${one} to ${one}`}
  </label>`,
  hasLines &&
    lines(
      names,
      rows.map(row => row.map(x => x ?? 0)),
      name,
    ),
]
/**
 * @param {Head & { rows: number[][] }} of
 * @param {string} said of it
 */
export const cache = ({ name, names, rows, layer, head, from = 0, ask, lit }, said) => [
  matrix(
    name,
    names,
    rows[0].map((_, i) => `${i + 1}`),
    rows,
    {
      newest: rows.length - 1,
      place: (i, j) => `key/${layer}/${head}/${from + i}/${j}`,
      ...{ ask, lit },
    },
  ),
  html`<p class="ep-conventions">${said}</p>`,
]
