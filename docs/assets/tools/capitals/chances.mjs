// What the probability of a word was made of: of a distribution's scores, and of what a cut leaves.

import { sum } from "./numbers.mjs"

/**
 * @typedef {import("./candidates.mjs").Candidate} Candidate
 * @typedef {import("./asked.mjs").Origin} Origin
 * @typedef {import("./asked.mjs").Part} Part
 * @typedef {object} Of
 * @property {Candidate[]} all words, by their probability
 * @property {number} temperature
 * @property {(id: number) => string} wordOf
 * @property {(place: string) => Part} part
 */

const MOST = 8 // words that have a row each

/**
 * @param {"chance" | "left"} kind
 * @param {number} id
 * @param {Of} of
 * @returns {Origin}
 */
export function ofChance(kind, id, of) {
  const { all, temperature } = of,
    wordOf = (/** @type {number} */ id) => of.wordOf(id),
    own = all.find(one => one.id === id) ?? all[0],
    word = `“${wordOf(id)}”`,
    rest = { head: [], rows: [], next: [] }
  if (kind === "left") {
    const kept = all.filter(({ left }) => left),
      others = kept.slice(MOST)
    return {
      ...rest,
      value: own.left,
      title: `Probability of ${word} after the cut`,
      how: "Its probability over the sum of those of all words that are left.",
      head: ["Word", "Probability"],
      rows: kept.slice(0, MOST).map(({ id }) => [wordOf(id), of.part(`chance/${id}`)]),
      then: [
        [`Plus the other ${others.length} words that are left`, { value: sum(others.map(({ share }) => share)) }],
        [`Of ${word}, over this sum`, of.part(`chance/${id}`)],
      ],
    }
  }
  const shown = all.slice(0, MOST),
    most = all[0].score,
    power = (/** @type {Candidate} */ { score }) => Math.exp((score - most) / temperature),
    heat = temperature === 1 ? "" : `, over the temperature of ${temperature}`
  return {
    ...rest,
    value: own.share,
    title: `Probability of ${word}`,
    how: `Softmax: e to the power of a logit minus the largest${heat}, over the sum of those of all words.`,
    head: ["Word", "Logit", "Exponential"],
    rows: shown.map(one => [wordOf(one.id), of.part(`logit/${one.id}`), { value: power(one) }]),
    then: [
      [`Plus the other ${all.length - shown.length} words`, { value: sum(all.slice(MOST).map(power)) }],
      [`Of ${word}, over this sum`, { value: power(own) }],
    ],
    next: own.share && own.left ? [["the share after the cut", `left/${id}`]] : [],
  }
}
