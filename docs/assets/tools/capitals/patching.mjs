// Patching: what another sentence made in a place takes the place of what this one made there, and moves the answer.

import { Run } from "./inside.mjs"
import { partsOf, patchTables } from "./patch_tables.mjs"

/**
 * @typedef {import("../capitals.mjs").Now} Now
 * @typedef {import("../capitals.mjs").State} State
 * @typedef {{ ours: number, theirs: number, parts: number[][], stream: number[][] }} Moved the two answers, and how far
 *   each patch moves one towards the other: by layer and part, and by token and layer
 */

const best = (/** @type {number[]} */ scores) => scores.indexOf(Math.max(...scores))

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
 * The tables of the small model, of all layers.
 * @param {Now} now
 * @param {State} state
 * @param {(chosen: Partial<State>) => void} set
 */
export function patching({ text, base, from, vocabulary, config }, state, set) {
  if (!from) return []
  const at = state.position === "" ? text.length - 1 : Number(state.position),
    changes = moved(base, from, at)
  return patchTables({
    text,
    sentence: text.join(" "),
    other: from.ids.map(id => vocabulary.words[id]).join(" "),
    answers: [vocabulary.words[changes.ours], vocabulary.words[changes.theirs]],
    at,
    patches: new Set(state.patch.split("|").filter(Boolean)),
    layers: [...base.layers.keys()],
    heads: config.n_head,
    moved: changes,
    set,
  })
}
