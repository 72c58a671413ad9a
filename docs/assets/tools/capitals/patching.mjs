// Patching: what another sentence made in a place takes the place of what this one made there, and moves the answer.

import { labelled, make, select } from "../elements.mjs"
import { Run } from "./inside.mjs"
import { matrix, wholePercent } from "./matrices.mjs"

/**
 * @typedef {import("../capitals.mjs").Now} Now
 * @typedef {import("../capitals.mjs").State} State
 * @typedef {{ ours: number, theirs: number, parts: number[][], stream: number[][] }} Moved the two answers, and how far
 *   each patch moves one towards the other: by layer and part, and by token and layer
 */

const best = (/** @type {number[]} */ scores) => scores.indexOf(Math.max(...scores))
const partsOf = (/** @type {number} */ heads) => [...Array(heads).keys(), "mlp", "stream"]

/** @type {WeakMap<Run, Map<string, Moved>>} */
const known = new WeakMap()
/**
 * How far each patch moves the answer: 0 is not at all, 1 to where it is in the other sentence.
 * @param {Run} base without patches
 * @param {Run} from
 * @param {number} at the token whose parts are patched
 * @returns {Moved}
 */
export function moved(base, from, at) {
  const before = known.get(from) ?? new Map(),
    name = `${[...base.off]} ${base.ids} ${at}`
  known.set(from, before)
  if (before.has(name)) return before.get(name)
  const { model, ids, off, without, layers } = base,
    [ours, theirs] = [best(base.scores), best(from.scores)],
    apart = (/** @type {number[]} */ scores) => scores[theirs] - scores[ours]
  const by = (/** @type {string} */ patch) => {
    const run = new Run(model, { off, without, from, patches: new Set([patch]) })
    run.add(ids)
    return (apart(run.scores) - apart(base.scores)) / (apart(from.scores) - apart(base.scores))
  }
  const made = {
    ours,
    theirs,
    parts: layers.map((layer, i) => partsOf(layer.mixed[0].length).map(part => by(`${i}.${part}@${at}`))),
    stream: ids.map((_, t) => layers.map((_, i) => by(`${i}.stream@${t}`))),
  }
  before.set(name, made)
  return made
}

/**
 * The answer's way from one sentence to the other, patch by patch; a cell that is pressed keeps its patch.
 * @param {Now} now
 * @param {State} state
 * @param {(chosen: Partial<State>) => void} set
 */
export function patching({ text, base, from, vocabulary, config }, state, set) {
  if (!from) return []
  const at = state.position === "" ? text.length - 1 : Number(state.position),
    { ours, theirs, parts, stream } = moved(base, from, at),
    [own, other] = [ours, theirs].map(id => vocabulary.words[id])
  const sentence = from.ids.map(id => vocabulary.words[id]).join(" ")
  if (ours === theirs)
    return [
      make("p", { class: "ep-own-note" }, `“${sentence}” has the same answer, ${own}: choose one with another answer.`),
    ]
  const patches = new Set(state.patch.split("|").filter(Boolean)),
    ask = {
      chosen: patches,
      open: (/** @type {string} */ patch) =>
        set({ patch: [...new Set([...patches, patch])].filter(p => p !== patch || !patches.has(p)).join("|") }),
    },
    names = [...Array.from({ length: config.n_head }, (_, head) => `Head ${head}`), "Feed-forward", "Residual stream"]
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
      ),
    ),
    matrix(
      `How far a patch of “${text[at]}” moves the answer from ${own} to ${other}`,
      parts.map((_, layer) => `Layer ${layer}`),
      names,
      parts,
      { place: (layer, j) => `${layer}.${partsOf(config.n_head)[j]}@${at}`, ask, said: wholePercent },
    ),
    matrix(
      "How far a patch of the residual stream moves it, word by word",
      text,
      parts.map((_, layer) => `Into layer ${layer}`),
      stream,
      { place: (t, layer) => `${layer}.stream@${t}`, ask, said: wholePercent },
    ),
    make(
      "p",
      { class: "ep-conventions" },
      `A patch puts what “${sentence}” made in a place where “${text.join(" ")}” made something else. 0% leaves the `,
      `difference between the logits of ${other} and ${own} as it was, 100% makes it that of the other sentence. `,
      "Press a cell to keep its patch, and look at all other numbers.",
    ),
  ]
}
