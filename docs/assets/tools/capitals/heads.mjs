// All heads of a model at a glance, what is switched off, and what each part adds to a word's score.

import { html, labelled, select } from "../view.mjs"
import { numberOf } from "./asked.mjs"
import { turned } from "./designs.mjs"
import { matrix, tableOfHeads, two } from "./matrices.mjs"

/**
 * @typedef {{ number: number, heads: number, hasFeedForward: boolean }} Layer
 * @typedef {object} Heads
 * @property {string} one what a row and a column of a map is for
 * @property {Layer[]} layers that are shown
 * @property {Set<string>} off
 * @property {{ layer: number, head: number }} open
 * @property {(chosen: { off: string } | { layer: string, head: string }) => void} set
 * @property {(layer: number, head: number) => import("../view.mjs").Child} picture
 */

/**
 * A map of each head in each layer, and a switch for each head, each feed-forward network and each layer.
 * @param {Heads} of
 */
export function allHeads({ one, layers, off, open, set, picture }) {
  const most = Math.max(...layers.map(({ heads }) => heads), 0),
    heads = [...Array(most).keys()]
  const toggle = (/** @type {string} */ part, /** @type {string} */ name) =>
    html`<label class="ep-on">
      <input type="checkbox" data-key=${part} aria-label=${`${name} on`} checked=${!off.has(part)}
        onchange=${() => set({ off: turned(off, part) })} />on
    </label>`
  const map = (/** @type {number} */ layer, /** @type {number} */ head) =>
    html`<button type="button" data-key=${`map ${layer}.${head}`} aria-label=${`Layer ${layer}, head ${head}`}
      class=${off.has(`${layer}.${head}`) || off.has(`${layer}.layer`) ? "ep-head ep-off" : "ep-head"}
      aria-pressed=${open.layer === layer && open.head === head}
      onclick=${() => set({ layer: `${layer}`, head: `${head}` })}>${picture(layer, head)}</button>`
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
 * @property {string} one what the text has
 * @property {[value: string, text: string][]} words to choose from
 * @property {{ id: number, value: string }} chosen
 * @property {(chosen: { word: string }) => void} set
 * @property {import("../run/seen.mjs").Parts | string} parts or why they are not told
 * @property {import("./matrices.mjs").Ask & { chosen: string }} ask
 */

/**
 * What each part adds to the score of a word: they add up to it.
 * @param {Contributions} of
 */
export function contributions({ one, words, chosen: { id, value: chosen }, set, parts, ask }) {
  if (typeof parts === "string")
    return html`<p class="ep-conventions">${parts} What each part adds to a logit is not told.</p>`
  const { layers, embedding, between, shift, before, isNormed, isNormedWithin, factor, caps } = parts,
    most = Math.max(...layers.map(({ heads }) => heads.length)),
    names = [...Array(most).keys(), ...(most ? ["bias", "mlp"] : []), "whole"],
    total = embedding + between + shift + layers.reduce((sum, { whole }) => sum + whole, 0)
  const other = (/** @type {string} */ part, /** @type {string} */ name, /** @type {number} */ value) =>
    numberOf(name, `part/0/${part}/${id}`, two(value), ask)
  const word = words.find(([value]) => value === chosen)?.[1] ?? chosen
  const held = !isNormed
    ? "There is no last norm, whose size would be held."
    : isNormedWithin
      ? "The sizes by which the last norm and those within the layers divide are held as they are in this text."
      : "The mean and the size by which the last norm divides are held as they are in this text."
  let capped = total
  const last = caps.map(cap => {
    const before = two(capped)
    capped = cap * Math.tanh(capped / cap)
    return ` Then the cap of ${cap} makes ${cap} · tanh(${before} / ${cap}) = ${two(capped)} of it.`
  })
  const chosenWord = select("word", words, chosen, {
    "data-key": "word",
    onchange: (/** @type {any} */ { target }) => set({ word: target.value }),
  })
  const columns = [
    ...Array.from({ length: most }, (_, head) => `Head ${head}`),
    ...(most ? ["Bias", "Feed-forward"] : []),
    "Whole layer",
  ]
  const rows = layers.map(({ heads, bias, feedForward, whole }) => [
    ...Array.from({ length: most }, (_, head) => heads[head] ?? null),
    ...(most ? (heads.length ? [bias, feedForward] : [null, null]) : []),
    whole,
  ])
  return html`
    <div class="ep-whatif"><div class="ep-row">${labelled("Logit of", chosenWord)}</div></div>
    ${matrix(
      `What each part adds to the logit of ${word}`,
      layers.map((_, layer) => `Layer ${layer}`),
      columns,
      rows,
      { place: (layer, j) => `part/${layer}/${names[j]}/${id}`, ask },
    )}
    <p class="ep-conventions">
      ${`The last ${one}’s embedding adds `}${other("embedding", "Its embedding", embedding)}
      , the shift of the last norm and the bias${" "}${other("shift", "The shift and the bias", shift)}
      ${
        Math.abs(between) > 1e-6 && [
          ", what comes between layers ",
          other("between", "What comes between layers", between),
        ]
      }
      . Together:${" "}<output data-total=${total} data-logit=${before}>${two(total)}</output>
      ${`, the logit of ${word}${caps.length ? " before the cap" : ""}. ${held}`}
      ${factor !== 1 && ` This model multiplies its logits by ${short(factor)}; each part is already multiplied.`}
      ${last}
    </p>`
}
const short = (/** @type {number} */ x) => `${Number(x.toPrecision(6))}`
