// What a model would answer if it ended early, and which words are left to choose from.

import { ROLES } from "../../running.mjs"
import { ablated, arrayOf, asItIs } from "./changes.mjs"

/**
 * @typedef {import("./changes.mjs").Checkpoint} Checkpoint
 * @typedef {import("./changes.mjs").NDArray} NDArray
 * @typedef {import("./changes.mjs").Call} Call
 * @typedef {Pick<import("../run/tape.mjs").Tape, "step" | "computed">} Taping
 */

/**
 * The scores of all words if the model ended with each of these vectors: its own norm and head, and no layer.
 * @param {Checkpoint} model
 * @param {NDArray} stream
 * @param {{ without?: string[], others?: any[], tape?: Taping | null }} [how] what layers give besides; what hears of
 *   each step and call
 * @returns {NDArray}
 */
export function lens(model, stream, { without = [], others = [], tape = null } = {}) {
  /** @type {Call} */
  const plain = (step, args, kwargs) => {
    if (step.role === ROLES.LAYER) return others.length ? [stream, ...others] : stream
    return asItIs(step, args, kwargs)
  }
  const run = without.length ? ablated(without, plain) : plain
  return model.run(Array(stream.dims[0]).fill(0), {
    watch: {
      call: (step, args, kwargs) =>
        tape ? tape.step(step, args, kwargs, null, () => run(step, args, kwargs)) : run(step, args, kwargs),
      computed: (...call) => tape?.computed(...call),
    },
  }).scores
}

/**
 * The scores of all words if a run's model ended before its first layer, or after each.
 * @param {import("./changes.mjs").Changed} run
 * @returns {number[][]}
 */
export const endings = ({ model, stream, without, layers }) =>
  lens(model, arrayOf(stream), { without, others: layers[0].others }).lists()

const sum = (/** @type {number[]} */ numbers) => numbers.reduce((all, x) => all + x, 0)

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
