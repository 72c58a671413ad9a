// Tables of patches: how far each moves the answer of one sentence towards that of another.

import { html, labelled, select } from "../view.mjs"
import { turned } from "./designs.mjs"
import { matrix, wholePercent } from "./matrices.mjs"

/** The parts of a layer that can be patched. */
export const partsOf = (/** @type {number} */ heads) => [...Array(heads).keys(), "mlp", "stream"]

/**
 * @typedef {object} Patching
 * @property {string[]} text its words
 * @property {string} sentence
 * @property {string} other sentence
 * @property {[ours: string, theirs: string]} answers
 * @property {number} at the token whose parts are patched
 * @property {Set<string>} patches
 * @property {number[]} layers that are shown
 * @property {number} heads
 * @property {{ parts: number[][], stream: number[][] } | null} moved by layer and part, and by token and layer
 * @property {import("../view.mjs").Child} [before] what stands above the tables
 * @property {(chosen: { patch: string } | { position: string }) => void} set
 */

/**
 * The answer's way from one sentence to the other, patch by patch; a cell that is pressed keeps its patch.
 * @param {Patching} of
 */
export function patchTables({
  text,
  sentence,
  other,
  answers: [own, theirs],
  at,
  patches,
  layers,
  heads,
  moved,
  before,
  set,
}) {
  if (own === theirs)
    return html`<p class="ep-own-note">
      ${`“${other}” has the same answer, ${own}: choose one with another answer.`}
    </p>`
  const ask = { chosen: patches, open: (/** @type {string} */ patch) => set({ patch: turned(patches, patch) }) },
    names = [...Array.from({ length: heads }, (_, head) => `Head ${head}`), "Feed-forward", "Residual stream"],
    into = layers.map(layer => `Into layer ${layer}`),
    title = "How far a patch of the residual stream moves it, word by word"
  const ofLayers = (/** @type {number[][]} */ rows) =>
    matrix(title, text, into, rows, { place: (t, i) => `${layers[i]}.stream@${t}`, ask, said: wholePercent })
  const ofOneLayer = (/** @type {number} */ layer, /** @type {number[][]} */ rows) =>
    matrix(title, into, text, [rows.flat()], { place: (_, t) => `${layer}.stream@${t}`, ask, said: wholePercent })
  const position = select(
    "position",
    text.map((word, i) => [`${i}`, word]),
    `${at}`,
    { "data-key": "position", onchange: (/** @type {any} */ { target }) => set({ position: target.value }) },
  )
  const tables =
    moved &&
    html`
      ${matrix(
        `How far a patch of “${text[at]}” moves the answer from ${own} to ${theirs}`,
        layers.map(layer => `Layer ${layer}`),
        names,
        moved.parts,
        { place: (i, j) => `${layers[i]}.${partsOf(heads)[j]}@${at}`, ask, said: wholePercent },
      )}
      ${layers.length === 1 ? ofOneLayer(layers[0], moved.stream) : ofLayers(moved.stream)}
      <p class="ep-conventions">
        ${
          `A patch puts what “${other}” made in a place where “${sentence}” made something else. 0% leaves ` +
          `the difference between the logits of ${theirs} and ${own} as it was, 100% makes it that of the other ` +
          "sentence. Press a cell to keep its patch, and look at all other numbers."
        }
      </p>`
  return html`
    <div class="ep-whatif"><div class="ep-row">${labelled("Patch the parts of", position)}${before}</div></div>
    ${tables}`
}
