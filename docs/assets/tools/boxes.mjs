// Boxes as a compiled drawing gives them, drawn.

import { html } from "./view.mjs"

/** The outlines of boxes. */
export const path = (/** @type {Engine.Box[]} */ boxes) =>
  boxes
    .map(box => box.map(x => Number(x).toFixed(1)))
    .map(([x, y, right, bottom]) => `M${x} ${y}H${right}V${bottom}H${x}z`)
    .join("")
/**
 * What is written in a box.
 * @param {Engine.Length} x
 * @param {Engine.Length} y
 * @param {string} content
 * @param {Engine.Length} size
 * @param {Engine.Length?} [weight]
 */
export const text = (x, y, content, size, weight) =>
  html`<text x=${Number(x).toFixed(1)} y=${Number(y).toFixed(1)} font-size=${`${size}`}
    font-weight=${weight ? `${weight}` : undefined} fill="currentColor">${content}</text>`
