// What a run of the small model leaves behind: the residual stream, the attention weights, the parts of the answer's
// score. All of it is seen from outside, step by step by its role.

import { HOLDS, ROLES } from "../../running.mjs"
import { ablated, arrayOf, asItIs, Changed } from "./changes.mjs"

/**
 * @typedef {import("./changes.mjs").Checkpoint} Checkpoint
 * @typedef {import("./changes.mjs").NDArray} NDArray
 * @typedef {import("./changes.mjs").Call} Call
 * @typedef {import("./changes.mjs").Changes} Changes
 * @typedef {Pick<import("../run/tape.mjs").Tape, "step" | "computed">} Taping
 * @typedef {object} Seen what attention of a layer made of the tokens so far
 * @property {number[][][]} queries by token and head
 * @property {number[][][]} scores by token and head, of the tokens up to this one
 * @property {number[][][]} shares the same after the softmax
 * @typedef {import("./changes.mjs").Layer & Seen} Layer
 */

/** @extends {Changed<Layer>} */
export class Run extends Changed {
  /** @type {Map<string, number[][]>} what each norm, map and activation function made: a row for each token */
  made = new Map()

  // Whether a text goes on where this run stands; without the mask, new words change the earlier ones.
  isStartOf(/** @type {number[]} */ ids) {
    return this.ids.every((id, i) => id === ids[i]) && (this.isMasked || this.ids.length === ids.length)
  }
  // Whether a norm, by the name of its weights, is left out.
  isWithoutNorm(/** @type {string} */ name) {
    return this.without.some(one => one === "norms" || `.${name}`.endsWith(`.${one}`))
  }

  /** The keys in the cache: by token and head. */
  keys(/** @type {number} */ layer) {
    const place = [BigInt(layer), HOLDS.KEYS, 0n]
    return this.cache.kept.read(place).lists()
  }

  empty(/** @type {number} */ number, prefix = "") {
    return { ...super.empty(number, prefix), queries: [], scores: [], shares: [] }
  }

  /** @type {Changed["keep"]} */
  keep({ role }, args, _, result) {
    const { at } = this
    switch (role) {
      case ROLES.LAYER_NORM:
      case ROLES.CONV1D:
        this.keepRows(`${args[1].prefix}${args[2]}`, result)
        break
      case ROLES.GELU_TANH:
        this.keepRows(`transformer.h.${at?.number}.mlp.act`, result)
        break
      case ROLES.SCORES:
        at?.queries.push(...args[0].lists())
        at?.scores.push(...this.byToken(result))
        break
      case ROLES.SOFTMAX:
        at?.shares.push(...this.byToken(result))
    }
  }

  // [N T S] by token and head, without the tokens that are masked: those have no score.
  byToken(/** @type {NDArray} */ numbers) {
    const heads = numbers.lists(),
      before = this.ids.length
    return heads[0].map((/** @type {number[]} */ _, /** @type {number} */ token) =>
      heads.map((/** @type {number[][]} */ rows) =>
        this.isMasked ? rows[token].slice(0, before + token + 1) : rows[token],
      ),
    )
  }

  keepRows(/** @type {string} */ name, /** @type {NDArray} */ rows) {
    this.made.set(name, [...(this.made.get(name) ?? []), ...rows.lists()])
  }
}

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
 * @param {Changed} run
 * @returns {number[][]}
 */
export const endings = ({ model, stream, without, layers }) =>
  lens(model, arrayOf(stream), { without, others: layers[0].others }).lists()

/**
 * @typedef {object} Parts of a word's score: each layer's heads, the bias of their output, its feed-forward network
 * @property {{ heads: number[], bias: number, feedForward: number }[]} layers
 * @property {number} token
 * @property {number} position
 * @property {number} taken by patches of the residual stream
 * @property {number} shift of the last norm
 */

/**
 * What a vector adds to a word's score, with the mean and the size of the last norm held as they are in this run: each
 * number without the vector's mean, times a direction.
 * @param {Run} run
 * @param {number} word
 */
export function direction(run, word) {
  const { model, layers, ids } = run
  const rows = (/** @type {string} */ name) => model.weights.read(`transformer.${name}`),
    answer = /** @type {number[]} */ (Array.from(rows("wte.weight").__getitem__(BigInt(word)).flat(), Number))
  if (run.isWithoutNorm("ln_f")) return { along: answer, isCentred: false, shift: 0 }
  const x = layers[layers.length - 1].after[ids.length - 1],
    mean = average(x),
    size = Math.sqrt(average(x.map(v => (v - mean) ** 2)) + Number(model.config.norm_eps)),
    along = Array.from(rows("ln_f.weight").flat(), (scale, i) => (Number(scale) * answer[i]) / size)
  return { along, isCentred: true, shift: dot(Array.from(rows("ln_f.bias").flat(), Number), answer) }
}

/**
 * What each part adds to a word's score: they add up to it.
 * @param {Run} run
 * @param {number} word
 * @returns {Parts}
 */
export function parts(run, word) {
  const { model, layers, ids } = run,
    at = ids.length - 1,
    { along, isCentred, shift } = direction(run, word),
    centre = isCentred ? average(along) : 0,
    isAdded = !run.without.includes("residual_stream")
  const rows = (/** @type {string} */ name) => model.weights.read(`transformer.${name}`)
  const flat = (/** @type {string} */ name) => Array.from(rows(name).flat(), Number)
  const row = (/** @type {string} */ name, /** @type {number} */ i) =>
    Array.from(rows(name).__getitem__(BigInt(i)).flat(), Number)
  const added = (/** @type {number[]} */ part) => dot(part, along) - centre * part.length * average(part),
    first = (/** @type {number[]} */ part) => (isAdded ? added(part) : 0)
  return {
    token: first(row("wte.weight", ids[at])),
    position: first(row("wpe.weight", at)),
    taken: sum(layers.map(({ taken }) => (taken[at] ? first(taken[at]) : 0))),
    shift,
    layers: layers.map((layer, i) => {
      const isLast = i === layers.length - 1
      if (run.off.has(`${i}.layer`)) return { heads: layer.mixed[at].map(() => 0), bias: 0, feedForward: 0 }
      const matrix = rows(`h.${i}.attn.c_proj.weight`).lists()
      const heads = layer.mixed[at].map((found, head) =>
        found.reduce((total, v, k) => total + v * first(matrix[head * found.length + k]), 0),
      )
      const feedForward = isAdded || isLast ? added(layer.feedForward[at]) : 0
      return { heads, bias: first(flat(`h.${i}.attn.c_proj.bias`)), feedForward }
    }),
  }
}
/** All parts together: the score. */
export const total = (/** @type {Parts} */ { layers, token, position, taken, shift }) =>
  sum([
    ...[token, position, taken, shift],
    ...layers.flatMap(({ heads, bias, feedForward }) => [...heads, bias, feedForward]),
  ])

const sum = (/** @type {number[]} */ numbers) => numbers.reduce((all, x) => all + x, 0)
const average = (/** @type {number[]} */ numbers) => sum(numbers) / numbers.length
const dot = (/** @type {number[]} */ a, /** @type {number[]} */ b) => a.reduce((all, x, i) => all + x * b[i], 0)

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
