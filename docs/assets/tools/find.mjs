// The list of a choice that one types into, which comes once it is opened.

import { html } from "./view.mjs"

export { combobox } from "./combobox.mjs"

/** @typedef {import("./view.mjs").Groups} Groups */

const plain = (/** @type {string} */ text) => text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, " ")
/**
 * The options that have all of these words in their names or in their groups' heading.
 * @param {Groups} groups
 * @param {string} text
 * @param {string} current
 */
export function matching(groups, text, current) {
  const words = plain(text).trim().split(" ")
  const has = (/** @type {string} */ text) => words.every(word => plain(text).includes(word))
  const option = (/** @type {import("./kit.mjs").Option} */ [value, text]) =>
    html`<div key=${value} role="option" data-value=${value} aria-current=${value === current || undefined}>
      ${text}
    </div>`
  const found = groups.flatMap(([first, rest]) => {
    if (!Array.isArray(rest)) return has(rest) ? [option([first, rest])] : []
    const those = rest.filter(([value, text]) => has(`${first} ${text} ${value}`))
    if (!those.length) return []
    return [
      html`<div key=${`of ${first}`} role="group" aria-label=${first}>
        <span aria-hidden="true">${first}</span>${those.map(option)}
      </div>`,
    ]
  })
  return found.length ? found : html`<div key="none" role="option" aria-disabled="true">No match</div>`
}
