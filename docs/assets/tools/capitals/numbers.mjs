// Numbers as a reader sees them, rounded.

export const two = (/** @type {number} */ x) => x.toFixed(2).replace("-", "−")
export const percent = (/** @type {number} */ x) => `${(100 * x).toFixed(1)}%`
export const wholePercent = (/** @type {number} */ x) => `${Math.round(100 * x)}%`.replace(/^-(?=[1-9])/, "−")
