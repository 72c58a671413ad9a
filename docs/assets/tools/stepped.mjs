// A figure of states that the page was served with: a slider puts one of them in the middle.

import { choices, slider } from "./choices.mjs"

/** @param {HTMLElement} place */
export function mount(place) {
  const { label = "", name = "", start = "0", states = "[]" } = place.dataset,
    /** @type {[title: string, said: string][]} */
    all = JSON.parse(states),
    drawn = [...place.querySelectorAll("template")],
    output = /** @type {HTMLElement} */ (place.querySelector("output")),
    title = /** @type {HTMLElement} */ (place.querySelector(".lit .ep-panel-title")),
    slot = /** @type {HTMLElement} */ (place.querySelector(".lit .ep-drawn")),
    known = all.map((_, i) => `${i}`),
    usual = { [name]: start }
  let now = start
  output.setAttribute("aria-live", "polite")
  const { recall, set, form } = choices(place, { [name]: known }, usual, show)

  function show(/** @type {import("./choices.mjs").Chosen} */ chosen, problem = "") {
    const at = chosen[name],
      [named, said] = all[Number(at)]
    if (at !== now) {
      slot.replaceChildren(drawn[Number(at)].content.cloneNode(true))
      title.textContent = named
      output.textContent = said
      now = at
    }
    form(slider(name, known, at, label, named, set), problem)
  }
  recall()
}
