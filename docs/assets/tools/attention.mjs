// Where each word looks: all heads of the small model over a text. What the page serves is drawn again from its own
// numbers; the model is loaded when a reader changes the sentence.

import { computed, namesOf, rulesOf, served } from "./attention/answer.mjs"
import { view } from "./attention/view.mjs"
import { choices } from "./choices.mjs"
import { offered, theModel, unknown } from "./own_words.mjs"
import { render } from "./view.mjs"

/** @param {HTMLElement} place */
export function mount(place) {
  const of = place.dataset,
    first = served(of),
    habits = (of.habits ?? "").split("|"),
    names = namesOf(habits, Number(of.layers)),
    defaults = { text: first.words.join(" "), word: "", head: of.head ?? "" },
    caption = place.querySelector("figcaption")?.textContent ?? ""
  /** @type {import("./attention/view.mjs").Shown} */
  const shown = { looks: first, chosen: { ...defaults }, problem: "", strange: null }
  let turn = 0
  const draw = () => render(view(shown, doing), place)

  async function look() {
    const mine = ++turn,
      { text } = shown.chosen
    if (text === defaults.text) Object.assign(shown, { looks: first, strange: null })
    else
      try {
        const small = await theModel()
        if (mine !== turn) return
        const known = unknown(small, text)
        shown.strange = known.strange && { ...known.strange, others: offered(small, known, first.words[0]) }
        if (known.words.length) shown.looks = computed(small, known.words, known.ids)
      } catch (error) {
        shown.problem = error instanceof Error ? error.message : String(error)
      }
    draw()
  }
  const { recall, set } = choices(place, rulesOf(names), defaults, (chosen, problem) => {
    const isLooked = chosen.text === shown.chosen.text
    Object.assign(shown, { chosen, problem })
    if (isLooked) draw()
    else look()
  })
  const doing = { names, habits, caption, choose: of.choose, defaults, set }
  place.replaceChildren()
  recall()
}
