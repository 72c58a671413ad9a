// Patching: what another sentence made in a place takes the place of what this one made there, and moves the answer.

import { patchTables } from "./patch_tables.mjs"

/**
 * @typedef {import("./answer.mjs").Made & import("./small.mjs").Small} Now
 * @typedef {import("./answer.mjs").State} State
 * @typedef {import("../run/session.mjs").Session} Session
 * @typedef {{ parts: number[][], stream: number[][] }} Moved how far each patch moves the answer: by layer and part,
 *   and by token and layer
 */

/** @type {{ of: string, made: Moved } | null} */
let known = null
/**
 * How far each patch moves the answer: 0 is not at all, 1 to where it is in the other sentence.
 * @param {Session} session
 * @param {number} at the token whose parts are patched
 * @returns {Moved}
 */
export function moved(session, at) {
  const { base, from } = session,
    of = JSON.stringify([base?.ids, from?.ids, [...(base?.off ?? [])], base?.without, at])
  if (known?.of === of) return known.made
  const each = (base?.layers ?? []).map((_, layer) => session.moved(layer, at) ?? { parts: [], stream: [] }),
    made = {
      parts: each.map(({ parts }) => parts),
      stream: (base?.ids ?? []).map((_, t) => each.map(({ stream }) => stream[t])),
    }
  known = { of, made }
  return made
}

/**
 * The tables of the small model, of all layers.
 * @param {Now} now
 * @param {State} state
 * @param {(chosen: Partial<State>) => void} set
 */
export function patching({ session, text, base, from, vocabulary, config }, state, set) {
  if (!from) return []
  const at = state.position === "" ? text.length - 1 : Number(state.position),
    best = (/** @type {{ scores: number[] }} */ { scores }) => vocabulary.words[scores.indexOf(Math.max(...scores))]
  return patchTables({
    text,
    sentence: text.join(" "),
    other: from.ids.map(id => vocabulary.words[id]).join(" "),
    answers: [best(base), best(from)],
    at,
    patches: new Set(state.patch.split("|").filter(Boolean)),
    layers: [...base.layers.keys()],
    heads: config.n_head,
    moved: moved(session, at),
    set,
  })
}
