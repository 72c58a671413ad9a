// What a model would answer if it ended early.

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
