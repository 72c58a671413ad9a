// All heads of the small model at a glance, what is switched off, and what each part adds to a word's score.

import { labelled, make, select } from "../elements.mjs"
import { matrix, small, tableOfHeads, two } from "./matrices.mjs"

/**
 * @typedef {import("../capitals.mjs").Now} Now
 * @typedef {import("../capitals.mjs").State} State
 * @typedef {(chosen: Partial<State>) => void} Set
 */

/**
 * A map of each head in each layer, and a switch for each head, each feed-forward network and each layer.
 * @param {Now} now
 * @param {State} state
 * @param {Set} set
 */
export function allHeads({ run, config }, state, set) {
  const heads = [...Array(config.n_head).keys()],
    off = run.off
  const toggle = (/** @type {string} */ part, /** @type {string} */ name) =>
    make(
      "label",
      { class: "ep-on" },
      make("input", {
        type: "checkbox",
        "data-key": part,
        "aria-label": `${name} on`,
        checked: !off.has(part),
        onchange: () => set({ off: [...new Set([...off, part])].filter(p => p !== part || !off.has(part)).join("|") }),
      }),
      "on",
    )
  const map = (/** @type {number} */ layer, /** @type {number} */ head) =>
    make(
      "button",
      {
        type: "button",
        class: off.has(`${layer}.${head}`) || off.has(`${layer}.layer`) ? "ep-head ep-off" : "ep-head",
        "data-key": `map ${layer}.${head}`,
        "aria-label": `Layer ${layer}, head ${head}`,
        "aria-pressed": `${state.layer === `${layer}` && state.head === `${head}`}`,
        onclick: () => set({ layer: `${layer}`, head: `${head}` }),
      },
      small(run.layers[layer].shares.map(heads => heads[head])),
    )
  const titles = [...heads.map(head => `Head ${head}`), "Feed-forward", "Whole layer"]
  return tableOfHeads(
    "word",
    titles,
    run.layers.map((_, layer) => [
      `${layer}`,
      ...heads.map(head => [map(layer, head), toggle(`${layer}.${head}`, `Layer ${layer}, head ${head}`)]),
      toggle(`${layer}.mlp`, `Feed-forward of layer ${layer}`),
      toggle(`${layer}.layer`, `Layer ${layer}`),
    ]),
  )
}

/**
 * What each part adds to the score of a word: they add up to it.
 * @param {Now} now
 * @param {State} state
 * @param {number} most words to choose from
 * @param {Set} set
 * @param {import("./matrices.mjs").Ask} ask
 */
export function wordScore({ run, inside, all, vocabulary, config }, state, most, set, ask) {
  const chosen = all.find(({ id }) => vocabulary.words[id] === state.word) ?? all[0],
    word = vocabulary.words[chosen.id],
    parts = inside.parts(run, chosen.id),
    total = inside.total(parts)
  const options = [...new Set([...all.slice(0, most), chosen])].map(({ id }) => vocabulary.words[id])
  const heads = Array.from({ length: config.n_head }, (_, head) => `Head ${head}`),
    names = [...heads.keys(), "bias", "mlp"]
  const number = (/** @type {"token" | "position" | "shift" | "taken"} */ what, /** @type {string} */ name) => {
    const place = `part/0/${what}/${chosen.id}`,
      said = two(parts[what])
    return make(
      "button",
      {
        type: "button",
        class: "ep-word",
        "data-key": `cell ${place}`,
        "aria-label": `${name}: ${said}`,
        onclick: () => ask.open(place),
      },
      said,
    )
  }
  return [
    make(
      "div",
      { class: "ep-whatif" },
      make(
        "div",
        { class: "ep-row" },
        labelled(
          "Logit of",
          select(
            "word",
            options.map(option => [option, option]),
            word,
            { "data-key": "word", onchange: (/** @type {Event} */ event) => set({ word: wordOf(event) }) },
          ),
        ),
      ),
    ),
    matrix(
      `What each part adds to the logit of ${word}`,
      parts.layers.map((_, i) => `Layer ${i}`),
      [...heads, "Bias", "Feed-forward"],
      parts.layers.map(({ heads, bias, feedForward }) => [...heads, bias, feedForward]),
      { place: (layer, j) => `part/${layer}/${names[j]}/${chosen.id}`, ask },
    ),
    make(
      "p",
      { class: "ep-conventions" },
      "The last word’s embedding adds ",
      number("token", "Its embedding"),
      ", its position ",
      number("position", "Its position"),
      ", the shift of the last norm ",
      number("shift", "The shift of the last norm"),
      [...run.patches].some(patch => patch.includes("stream"))
        ? [", patches of the residual stream ", number("taken", "Patches")]
        : null,
      ". Together: ",
      make("output", { "data-total": total, "data-logit": chosen.score }, two(total)),
      `, the logit of ${word}. The mean and the size by which the last norm divides are held as they are in this text.`,
    ),
  ]
}
const wordOf = (/** @type {Event} */ event) => /** @type {HTMLSelectElement} */ (event.target).value
