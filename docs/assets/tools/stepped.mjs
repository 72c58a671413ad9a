// A figure of states that the page was served with: a slider puts one of them in the middle.

import { choices } from "./choices.mjs"
import { alert, html, labelled, render } from "./view.mjs"

/** @param {HTMLElement} place */
export function mount(place) {
  const { label = "", name = "", start = "0", states = "[]" } = place.dataset,
    /** @type {[title: string, said: string][]} */
    all = JSON.parse(states),
    drawn = [...place.querySelectorAll("template")],
    controls = /** @type {HTMLElement} */ (place.querySelector(".ep-controls")),
    output = /** @type {HTMLElement} */ (place.querySelector("output")),
    title = /** @type {HTMLElement} */ (place.querySelector(".lit .ep-panel-title")),
    slot = /** @type {HTMLElement} */ (place.querySelector(".lit .ep-drawn")),
    usual = { [name]: start }
  let now = start
  output.setAttribute("aria-live", "polite")
  const { recall, set } = choices(place, { [name]: all.map((_, i) => `${i}`) }, usual, show)

  function show(/** @type {import("./choices.mjs").Chosen} */ chosen, problem = "") {
    const at = chosen[name],
      [named, said] = all[Number(at)]
    if (at !== now) {
      slot.replaceChildren(drawn[Number(at)].content.cloneNode(true))
      title.textContent = named
      output.textContent = said
      now = at
    }
    const press = (/** @type {any} */ { target }) => set({ [name]: target.value }, target)
    render(
      html`<form class="ep-whatif" onsubmit=${(/** @type {Event} */ event) => event.preventDefault()}>
        <div class="ep-row">
          ${labelled(
            named,
            html`<input type="range" name=${name} min="0" max=${all.length - 1} step="1" value=${at}
              aria-label=${label} aria-valuetext=${named} oninput=${press} />`,
          )}
          <button type="button" onclick=${() => set(usual)}>Reset</button>
        </div>
        ${alert(problem)}
      </form>`,
      controls,
    )
  }
  recall()
}
