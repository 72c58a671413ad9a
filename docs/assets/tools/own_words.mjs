// A reader's own text for the small model: as far as it knows the words, and which words to take instead of one that it
// does not.

import { html } from "./view.mjs"

/**
 * @typedef {import("./capitals/small.mjs").Small} Small
 * @typedef {object} Known
 * @property {string[]} words as far as the first that the model does not know
 * @property {number[]} ids of these
 * @property {{ word: string, end: string } | null} strange the first unknown word, and the text before it
 */

const LIKELY = 3 // words to take instead

/** @type {Promise<Small> | undefined} */
let loaded
/** The model, loaded once; after a failure another time. @returns {Promise<Small>} */
export const theModel = () =>
  (loaded ??= import("./capitals/small.mjs")
    .then(({ smallModel }) => smallModel())
    .catch(error => {
      loaded = undefined
      throw error
    }))

/** @param {Pick<Small, "vocabulary" | "config">} small @param {string} text @returns {Known} */
export function unknown({ vocabulary, config }, text) {
  const pieces = vocabulary.cut(text),
    at = pieces.findIndex(({ id }) => id === undefined),
    known = pieces.slice(0, at < 0 ? pieces.length : at).slice(0, config.n_positions)
  return {
    words: known.map(({ text }) => text),
    ids: known.map(({ id }) => /** @type {number} */ (id)),
    strange: at < 0 ? null : { word: pieces[at].text, end: text.slice(0, pieces[at].start) },
  }
}

/**
 * Words instead of an unknown one: one that is spelled much like it, and the likeliest after the words before, or the
 * one that begins a sentence.
 * @param {Small} small
 * @param {Known} known
 * @param {string} begins
 */
export function offered({ session, vocabulary }, { ids, strange }, begins) {
  if (!strange) return []
  const near = vocabulary.nearest(strange.word),
    likely = ids.length ? likeliest(session, ids).map(id => vocabulary.words[id]) : [begins]
  return [...new Set([...(near ? [near] : []), ...likely])]
}
/**
 * What a reader is told of an unknown word, with the words to take instead as buttons.
 * @param {{ word: string, end: string }} strange
 * @param {string[]} others
 * @param {(text: string) => void} take
 */
export const notKnown = ({ word, end }, others, take) =>
  html`${`The small model does not know “${word}”. `}${others.length > 0 && "Try instead: "}
  ${others.map(
    other => html`<button type="button" class="ep-word" onclick=${() => take(`${end}${other}`)}>${other}</button> `,
  )}`

function likeliest(/** @type {Small["session"]} */ session, /** @type {number[]} */ ids) {
  session.run(ids)
  const { scores } = session
  return [...scores.keys()].sort((a, b) => scores[b] - scores[a]).slice(0, LIKELY)
}
