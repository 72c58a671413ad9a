// Attention as lines from word to word: the thicker a line, the more one looks at the other.

import { html } from "../view.mjs"
import { percent } from "./matrices.mjs"

const ROW = 26,
  WIDE = 340,
  SIDE = 110, // for the words
  LEAST = 0.01 // no line is drawn below

/**
 * @param {string[]} words
 * @param {number[][]} shares a row for each word that looks
 * @param {string} name
 */
export function lines(words, shares, name) {
  const middle = (/** @type {number} */ i) => ROW * (i + 0.5)
  const word = (/** @type {number} */ i, /** @type {boolean} */ isLeft) =>
    html`<text x=${isLeft ? SIDE - 8 : WIDE - SIDE + 8} y=${middle(i)} text-anchor=${isLeft ? "end" : "start"}>
      ${short(words[i])}
    </text>`
  const line = (/** @type {number} */ i, /** @type {number} */ j, /** @type {number} */ share) =>
    share >= LEAST &&
    html`<path d=${curve(middle(i), middle(j))} stroke-width=${(1 + 5 * share).toFixed(2)}
      stroke-opacity=${(0.12 + 0.88 * share).toFixed(2)}>
      <title>${`${words[i]} looks at ${words[j]}: ${percent(share)}`}</title>
    </path>`
  return html`<figure class="ep-word-lines">
    <figcaption>
      ${`${name}: from each word, on the left, to those that it looks at. The table has the numbers.`}
    </figcaption>
    <svg viewBox=${`0 0 ${WIDE} ${ROW * words.length}`} aria-hidden="true">
      ${words.map((_, i) => word(i, false))}
      ${shares.map(
        (row, i) =>
          html`<g>
            <rect x="0" y=${ROW * i} width=${SIDE} height=${ROW} />${word(i, true)}
            ${row.map((share, j) => line(i, j, share))}
          </g>`,
      )}
    </svg>
  </figure>`
}
const curve = (/** @type {number} */ from, /** @type {number} */ to) =>
  `M${SIDE} ${from}C${WIDE / 2} ${from} ${WIDE / 2} ${to} ${WIDE - SIDE} ${to}`
const short = (/** @type {string} */ word) => (word.length > 15 ? `${word.slice(0, 14)}…` : word)
