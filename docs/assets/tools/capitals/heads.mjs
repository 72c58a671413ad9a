// All heads of a model at a glance, what is switched off, and what each part adds to a word's score.

import { labelled, make, select } from "../elements.mjs"
import { matrix, tableOfHeads, two } from "./matrices.mjs"

/**
 * @typedef {{ number: number, heads: number, hasFeedForward: boolean }} Layer
 * @typedef {object} Heads
 * @property {string} one what a row and a column of a map is for
 * @property {Layer[]} layers that are shown
 * @property {Set<string>} off
 * @property {{ layer: number, head: number }} open
 * @property {(chosen: { off: string } | { layer: string, head: string }) => void} set
 * @property {(layer: number, head: number) => Element} picture
 */

/**
 * A map of each head in each layer, and a switch for each head, each feed-forward network and each layer.
 * @param {Heads} of
 */
export function allHeads({ one, layers, off, open, set, picture }) {
  const most = Math.max(...layers.map(({ heads }) => heads), 0),
    heads = [...Array(most).keys()]
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
        "aria-pressed": `${open.layer === layer && open.head === head}`,
        onclick: () => set({ layer: `${layer}`, head: `${head}` }),
      },
      picture(layer, head),
    )
  const titles = [...heads.map(head => `Head ${head}`), "Feed-forward", "Whole layer"]
  return tableOfHeads(
    one,
    titles,
    layers.map(({ number, heads: own, hasFeedForward }) => [
      `${number}`,
      ...heads.map(head =>
        head < own ? [map(number, head), toggle(`${number}.${head}`, `Layer ${number}, head ${head}`)] : "",
      ),
      hasFeedForward ? toggle(`${number}.mlp`, `Feed-forward of layer ${number}`) : "",
      toggle(`${number}.layer`, `Layer ${number}`),
    ]),
  )
}

/**
 * @typedef {object} Contributions
 * @property {import("../elements.mjs").Option[]} words to choose from
 * @property {string} chosen
 * @property {(chosen: { word: string }) => void} set
 * @property {number[]} layers
 * @property {string[]} columns
 * @property {(number | null)[][]} rows of the layers
 * @property {Parameters<typeof matrix>[4]} [how] its cells answer
 * @property {import("../elements.mjs").Child[]} others what else adds to the score
 * @property {number} total
 * @property {number} score
 * @property {string} [held] what is held as it is
 * @property {number} [factor] of all logits
 * @property {number[]} [caps] of the logits, one after the other
 */

/**
 * What each part adds to the score of a word: they add up to it.
 * @param {Contributions} of
 */
export function contributions(of) {
  const {
    words,
    chosen,
    set,
    layers,
    columns,
    rows,
    how,
    others,
    total,
    score,
    held = HELD,
    factor = 1,
    caps = [],
  } = of
  const word = words.find(([value]) => value === chosen)?.[1] ?? chosen
  let capped = total
  const last = caps.map(cap => {
    const before = two(capped)
    capped = cap * Math.tanh(capped / cap)
    return ` Then the cap of ${cap} makes ${cap} · tanh(${before} / ${cap}) = ${two(capped)} of it.`
  })
  return [
    make(
      "div",
      { class: "ep-whatif" },
      make(
        "div",
        { class: "ep-row" },
        labelled(
          "Logit of",
          select("word", words, chosen, {
            "data-key": "word",
            onchange: (/** @type {Event} */ event) =>
              set({ word: /** @type {HTMLSelectElement} */ (event.target).value }),
          }),
        ),
      ),
    ),
    matrix(
      `What each part adds to the logit of ${word}`,
      layers.map(layer => `Layer ${layer}`),
      columns,
      rows,
      how,
    ),
    make(
      "p",
      { class: "ep-conventions" },
      others,
      ". Together: ",
      make("output", { "data-total": total, "data-logit": score }, two(total)),
      `, the logit of ${word}${caps.length ? " before the cap" : ""}. ${held}`,
      factor === 1 ? null : ` This model multiplies its logits by ${short(factor)}; each part is already multiplied.`,
      last,
    ),
  ]
}
const HELD = "The mean and the size by which the last norm divides are held as they are in this text."
const short = (/** @type {number} */ x) => `${Number(x.toPrecision(6))}`
