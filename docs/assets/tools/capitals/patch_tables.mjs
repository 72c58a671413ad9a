// Tables of patches: how far each moves the answer of one sentence towards that of another.

import { labelled, make, select } from "../elements.mjs"
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
 * @property {import("../elements.mjs").Children} [before] what stands above the tables
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
    return [
      make("p", { class: "ep-own-note" }, `“${other}” has the same answer, ${own}: choose one with another answer.`),
    ]
  const ask = {
      chosen: patches,
      open: (/** @type {string} */ patch) =>
        set({ patch: [...new Set([...patches, patch])].filter(p => p !== patch || !patches.has(p)).join("|") }),
    },
    names = [...Array.from({ length: heads }, (_, head) => `Head ${head}`), "Feed-forward", "Residual stream"],
    into = layers.map(layer => `Into layer ${layer}`),
    title = "How far a patch of the residual stream moves it, word by word"
  const ofLayers = (/** @type {number[][]} */ rows) =>
    matrix(title, text, into, rows, { place: (t, i) => `${layers[i]}.stream@${t}`, ask, said: wholePercent })
  const ofOneLayer = (/** @type {number} */ layer, /** @type {number[][]} */ rows) =>
    matrix(title, into, text, [rows.flat()], { place: (_, t) => `${layer}.stream@${t}`, ask, said: wholePercent })
  return [
    make(
      "div",
      { class: "ep-whatif" },
      make(
        "div",
        { class: "ep-row" },
        labelled(
          "Patch the parts of",
          select(
            "position",
            text.map((word, i) => [`${i}`, word]),
            `${at}`,
            {
              "data-key": "position",
              onchange: (/** @type {Event} */ event) =>
                set({ position: /** @type {HTMLSelectElement} */ (event.target).value }),
            },
          ),
        ),
        before,
      ),
    ),
    moved &&
      matrix(
        `How far a patch of “${text[at]}” moves the answer from ${own} to ${theirs}`,
        layers.map(layer => `Layer ${layer}`),
        names,
        moved.parts,
        { place: (i, j) => `${layers[i]}.${partsOf(heads)[j]}@${at}`, ask, said: wholePercent },
      ),
    moved && (layers.length === 1 ? ofOneLayer(layers[0], moved.stream) : ofLayers(moved.stream)),
    moved &&
      make(
        "p",
        { class: "ep-conventions" },
        `A patch puts what “${other}” made in a place where “${sentence}” made something else. 0% leaves the `,
        `difference between the logits of ${theirs} and ${own} as it was, 100% makes it that of the other sentence. `,
        "Press a cell to keep its patch, and look at all other numbers.",
      ),
  ].filter(part => part instanceof Node)
}
