// Numbers as a reader sees them: rounded, as shares, as bars, in matrices with shaded cells and in small maps.

import { make } from "./elements.mjs"

export const two = (/** @type {number} */ x) => x.toFixed(2).replace("-", "−")
export const percent = (/** @type {number} */ x) => `${(100 * x).toFixed(1)}%`

const SVG = "http://www.w3.org/2000/svg"
/**
 * @param {string} name
 * @param {Record<string, string | number>} attributes
 * @param {...Element} children
 */
function drawn(name, attributes, ...children) {
  const element = document.createElementNS(SVG, name)
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, `${value}`)
  element.append(...children)
  return element
}
export const bar = (/** @type {number} */ share) =>
  drawn(
    "svg",
    { viewBox: "0 0 100 8", preserveAspectRatio: "none", class: "ep-share", "aria-hidden": "true" },
    drawn("rect", { width: 100 * share, height: 8 }),
  )
/** A small map of shares: a square for each row and column, the darker the larger. */
export const small = (/** @type {number[][]} */ rows) =>
  drawn(
    "svg",
    { viewBox: `0 0 ${rows.length} ${rows.length}`, class: "ep-thumb", "aria-hidden": "true" },
    ...rows.flatMap((row, y) =>
      row.map((share, x) => drawn("rect", { x, y, width: 1, height: 1, "fill-opacity": share.toFixed(3) })),
    ),
  )

/**
 * A matrix with cells shaded by magnitude; `null` is masked.
 * @param {string} name
 * @param {string[]} heads
 * @param {string[]} columns
 * @param {(number | null)[][]} rows
 * @param {number} [newest]
 */
export function matrix(name, heads, columns, rows, newest) {
  const largest = Math.max(...rows.flat().map(x => Math.abs(x ?? 0))) || 1
  const shade = (/** @type {number?} */ x) => {
    if (x === null) return "masked"
    const steps = Math.ceil((4 * Math.abs(x)) / largest - 1e-9)
    return steps ? `${x < 0 ? "minus" : "plus"}-${steps}` : ""
  }
  return make(
    "div",
    { class: "ep-scroll", tabindex: 0, role: "group", "aria-label": name },
    make(
      "table",
      { class: "ep-table ep-matrix" },
      make("caption", {}, name),
      make(
        "thead",
        {},
        make(
          "tr",
          {},
          make("td"),
          columns.map(title => make("th", { scope: "col", class: "num" }, title)),
        ),
      ),
      make(
        "tbody",
        {},
        rows.map((row, i) =>
          make(
            "tr",
            { class: i === newest ? "newest" : null },
            make("th", { scope: "row" }, heads[i]),
            row.map(x => make("td", { class: `num ${shade(x)}` }, x === null ? "–" : two(x))),
          ),
        ),
      ),
    ),
  )
}
