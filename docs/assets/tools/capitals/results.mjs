// The small model, asked: what it makes of the text, in tables and drawings.

import { table } from "../view.mjs"
import { cachedOf, comparedOf, partedOf, rowsOf, wordsOf } from "./answer.mjs"
import { cellsOf, notesOf, panel } from "./asked.mjs"
import { DESIGNS, designs } from "./designs.mjs"
import { allHeads, contributions } from "./heads.mjs"
import { endings } from "./inside.mjs"
import { attention, cache } from "./looking.mjs"
import { matrix, small } from "./matrices.mjs"
import { patching } from "./patching.mjs"
import { smallModel } from "./small.mjs"
import { walked } from "./walked.mjs"

export { DESIGNS, smallModel, walked }

/**
 * @typedef {import("./answer.mjs").Made} Made
 * @typedef {import("./answer.mjs").State} State
 * @typedef {object} Shown what the results are drawn of
 * @property {Made} made
 * @property {State} state
 * @property {import("./small.mjs").Small} small
 * @property {string} began the place of the number that was asked for first
 * @property {boolean} isInStep whether that was in a step of the page, where the panel is
 * @property {import("./asked.mjs").Doing} asking
 * @property {(chosen: Partial<State>) => void} set
 * @property {(word: string) => void} add
 */

/** @param {Shown} shown */
export function results(shown) {
  const { made, state, small: now, began, isInStep, asking, set } = shown,
    isOf = (/** @type {string[]} */ ...kinds) => kinds.includes(began.split("/")[0]),
    found = state.number && !isInStep ? now.session.origin(state.number, made.how) : null,
    origin = found && panel(found, asking)
  // The row that the number that is asked for comes from, in a table of this head.
  const lit = (/** @type {2 | 3} */ of) =>
    `${found?.pair?.slice(0, 2)}` === `${state.layer},${state.head}` ? found?.pair?.[of] : undefined
  return [
    words(shown),
    isOf("logit", "chance", "left") ? origin : null,
    layers(shown),
    isOf("lens") ? origin : null,
    heads(shown),
    designs(made.run.without, set),
    weights(shown, lit(2)),
    !isOf("logit", "chance", "left", "lens", "part") ? origin : null,
    patching({ ...made, ...now }, state, set),
    parts(shown),
    isOf("part") ? origin : null,
    keys(shown, lit(3)),
  ]
}
/** @param {Shown} shown */
const ask = ({ asking, state }) => ({ ...asking, chosen: state.number })

/** @param {Shown} shown */
function words({ made, state, small: now, asking, add }) {
  const { caption, head, rows, notes } = wordsOf(made, state, now)
  const append = (/** @type {number} */ id) => add(now.vocabulary.words[id]),
    cells = rows.map(one => cellsOf(one, { isFull: made.isFull, append, ask: asking }))
  return [table(caption, head, cells), notesOf(notes)]
}
/** @param {Shown} shown */
function layers({ made, small: { vocabulary }, ...shown }) {
  const compared = comparedOf(made),
    scores = endings(made.run)
  return matrix(
    "Logits of these words if the model ended there",
    scores.map((_, i) => (i ? `After layer ${i - 1}` : "Before the first layer")),
    compared.map(id => vocabulary.words[id]),
    scores.map(row => compared.map(id => row[id])),
    {
      place: (i, j) => `lens/${i}/${compared[j]}`,
      ask: { ...shown.asking, chosen: shown.state.number },
      after: ["Most likely", scores.map(row => vocabulary.words[row.indexOf(Math.max(...row))])],
    },
  )
}
/** @param {Shown} shown */
const heads = ({ made: { run }, state, small: { config }, set }) =>
  allHeads({
    one: "word",
    layers: run.layers.map((_, i) => ({ number: i, heads: config.n_head, hasFeedForward: true })),
    off: run.off,
    open: { layer: Number(state.layer), head: Number(state.head) },
    set,
    picture: (layer, head) => small(rowsOf(run, layer, head)),
  })
/** @param {Shown} shown @param {number | undefined} lit */
function weights(shown, lit) {
  const { made, state, set } = shown,
    { text, run } = made,
    [layer, head] = [state.layer, state.head].map(Number),
    rows = rowsOf(run, layer, head).map(row => text.map((_, i) => row[i] ?? null)),
    name = `Attention weights, layer ${layer}, head ${head}`
  return attention({ name, names: text, rows, layer, head, ask: ask(shown), lit }, "word", state.lines === "1", set)
}
/** @param {Shown} shown */
function parts(shown) {
  const { made, state, small: now, set } = shown,
    { vocabulary, session } = now,
    { id } = made.all.find(one => vocabulary.words[one.id] === state.word) ?? made.all[0],
    named = (/** @type {number} */ one) => /** @type {[string, string]} */ (Array(2).fill(vocabulary.words[one]))
  return contributions({
    one: "word",
    words: partedOf(made, id).map(named),
    chosen: { id, value: vocabulary.words[id] },
    set,
    parts: session.parts(id),
    ask: ask(shown),
  })
}
/** @param {Shown} shown @param {number | undefined} lit */
function keys(shown, lit) {
  const { made, state, small: now } = shown,
    { text } = made,
    [layer, head] = [state.layer, state.head].map(Number),
    name = `KV cache: the key of each word, layer ${layer}, head ${head}`,
    rows = now.session.keys(layer, head) ?? []
  return cache({ name, names: text, rows, layer, head, ask: ask(shown), lit }, cachedOf(text.length, now.config))
}
