// What a reader chooses in a figure, by name: each one of a list or by a rule, kept in the address, where what the
// figure was served with is left out.

import { accepted, differing, steps } from "./address.mjs"
import { alert, html, labelled, render, stay } from "./view.mjs"

/**
 * @typedef {Record<string, string>} Chosen
 * @typedef {import("./view.mjs").Child} Child
 * @typedef {(given: Chosen, field?: EventTarget | null) => void} Set
 * @param {HTMLElement} place of the figure
 * @param {Record<string, string[] | import("./address.mjs").Rule>} values of which one each is, or its rule
 * @param {Chosen} usual what the page was served with
 * @param {(chosen: Chosen, problem: string) => void} show
 * @returns {{ recall: () => void, set: Set, form: (fields: Child, problem?: string) => void }} `form` draws the
 *   fields, where the page has room for them
 */
export function choices(place, values, usual, show) {
  const rules = Object.fromEntries(
    Object.entries(values).map(([name, known]) => [
      name,
      typeof known === "function"
        ? known
        : (/** @type {string} */ text) => {
            if (known.includes(text)) return text
            throw new Error(`${name} = ${text.slice(0, 40)}: not in the list`)
          },
    ]),
  )
  let chosen = { ...usual }
  const remember = steps(place, () => ({ values: differing(chosen, usual) }), recall)
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
  const controls = place.querySelector(".ep-controls"),
    reset = () => set(usual)
  return {
    ...{ recall, set },
    form: (fields, problem = "") => controls && render(formOf(fields, reset, problem), controls),
  }
}
/** Whether all is as it was served. @param {Chosen} chosen @param {Chosen} usual */
const isUsual = (chosen, usual) => Object.entries(usual).every(([name, value]) => chosen[name] === value)

/**
 * A figure that stands as it was served until a reader moves it: the form is drawn at once, the panels as soon as what
 * counts them has come, and the latest change wins.
 * @template T
 * @param {HTMLElement} place of the figure
 * @param {Record<string, string[]>} values of which one each is
 * @param {Chosen} usual what the page was served with
 * @param {object} how
 * @param {() => Promise<T>} how.load what counts
 * @param {(chosen: Chosen, set: Set) => Child} how.fields
 * @param {(counting: T, chosen: Chosen) => { said: string, drawn: Child }} how.draw
 */
export function moved(place, values, usual, { load, fields, draw }) {
  const [output, panels] = ["output", ".ep-three"].map(one => /** @type {HTMLElement} */ (place.querySelector(one)))
  let isServed = true,
    turn = 0
  const { recall, set, form } = choices(place, values, usual, async (chosen, problem) => {
    form(fields(chosen, set), problem)
    const mine = ++turn
    if (isServed && isUsual(chosen, usual)) return
    try {
      const counting = await load()
      if (mine !== turn) return
      const { said, drawn } = draw(counting, chosen)
      if (isServed) panels.replaceChildren()
      isServed = false
      render(drawn, panels)
      output.textContent = said
    } catch (error) {
      form(fields(chosen, set), error instanceof Error ? error.message : String(error))
    }
  })
  output.setAttribute("aria-live", "polite")
  return { recall }
}

// The view

/**
 * The form of a figure.
 * @param {Child} fields
 * @param {() => void} reset
 */
const formOf = (fields, reset, problem = "") =>
  html`<form class="ep-whatif" onsubmit=${stay}>
    <div class="ep-row">${fields}<button type="button" onclick=${reset}>Reset</button></div>
    ${alert(problem)}
  </form>`
/**
 * A slider over a list.
 * @param {string} name
 * @param {string[]} known
 * @param {string} value of the list
 * @param {string} label
 * @param {string} said of the value
 * @param {Set} set
 */
export const slider = (name, known, value, label, said, set) =>
  labelled(
    said,
    html`<input type="range" name=${name} min="0" max=${known.length - 1} step="1" value=${known.indexOf(value)}
      aria-label=${label} aria-valuetext=${said}
      oninput=${(/** @type {any} */ { target }) => set({ [name]: known[target.value] }, target)} />`,
  )
