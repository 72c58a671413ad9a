// What a run of the small model leaves behind: the residual stream, the attention weights, the parts of the answer's
// score. All of it is seen from outside, step by step by its role; so is what is switched off.

import { array, Cache, HOLDS, py, ROLES } from "../../running.mjs"

/**
 * @typedef {import("../../running.mjs").Checkpoint} Checkpoint
 * @typedef {import("../../running.mjs").NDArray} NDArray
 * @typedef {object} Layer what one layer made of the tokens so far, a row each
 * @property {number[][]} before the residual stream that it got
 * @property {number[][][]} queries by token and head
 * @property {number[][][]} scores by token and head, of the tokens up to this one
 * @property {number[][][]} shares the same after the softmax
 * @property {number[][][]} mixed what each head found, by token and head
 * @property {number[][]} after
 * @property {number[][]} feedForward
 */

/** A text that grows token by token: only new tokens are computed, the others are in the cache. */
export class Run {
  /**
   * @param {Checkpoint} model
   * @param {Set<string>} off what is switched off: `0.1` (layer, head), `0.mlp`, `0.layer`
   */
  constructor(model, off = new Set()) {
    this.model = model
    this.off = off
    /** @type {number[]} */
    this.ids = []
    /** @type {number[]} */
    this.scores = []
    this.cache = Cache()
    /** @type {Layer[]} */
    this.layers = []
    /** @type {Map<string, number[][]>} what each norm, map and activation function made: a row for each token */
    this.made = new Map()
    this.at = -1
  }

  // Whether a text goes on where this run stands.
  isStartOf(/** @type {number[]} */ ids) {
    return this.ids.every((id, i) => id === ids[i])
  }

  add(/** @type {number[]} */ ids) {
    if (!ids.length) return
    this.at = -1
    const { scores, cache } = this.model.run(ids, { cache: this.cache, last: true, watch: this })
    this.ids = [...this.ids, ...ids]
    this.cache = cache
    this.scores = Array.from(scores.flat(), Number)
  }

  /** The residual stream of the last token, before the first layer and after each. */
  get stream() {
    return [...this.layers.map(layer => layer.before), this.layers[this.layers.length - 1].after].map(
      rows => rows[rows.length - 1],
    )
  }

  /** The keys in the cache: by token and head. */
  keys(/** @type {number} */ layer) {
    const place = [BigInt(layer), HOLDS.KEYS, 0n]
    return this.cache.kept.read(place).lists()
  }

  /**
   * A step: as it is, or what is put in its place; what it makes is kept.
   * @param {Engine.Step} step
   * @param {any[]} args
   * @param {Engine.Dict<string, any>} kwargs
   */
  call(step, args, kwargs) {
    const { role } = step
    if (role === ROLES.LAYER) {
      const kept = (this.layers[++this.at] ??= {
        before: [],
        queries: [],
        scores: [],
        shares: [],
        mixed: [],
        after: [],
        feedForward: [],
      })
      kept.before.push(...args[0].lists())
    }
    let result = py.apply(step.function, args, Object.fromEntries(py.entries(kwargs)))
    const kept = this.layers[this.at],
      isOff = (/** @type {string | number} */ part) => this.off.has(`${this.at}.${part}`)
    if (role === ROLES.LAYER_NORM || role === ROLES.CONV1D) this.keep(`${args[1].prefix}${args[2]}`, result)
    switch (role) {
      case ROLES.GELU_TANH:
        this.keep(`transformer.h.${this.at}.mlp.act`, result)
        break
      case ROLES.SCORES:
        kept.queries.push(...args[0].lists())
        kept.scores.push(...byToken(result, this.ids.length))
        break
      case ROLES.SOFTMAX:
        kept.shares.push(...byToken(result, this.ids.length))
        break
      case ROLES.WEIGHTED_SUM: {
        const on = Array.from({ length: result.dims[1] }, (_, head) => (isOff(head) ? 0 : 1))
        if (on.includes(0)) result = result.__mul__(array(Float32Array.from(on), [on.length, 1]))
        kept.mixed.push(...result.lists())
        break
      }
      case ROLES.FEED_FORWARD:
        if (isOff("mlp")) result = result.__mul__(0)
        kept.feedForward.push(...result.lists())
        break
      case ROLES.LAYER:
        if (isOff("layer")) result = args[0]
        kept.after.push(...result.lists())
    }
    return result
  }

  keep(/** @type {string} */ name, /** @type {NDArray} */ rows) {
    this.made.set(name, [...(this.made.get(name) ?? []), ...rows.lists()])
  }
}

/**
 * [N T S] by token and head, without the tokens that follow: those have no score.
 * @param {NDArray} numbers
 * @param {number} before tokens in the cache
 * @returns {number[][][]}
 */
function byToken(numbers, before) {
  const heads = numbers.lists()
  return heads[0].map((/** @type {number[]} */ _, /** @type {number} */ token) =>
    heads.map((/** @type {number[][]} */ rows) => rows[token].slice(0, before + token + 1)),
  )
}

/**
 * The scores of all words if the model ended with each of these vectors: its own norm and head, and no layer.
 * @param {Checkpoint} model
 * @param {number[][]} stream
 * @returns {number[][]}
 */
export function lens(model, stream) {
  const x = array(Float32Array.from(stream.flat()), [stream.length, stream[0].length])
  const watch = {
    /** @type {import("../../running.mjs").Watch["call"]} */
    call: (step, args, kwargs) =>
      step.role === ROLES.LAYER ? x : py.apply(step.function, args, Object.fromEntries(py.entries(kwargs))),
  }
  return model.run(Array(stream.length).fill(0), { watch }).scores.lists()
}

/**
 * @typedef {object} Parts of a word's score: each layer's heads, the bias of their output, its feed-forward network
 * @property {{ heads: number[], bias: number, feedForward: number }[]} layers
 * @property {number} token
 * @property {number} position
 * @property {number} shift of the last norm
 */

/**
 * What each part adds to a word's score, with the mean and the size of the last norm held as they are in this run.
 * @param {Run} run
 * @param {number} word
 * @returns {Parts}
 */
export function parts(run, word) {
  const { model, layers, ids } = run,
    at = ids.length - 1
  const rows = (/** @type {string} */ name) => model.weights.read(`transformer.${name}`)
  const flat = (/** @type {string} */ name) => Array.from(rows(name).flat(), Number)
  const row = (/** @type {string} */ name, /** @type {number} */ i) =>
    Array.from(rows(name).__getitem__(BigInt(i)).flat(), Number)
  const x = layers[layers.length - 1].after[at],
    mean = average(x),
    size = Math.sqrt(average(x.map(v => (v - mean) ** 2)) + Number(model.config.norm_eps)),
    answer = row("wte.weight", word),
    direction = flat("ln_f.weight").map((scale, i) => (scale * answer[i]) / size)
  const centre = average(direction)
  const added = (/** @type {number[]} */ part) => dot(part, direction) - centre * part.length * average(part)
  return {
    token: added(row("wte.weight", ids[at])),
    position: added(row("wpe.weight", at)),
    shift: dot(flat("ln_f.bias"), answer),
    layers: layers.map((layer, i) => {
      if (run.off.has(`${i}.layer`)) return { heads: layer.mixed[at].map(() => 0), bias: 0, feedForward: 0 }
      const matrix = rows(`h.${i}.attn.c_proj.weight`).lists()
      const heads = layer.mixed[at].map((found, head) =>
        found.reduce((total, v, k) => total + v * added(matrix[head * found.length + k]), 0),
      )
      return { heads, bias: added(flat(`h.${i}.attn.c_proj.bias`)), feedForward: added(layer.feedForward[at]) }
    }),
  }
}
/** All parts together: the score. */
export const total = (/** @type {Parts} */ { layers, token, position, shift }) =>
  sum([token, position, shift, ...layers.flatMap(({ heads, bias, feedForward }) => [...heads, bias, feedForward])])

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
