// Which words may come next, and one of them by chance.

import { sum } from "./numbers.mjs"

/**
 * @typedef {{ id: number, score: number, share: number, left: number, by: string }} Candidate its share of the
 *   probability, the share after the cut (0 if it is cut), and what cut it
 */

/**
 * The words by their probability at a temperature, of which top-k keeps the first k, and top-p the first that together
 * reach a share of what top-k keeps.
 * @param {number[]} scores
 * @param {{ temperature: number, topK: number, topP: number }} how
 * @returns {Candidate[]}
 */
export function candidates(scores, { temperature, topK, topP }) {
  const most = scores.reduce((all, x) => Math.max(all, x)),
    powers = scores.map(x => Math.exp((x - most) / temperature)),
    all = sum(powers)
  const order = scores.map((_, id) => id).sort((a, b) => scores[b] - scores[a] || a - b),
    first = order.slice(0, topK),
    kept = sum(first.map(id => powers[id])) / all
  let reached = 0
  const left = first.filter(id => {
    const isLeft = reached < topP * kept
    reached += powers[id] / all
    return isLeft
  })
  const rest = sum(left.map(id => powers[id])) / all
  return order.map((id, i) => ({
    id,
    score: scores[id],
    share: powers[id] / all,
    left: i < left.length ? powers[id] / all / rest : 0,
    by: i < left.length ? "" : i < first.length ? "top-p" : "top-k",
  }))
}

/**
 * One of the words that are left, each as likely as its share.
 * @param {Candidate[]} all
 * @param {number} chance from 0 to 1
 */
export function drawn(all, chance) {
  let reached = 0
  return (all.find(({ left }) => (reached += left) > chance) ?? all[0]).id
}
