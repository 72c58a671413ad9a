// What a reader chooses in a figure, by name: each one of a list, kept in the address, with what the figure was served
// with left out of it.

import { accepted, steps } from "./address.mjs"

/**
 * @typedef {Record<string, string>} Chosen
 * @param {HTMLElement} place of the figure
 * @param {Record<string, string[]>} values of which one each is
 * @param {Chosen} usual what the page was served with
 * @param {(chosen: Chosen, problem: string) => void} show
 * @returns {{ recall: () => void, set: (given: Chosen, field?: EventTarget | null) => void }}
 */
export function choices(place, values, usual, show) {
  const rules = Object.fromEntries(
    Object.entries(values).map(([name, known]) => [
      name,
      (/** @type {string} */ text) => {
        if (known.includes(text)) return text
        throw new Error(`${name} = ${text.slice(0, 40)}: not in the list`)
      },
    ]),
  )
  let chosen = { ...usual }
  const inAddress = () =>
    Object.fromEntries(Object.entries(chosen).map(([name, value]) => [name, value === usual[name] ? "" : value]))
  const remember = steps(place, () => ({ values: inAddress() }), recall)
  function recall() {
    const [given, wrong] = accepted(new URL(location.href).searchParams, rules, usual)
    chosen = given
    show(chosen, wrong.join(". "))
  }
  /** @param {Chosen} given @param {EventTarget | null} [field] */
  function set(given, field = null) {
    chosen = { ...chosen, ...given }
    show(chosen, "")
    remember(field)
  }
  return { recall, set }
}
/** Whether all is as it was served. @param {Chosen} chosen @param {Chosen} usual */
const isUsual = (chosen, usual) => Object.entries(usual).every(([name, value]) => chosen[name] === value)

/**
 * What loads once, and again after it failed.
 * @template T
 * @param {() => Promise<T>} load
 * @returns {() => Promise<T>}
 */
export function once(load) {
  /** @type {Promise<T> | undefined} */
  let loaded
  return () =>
    (loaded ??= load().catch(error => {
      loaded = undefined
      throw error
    }))
}
/**
 * A figure that stands as it was served until a reader moves it: the form is drawn at once, the panels as soon as what
 * counts them has come, and the latest change wins.
 * @template T
 * @param {HTMLElement} place of the figure
 * @param {Record<string, string[]>} values of which one each is
 * @param {Chosen} usual what the page was served with
 * @param {object} how
 * @param {Element} how.panels
 * @param {() => Promise<T>} how.counting
 * @param {(chosen: Chosen, problem?: string) => void} how.form
 * @param {(count: T, chosen: Chosen) => void} how.draw
 */
export function moved(place, values, usual, { panels, counting, form, draw }) {
  let isServed = true,
    turn = 0
  return choices(place, values, usual, async (chosen, problem) => {
    form(chosen, problem)
    const mine = ++turn
    if (isServed && isUsual(chosen, usual)) return
    try {
      const count = await counting()
      if (mine !== turn) return
      if (isServed) panels.replaceChildren()
      isServed = false
      draw(count, chosen)
    } catch (error) {
      form(chosen, error instanceof Error ? error.message : String(error))
    }
  })
}
