// Run a checkpoint: what may be asked for, and what of the worker's answers is shown. Nothing of a page.

import { likelyOf, percent, unchanged } from "../capitals/numbers.mjs"
import { quoted, short, within } from "../capitals/rules.mjs"

/**
 * @typedef {import("./asking.mjs").Tasks} Tasks
 * @typedef {import("./session.mjs").About} About
 * @typedef {Awaited<ReturnType<Tasks["answer"]>> & { problem?: string }} Answer
 */

export const LONGEST = 4000 // characters of a text in the address
export const FIRST = {
  ...{ text: "", source: "", added: "", temperature: "1", top_k: "", top_p: "", layer: "0", head: "0", off: "" },
  ...{ without: "", other: "", patch: "", position: "", word: "", lines: "", number: "", steps: "", step: "" },
}
/** @typedef {typeof FIRST} State */

export const list = (/** @type {string} */ text) => text.split("|").filter(Boolean)
const each = (/** @type {string} */ name, /** @type {RegExp} */ part) => (/** @type {string} */ text) => {
  for (const one of text.split("|"))
    if (!part.test(one)) throw new Error(`${name} = ${quoted(one)}: not a part of a model`)
  return text
}
const whole = (/** @type {string} */ name, /** @type {number} */ most) => (/** @type {string} */ text) =>
  within(name, text, 0, most, true)
/** @type {Record<string, import("../address.mjs").Rule>} */
export const RULES = {
  text: text => short("text", text, LONGEST),
  source: text => short("source", text, LONGEST),
  other: text => short("other", text, LONGEST),
  added(text) {
    if (/^\d{1,9}(,\d{1,9}){0,999}$/.test(text)) return text
    throw new Error(`added = ${quoted(text)}: not a list of token ids`)
  },
  temperature: text => within("temperature", text, 0.1, 3),
  top_k: text => within("top_k", text, 1, 1e9, true),
  top_p: text => within("top_p", text, 0.01, 1),
  layer: whole("layer", 9999),
  head: whole("head", 9999),
  off: each("off", /^\d{1,4}\.(\d{1,4}|mlp|layer)$/),
  without: each("without", /^[\w.]{1,80}$/),
  patch: each("patch", /^\d{1,4}\.(\d{1,4}|mlp|stream)@\d{1,4}$/),
  position: whole("position", 9999),
  word: whole("word", 1e9),
  lines: text => within("lines", text, 1, 1, true),
  steps: text => within("steps", text, 1, 1, true),
  step: whole("step", 99_999),
  number: each("number", /^\w{1,12}(\/\w{1,12}){1,4}$/),
}
// What is asked for

export const addedOf = (/** @type {State} */ { added }) => (added ? added.split(",").map(Number) : [])
export const howOf = (/** @type {State} */ { temperature, top_k: topK, top_p: topP }) => ({
  temperature: Number(temperature),
  topK: Number(topK) || 0,
  topP: Number(topP) || 1,
})
/** A run. @param {State} state @param {About?} about */
export const askedOf = (state, about) => ({
  text: state.text,
  source: state.source,
  added: addedOf(state),
  how: howOf(state),
  changed: {
    off: list(state.off),
    without: list(state.without),
    patches: list(state.patch),
    other: about?.hasSource ? "" : state.other,
  },
})
/**
 * The layer and the head that are open: those that are asked for, or the first that there are.
 * @param {State} state
 * @param {Pick<Answer, "heads">} answer
 */
export function openedOf({ layer: asked, head }, { heads }) {
  const layer = heads[Number(asked)] ? Number(asked) : Math.max(0, heads.findIndex(Boolean))
  return { layer, head: Math.min(Number(head), Math.max(0, (heads[layer] ?? 1) - 1)) }
}

// What is shown

// A token whose spaces are seen.
export const visible = (/** @type {string} */ text) =>
  text.trim() === text && text ? text : `“${text.replaceAll(" ", "\u00a0")}”`
const number = (/** @type {number} */ n) => n.toLocaleString("en")

/**
 * The table of the next tokens.
 * @param {Answer} answer
 * @param {State} state
 * @returns {import("../capitals/numbers.mjs").Words}
 */
export function wordsOf({ likely, left, kept, vocabulary, first }, state) {
  const isCut = left < vocabulary,
    before = unchanged(state),
    those = likely.map(one => ({ ...one, name: visible(one.text) }))
  return {
    caption: `Most likely next tokens, out of ${number(vocabulary)}`,
    ...likelyOf(["Token", "#Id"], those, first ? before : "", isCut),
    notes: [
      first
        ? `${before}, the most likely token is ${visible(first.text)} (${percent(first.share)}). Now it is in ` +
          `place ${number(first.place)} of ${number(vocabulary)}.`
        : "",
      isCut ? `The choice is from ${number(left)} tokens, which have ${percent(kept)} of the probability.` : "",
    ].filter(Boolean),
  }
}

const MOST_MAPS = 400 // small maps that are drawn at once
/** The layers whose maps are shown: all, or the open one of many. @param {Answer} answer @param {number} layer */
export const mapped = ({ heads }, layer) =>
  [...heads.keys()].filter(i => heads.reduce((sum, n) => sum + n, 0) <= MOST_MAPS || i === layer)

const MOST_IN_TABLE = 32 // tokens of an opened map
/**
 * An opened map, of the last tokens; NaN is masked. And the keys of the cache, if there are any.
 * @param {Answer} answer
 * @param {{ layer: number, head: number }} opened
 * @param {ArrayLike<number>} shares
 * @param {number[][] | null} keys
 */
export function attentionOf({ tokens }, { layer, head }, shares, keys) {
  const from = Math.max(0, tokens.length - MOST_IN_TABLE),
    first = Math.max(0, (keys?.length ?? 0) - MOST_IN_TABLE),
    names = tokens.map(({ text }) => visible(text)),
    shown = names.slice(from)
  const rows = shown.map((_, i) =>
    shown.map((_, j) => {
      const share = shares[(from + i) * tokens.length + from + j]
      return Number.isNaN(share) ? null : share
    }),
  )
  return {
    name: `Attention weights, layer ${layer}, head ${head}${from ? `, the last ${MOST_IN_TABLE} tokens` : ""}`,
    ...{ layer, head, names: shown, rows, from },
    keys: keys && {
      name: `KV cache: the key of each token, layer ${layer}, head ${head}`,
      ...{ names: names.slice(tokens.length - keys.length + first), rows: keys.slice(first), from: first },
    },
  }
}

/**
 * What can be patched from another text; null if there is none that fits.
 * @param {Answer} answer
 * @param {State} state
 * @param {About?} about
 */
export function patchesOf({ tokens, other, answers, heads, problem }, state, about) {
  if (!other || !answers || problem) return null
  const { layer } = openedOf(state, { heads }),
    asked = state.position === "" ? tokens.length - 1 : Number(state.position),
    at = Math.min(asked, tokens.length - 1)
  const sentence = (/** @type {{ text: string }[]} */ all) =>
    all
      .map(({ text }) => text)
      .join(about?.hasTokenizer ? "" : ",")
      .trim()
  return {
    ...{ at, layer, heads: heads[layer], patches: list(state.patch) },
    text: tokens.map(({ text }) => text.trim() || visible(text)),
    ...{ sentence: sentence(tokens), other: sentence(other) },
    answers: /** @type {[string, string]} */ (answers.map(({ text }) => visible(text))),
    key: JSON.stringify([state.text, state.added, state.other, state.off, state.without, layer, at]),
  }
}
