// Elements, where view.mjs does not draw.

/**
 * @typedef {Node | string | null | undefined} Child a string is text; null and undefined are left out
 * @typedef {Child | Child[]} Children
 * @typedef {string | number | bigint | boolean | URL | null | undefined | ((event: any) => unknown)} Attribute
 */

/**
 * An element. An attribute that begins with `on` is a listener; one that is false or nothing is left out.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} name
 * @param {Record<string, Attribute>} attributes
 * @param {...Children} children
 */
export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name)
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(key.slice(2), value)
    else if (value === true) element.setAttribute(key, "")
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(key, `${value}`)
  }
  element.append(...those(children))
  return element
}
/** @returns {(Node | string)[]} */
const those = (/** @type {Children[]} */ children) =>
  children.flat().filter(child => child !== null && child !== undefined)
export const replace = (/** @type {Element} */ element, /** @type {Children[]} */ ...children) =>
  element.replaceChildren(...those(children))
