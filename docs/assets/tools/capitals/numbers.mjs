// Numbers as a reader sees them, rounded, and the table of what may come next. Nothing of a page.

export const sum = (/** @type {number[]} */ numbers) => numbers.reduce((all, x) => all + x, 0)
export const two = (/** @type {number} */ x) => x.toFixed(2).replace("-", "−")
export const percent = (/** @type {number} */ x) => `${(100 * x).toFixed(1)}%`
export const wholePercent = (/** @type {number} */ x) => `${Math.round(100 * x)}%`.replace(/^-(?=[1-9])/, "−")

/**
 * @typedef {import("./candidates.mjs").Candidate & { name: string, before?: number | null }} Named
 * @typedef {{ id: number, name: string, score: string, share: string, before?: string, left?: string, cut?: string,
 *   bar: number }} Likely a token that may come next, with its numbers in words; `left` after a cut, or what cut it
 * @typedef {{ caption: string, head: string[], rows: Likely[], notes: string[] }} Words
 */

/** What the numbers are compared with, if something was changed. @param {{ patch: string, without: string }} state */
export const unchanged = ({ patch, without }) => (patch || without ? "Without the changes" : "With everything on")
/**
 * @param {string[]} first columns
 * @param {Named[]} likely
 * @param {string} before what the share before stands below, if there is one
 * @param {boolean} isCut
 * @returns {Pick<Words, "head" | "rows">}
 */
export const likelyOf = (first, likely, before, isCut) => ({
  head: [
    ...[...first, "#Logit", "#Probability", ...(before ? [`#${before}`] : [])],
    ...(isCut ? ["#After the cut", ""] : [""]),
  ],
  rows: likely.map(one => ({
    ...{ id: one.id, name: one.name, score: two(one.score), share: percent(one.share) },
    ...(before ? { before: percent(one.before ?? 0) } : {}),
    ...(isCut ? (one.left ? { left: percent(one.left) } : { cut: `cut by ${one.by}` }) : {}),
    bar: isCut ? one.left : one.share,
  })),
})
