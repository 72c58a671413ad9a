// Where each word looks: all heads of the small model over a text. What the page serves is drawn again from its own
// numbers; the model is loaded when a reader changes the sentence.

import { accepted, steps } from "./address.mjs"
import { computed, namesOf, rulesOf, served } from "./attention/answer.mjs"
import { view } from "./attention/view.mjs"
import { offered, unknown } from "./own_words.mjs"
import { render } from "./view.mjs"

/** @type {Promise<import("./attention/answer.mjs").Small> | undefined} */
let loaded
const theModel = () => (loaded ??= import("./capitals/small.mjs").then(({ smallModel }) => smallModel()))

/** @param {HTMLElement} place */
export function mount(place) {
  const of = place.dataset,
    first = served(of),
    habits = (of.habits ?? "").split("|"),
    names = namesOf(habits, Number(of.layers)),
    rules = rulesOf(names),
    defaults = { text: first.words.join(" "), word: "", head: of.head ?? "" },
    caption = place.querySelector("figcaption")?.textContent ?? "",
    doing = { names, habits, caption, choose: of.choose, defaults, set }
  /** @type {import("./attention/view.mjs").Shown} */
  const shown = { looks: first, chosen: { ...defaults }, problem: "", strange: null }
  let turn = 0
  const values = () => {
    const { text, word, head } = shown.chosen
    return { text: text === defaults.text ? "" : text, word, head: head === defaults.head ? "" : head }
  }
  const remember = steps(place, () => ({ values: values() }), recall)
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
        loaded = undefined
        shown.problem = error instanceof Error ? error.message : String(error)
      }
    draw()
  }
  /** @param {Partial<typeof defaults>} given @param {EventTarget | null} [field] */
  function set(given, field = null) {
    Object.assign(shown, { chosen: { ...shown.chosen, ...given }, problem: "" })
    remember(field)
    if ("text" in given) look()
    else draw()
  }
  function recall() {
    const [chosen, wrong] = accepted(new URL(location.href).searchParams, rules, defaults)
    Object.assign(shown, { chosen, problem: wrong.join(". ") })
    look()
  }
  place.replaceChildren()
  recall()
}
