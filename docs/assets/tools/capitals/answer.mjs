// The small model, asked: the choices with their rules, the words that come next, and the tables of them. Nothing of a
// page.

import { candidates } from "./candidates.mjs"
import { likelyOf, percent, unchanged } from "./numbers.mjs"
import { oneOf, quoted, short, within } from "./rules.mjs"

const SHOWN = 8,
  COMPARED = 5
/**
 * @typedef {import("./small.mjs").Small} Small
 * @typedef {Small["vocabulary"]} Vocabulary
 * @typedef {import("../run/seen.mjs").Seen} Run
 * @typedef {import("./candidates.mjs").Candidate[]} Candidates
 * @typedef {typeof FIRST} State
 * @typedef {{ countries: Record<string, string>[], sentences: string[] }} Facts
 * @typedef {object} Made what the model makes of a text
 * @property {string[]} text so far
 * @property {number} begun how many of its words were given
 * @property {boolean} isFull whether no word can follow
 * @property {Run} run
 * @property {Run} base the same without patches
 * @property {Run | null} from another sentence to patch from
 * @property {Candidates} all
 * @property {Candidates | null} whole the words without any change, if there is one
 * @property {import("../run/session.mjs").How} how the next word is chosen
 * @typedef {object} Answer
 * @property {string} written the text of the field
 * @property {import("./vocabulary.mjs").Piece | null} unknown the first piece of it that is no word of the model
 * @property {string} problem with the other sentence
 * @property {Made | null} made nothing without a word
 */

export const FIRST = {
  ...{ country: "France", sentence: "0", text: "", added: "", temperature: "1", top_k: "", top_p: "" },
  ...{ layer: "0", head: "0", off: "", without: "", with: "", other: "", patch: "", position: "", word: "" },
  ...{ lines: "", number: "" },
}
export const list = (/** @type {string} */ text) => text.split("|").filter(Boolean)
const lines = (/** @type {string} */ text) =>
  text
    .trim()
    .split("\n")
    .map(line => line.trim())

/** The countries with their facts, and the sentences, of their files. @param {string} rows @param {string} sentences */
export function factsOf(rows, sentences) {
  const [head, ...all] = lines(rows).map(line => line.split(","))
  return {
    countries: all.map(line => Object.fromEntries(head.map((name, i) => [name, line[i]]))),
    sentences: lines(sentences),
  }
}
/** A sentence up to its last blank. @param {string} sentence */
export const start = sentence => sentence.slice(0, sentence.lastIndexOf("{")).trim()
const filled = (/** @type {string} */ sentence, /** @type {Record<string, string>} */ country) =>
  start(sentence)
    .split(" ")
    .map(word => word.replace(/\{(\w+)\}/, (_, name) => country[name]))

/**
 * The rules of an address; without the model, nothing that depends on it is taken.
 * @param {Facts} facts
 * @param {{ config: Small["config"], vocabulary: Vocabulary, designs: string[] } | null} known
 * @returns {Record<keyof State, import("../address.mjs").Rule>}
 */
export function rulesOf({ countries, sentences }, known) {
  const upTo = (/** @type {number | undefined} */ n) => Array.from({ length: n ?? 0 }, (_, i) => `${i}`),
    { n_layer, n_head, n_positions, vocab_size = 1 } = known?.config ?? {}
  const of = (/** @type {string} */ name, /** @type {string[]} */ those) => (/** @type {string} */ text) =>
    oneOf(name, text, those)
  const each = (/** @type {string} */ name, /** @type {string[]} */ those) => (/** @type {string} */ text) => {
    for (const one of text.split("|")) oneOf(name, one, those)
    return text
  }
  const partsOf = (/** @type {string} */ whole) =>
    upTo(n_layer).flatMap(l => [...upTo(n_head), "mlp", whole].map(part => `${l}.${part}`))
  const names = countries.map(({ country }) => country)
  return {
    country: of("country", names),
    sentence: of("sentence", upTo(sentences.length)),
    text: text => short("text", text),
    added(text) {
      const strange = text.split("|").find(word => word && !known?.vocabulary.ids.has(word))
      if (strange === undefined) return text
      throw new Error(`added = ${quoted(strange)}: not in the model’s vocabulary`)
    },
    temperature: text => within("temperature", text, 0.1, 3),
    top_k: text => within("top_k", text, 1, vocab_size, true),
    top_p: text => within("top_p", text, 0.01, 1),
    layer: of("layer", upTo(n_layer)),
    head: of("head", upTo(n_head)),
    off: each("off", partsOf("layer")),
    without: each("without", known?.designs ?? []),
    with: of("with", names),
    other: text => short("other", text),
    patch(text) {
      for (const patch of text.split("|")) {
        const [part, at] = patch.split("@")
        oneOf("patch", part, partsOf("stream"))
        oneOf("patch", at ?? "", upTo(n_positions))
      }
      return text
    },
    position: of("position", upTo(n_positions)),
    word: of("word", known?.vocabulary.words ?? []),
    lines: of("lines", ["1"]),
    number(text) {
      if (/^\w{1,12}(\/\w{1,12}){1,4}$/.test(text)) return text
      throw new Error(`number = ${quoted(text)}: not a place in this model`)
    },
  }
}
/** The layer and the head of the number that is asked for, if it is of one. @param {string} number */
export function headOf(number) {
  const [, layer, head] = /^(?:share|score|mixed|found)\/(\d+)\/(\d+)\//.exec(number) ?? []
  return layer === undefined ? null : { layer, head }
}

// What is asked

/** The words that were given, as far as the first that is unknown. @param {State} state @param {Facts} facts */
function given({ country, sentence, text }, { countries, sentences }, /** @type {Vocabulary} */ vocabulary) {
  if (!text) {
    const named = countries.find(one => one.country === country) ?? countries[0]
    return { words: filled(sentences[Number(sentence)], named), unknown: null }
  }
  const pieces = vocabulary.cut(text),
    strange = pieces.findIndex(({ id }) => id === undefined)
  return {
    words: pieces.slice(0, strange < 0 ? pieces.length : strange).map(piece => piece.text),
    unknown: strange < 0 ? null : pieces[strange],
  }
}
/**
 * The other sentence, and what is wrong with it: it needs a word for each of the text.
 * @param {State} state
 * @param {Facts} facts
 * @param {Vocabulary} vocabulary
 * @param {string[]} text
 * @returns {{ words: string[] | null, problem: string }}
 */
function another(state, { countries, sentences }, vocabulary, text) {
  const none = (/** @type {string} */ problem) => ({ words: null, problem })
  if (!state.with && !state.other) return none("")
  const pieces = state.other ? vocabulary.cut(state.other) : [],
    unknown = pieces.find(({ id }) => id === undefined)
  if (unknown) return none(`“${unknown.text}” is unknown.`)
  const named = countries.find(c => c.country === state.with) ?? countries[0]
  const words = state.other
    ? pieces.map(piece => piece.text)
    : state.text
      ? text.map(word => (countries.some(c => c.country === word) ? named.country : word))
      : filled(sentences[Number(state.sentence)], named)
  if (words.length !== text.length)
    return none(`It has ${words.length} words, and the sentence above has ${text.length}: a patch needs as many.`)
  return { words, problem: "" }
}
/**
 * What the model makes of a choice. Only new tokens are computed, the others are in the session's cache.
 * @param {State} state
 * @param {Facts} facts
 * @param {Small} small
 * @returns {Answer}
 */
export function answer(state, facts, { session, vocabulary, config }) {
  const { words, unknown } = given(state, facts, vocabulary),
    added = list(state.added),
    written = [...words, ...added].join(" "),
    text = [...words, ...added.filter(word => vocabulary.ids.has(word))].slice(0, config.n_positions)
  if (!text.length) return { written, unknown, problem: "", made: null }
  const idsOf = (/** @type {string[]} */ words) => words.map(word => /** @type {number} */ (vocabulary.ids.get(word)))
  const how = {
    temperature: Number(state.temperature),
    topK: Number(state.top_k) || config.vocab_size,
    topP: Number(state.top_p) || 1,
  }
  const other = another(state, facts, vocabulary, text)
  session.run(idsOf(text), [], undefined, {
    off: list(state.off),
    without: list(state.without),
    patches: list(state.patch),
    other: other.words && idsOf(other.words),
  })
  const { now: run, base, from = null, plain } = session
  if (!run || !base || !plain) return { written, unknown, problem: other.problem, made: null }
  const all = candidates(run.scores, how),
    whole = run === plain ? null : candidates(plain.scores, how)
  const begun = Math.min(words.length, text.length),
    isFull = text.length >= config.n_positions
  return { written, unknown, problem: other.problem, made: { text, begun, isFull, run, base, from, all, whole, how } }
}

// What is shown

/**
 * @typedef {object} Own what the field of a reader's own text shows
 * @property {string | undefined} value nothing while one types into it
 * @property {{ start: number, words: string[] }} offered what may complete it
 * @property {string} unknown a word that is none of the model's
 * @property {string | null} near the word that it was meant to be
 * @property {number} words of the model
 */
/**
 * @param {Answer} answer
 * @param {State} state
 * @param {Vocabulary} vocabulary
 * @param {boolean} isTyping
 * @returns {Own}
 */
export function ownOf({ written, unknown, made }, { text }, vocabulary, isTyping) {
  const offered = isTyping && text ? vocabulary.completions(text, made?.run.scores ?? []) : { start: 0, words: [] }
  const isCompleted = offered.words.length > 0 && unknown !== null && unknown.start >= offered.start,
    strange = unknown && !isCompleted ? unknown.text : ""
  return {
    value: isTyping ? undefined : unknown ? text : written,
    offered,
    unknown: strange,
    near: strange ? vocabulary.nearest(strange) : null,
    words: vocabulary.words.length,
  }
}

/**
 * The table of the next words.
 * @param {Made} made
 * @param {State} state
 * @param {Small} small
 * @returns {import("./numbers.mjs").Words}
 */
export function wordsOf({ all, whole, isFull }, state, { vocabulary, config }) {
  const left = all.filter(one => one.left),
    isCut = left.length < all.length,
    kept = left.reduce((all, { share }) => all + share, 0),
    shareOf = (/** @type {number} */ id) => whole?.find(one => one.id === id)?.share,
    likely = all.slice(0, SHOWN).map(one => ({ ...one, name: vocabulary.words[one.id], before: shareOf(one.id) })),
    cuts = [state.top_k && `top-k ${state.top_k}`, state.top_p && `top-p ${state.top_p}`].filter(Boolean)
  const caption = isFull
    ? `The text has its maximum length: the model has ${config.n_positions} positions.`
    : `Most likely next words, out of ${config.vocab_size}`
  return {
    caption: `${caption}${state.temperature === "1" ? "" : `, at temperature ${state.temperature}`}`,
    ...likelyOf(["Word"], likely, whole ? unchanged(state) : "", isCut),
    notes: [
      whole ? instead(unchanged(state), all, whole, vocabulary) : "",
      isCut
        ? `With ${cuts.join(" and ")}, the choice is from ${left.length} of ${config.vocab_size} words, which have ` +
          `${percent(kept)} of the probability. Their shares are scaled up to 100%; “Draw a word” draws one of them.`
        : "",
    ].filter(Boolean),
  }
}
/**
 * What became of the answer when something was changed.
 * @param {string} before
 * @param {Candidates} all
 * @param {Candidates} whole
 * @param {Vocabulary} vocabulary
 */
function instead(before, all, whole, vocabulary) {
  const [{ id, share }] = whole,
    at = all.findIndex(one => one.id === id)
  return (
    `${before}, the most likely word is ${vocabulary.words[id]} (${percent(share)}). ` +
    `Now it is in place ${at + 1} of ${all.length} (${percent(all[at].share)}).`
  )
}
/** The words whose logits are compared after each layer. @param {Made} made */
export const comparedOf = ({ all }) => all.slice(0, COMPARED).map(({ id }) => id)
/** The words whose parts can be shown, with the chosen one. @param {Made} made @param {number} chosen */
export const partedOf = ({ all }, chosen) => [...new Set([...all.slice(0, SHOWN).map(({ id }) => id), chosen])]
/**
 * The attention weights of a head, of the words that each word looks at.
 * @param {Run} run
 * @param {number} layer
 * @param {number} head
 */
export function rowsOf(run, layer, head) {
  const map = run.map(layer, head),
    n = run.ids.length
  return Array.from({ length: n }, (_, i) => [...map.subarray(i * n, (i + 1) * n)].filter(x => !Number.isNaN(x)))
}
/** How many numbers the cache holds, in words. @param {number} words @param {Small["config"]} config */
export function cachedOf(words, { n_layer, n_embd }) {
  const numbers = 2 * n_layer * n_embd
  return (
    `Each word adds a key and a value in every head of every layer: ${numbers} numbers. For ${words} words, the ` +
    `cache holds ${grouped(numbers * words)}. Only the last row is new; the others were already cached.`
  )
}
// 1,440; a browser takes longer to load its own words for it.
const grouped = (/** @type {number} */ n) => `${n}`.replace(/\B(?=(\d{3})+$)/g, ",")
