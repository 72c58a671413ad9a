// What a run of the small model leaves behind: the residual stream, the attention weights, the parts of the answer's
// score. All of it is seen from outside, step by step by its role; so is what is switched off, left out, or put in its
// place from the run of another text.

import { Ablation, array, Cache, HOLDS, py, ROLES } from "../../running.mjs"

/**
 * @typedef {import("../../running.mjs").Checkpoint} Checkpoint
 * @typedef {import("../../running.mjs").NDArray} NDArray
 * @typedef {import("../../running.mjs").Watch["call"]} Call
 * @typedef {object} Layer what one layer made of the tokens so far, a row each
 * @property {number[][]} before the residual stream that it got
 * @property {(number[] | null)[]} taken what a patch of the residual stream added to it
 * @property {number[][][]} queries by token and head
 * @property {number[][][]} scores by token and head, of the tokens up to this one
 * @property {number[][][]} shares the same after the softmax
 * @property {number[][][]} mixed what each head found, by token and head
 * @property {number[][]} after
 * @property {number[][]} feedForward
 * @typedef {object} Changes
 * @property {Set<string>} [off] what is switched off: `0.1` (layer, head), `0.mlp`, `0.layer`
 * @property {string[]} [without] designs that are left out, as `Ablation` names them
 * @property {Run | null} [from] the run of another text
 * @property {Set<string>} [patches] what is taken from it: `0.1@4` (layer, head, token), `0.mlp@4`, `0.stream@4`
 */

/** A text that grows token by token: only new tokens are computed, the others are in the cache. */
export class Run {
  /**
   * @param {Checkpoint} model
   * @param {Changes} [changes]
   */
  constructor(model, { off = new Set(), without = [], from = null, patches = new Set() } = {}) {
    this.model = model
    this.off = off
    this.without = without
    this.from = from
    this.patches = patches
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
    this.run = without.length ? ablated(without, (...step) => this.changed(...step)) : this.changed
  }

  // Whether a text goes on where this run stands; without the mask, new words change the earlier ones.
  isStartOf(/** @type {number[]} */ ids) {
    return this.ids.every((id, i) => id === ids[i]) && (this.isMasked || this.ids.length === ids.length)
  }
  get isMasked() {
    return !this.without.includes("causal_mask")
  }
  // Whether a norm, by the name of its weights, is left out.
  isWithoutNorm(/** @type {string} */ name) {
    return this.without.some(one => one === "norms" || `.${name}`.endsWith(`.${one}`))
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
   * @type {Call}
   */
  call(step, args, kwargs) {
    const { role } = step
    if (role === ROLES.LAYER) {
      const kept = (this.layers[++this.at] ??= {
        before: [],
        taken: [],
        queries: [],
        scores: [],
        shares: [],
        mixed: [],
        after: [],
        feedForward: [],
      })
      const own = args[0].lists(),
        rows = this.patched(own, "stream", ({ before }, t) => before[t])
      kept.before.push(...rows)
      kept.taken.push(...own.map((/** @type {number[]} */ row, /** @type {number} */ t) => difference(rows[t], row)))
      if (rows !== own) args = [arrayOf(rows), ...args.slice(1)]
    }
    const result = this.run(step, args, kwargs),
      kept = this.layers[this.at]
    switch (role) {
      case ROLES.LAYER_NORM:
      case ROLES.CONV1D:
        this.keep(`${args[1].prefix}${args[2]}`, result)
        break
      case ROLES.GELU_TANH:
        this.keep(`transformer.h.${this.at}.mlp.act`, result)
        break
      case ROLES.SCORES:
        kept.queries.push(...args[0].lists())
        kept.scores.push(...this.byToken(result))
        break
      case ROLES.SOFTMAX:
        kept.shares.push(...this.byToken(result))
        break
      case ROLES.LAYER:
        kept.after.push(...result.lists())
    }
    return result
  }

  /**
   * A step of this run: nothing of what is off, and what is taken from the other.
   * @type {Call}
   */
  changed(step, args, kwargs) {
    const { role } = step,
      result = asItIs(step, args, kwargs),
      kept = this.layers[this.at],
      isOff = (/** @type {string | number} */ part) => this.off.has(`${this.at}.${part}`)
    if (role === ROLES.WEIGHTED_SUM) {
      let rows = result.lists()
      for (let head = 0; head < rows[0].length; head++) {
        if (isOff(head)) rows = with_(rows, head, row => row.map(() => 0))
        rows = this.patched(rows, head, ({ mixed }, t, own) => own.with(head, mixed[t][head]))
      }
      kept.mixed.push(...rows)
      return this.off.size || this.patches.size ? arrayOf(rows) : result
    }
    if (role === ROLES.FEED_FORWARD) {
      const own = result.lists(),
        rows = this.patched(
          isOff("mlp") ? own.map((/** @type {number[]} */ row) => row.map(() => 0)) : own,
          "mlp",
          ({ feedForward }, t) => feedForward[t],
        )
      kept.feedForward.push(...rows)
      return rows === own ? result : arrayOf(rows)
    }
    return role === ROLES.LAYER && isOff("layer") ? args[0] : result
  }

  /**
   * The rows of new tokens, with those that are taken from the other run.
   * @template T
   * @param {T[]} rows
   * @param {string | number} part
   * @param {(layer: Layer, token: number, own: T) => T} taken
   * @returns {T[]} the same if none is
   */
  patched(rows, part, taken) {
    const { from, patches, at, ids } = this,
      layer = from?.layers[at]
    if (!layer || !patches.size) return rows
    const is = (/** @type {number} */ t) => patches.has(`${at}.${part}@${ids.length + t}`)
    if (!rows.some((_, t) => is(t))) return rows
    return rows.map((own, t) => (is(t) ? taken(layer, ids.length + t, own) : own))
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

  keep(/** @type {string} */ name, /** @type {NDArray} */ rows) {
    this.made.set(name, [...(this.made.get(name) ?? []), ...rows.lists()])
  }
}

/** @type {Call} */
const asItIs = (step, args, kwargs) => py.apply(step.function, args, Object.fromEntries(py.entries(kwargs)))
/**
 * @param {string[]} without
 * @param {Call} run
 * @returns {Call}
 */
function ablated(without, run) {
  const ablation = Ablation(without, run)
  return (step, args, kwargs) => ablation.call(step, args, kwargs)
}
/** @returns {number[][][]} */
const with_ = (
  /** @type {number[][][]} */ rows,
  /** @type {number} */ head,
  /** @type {(row: number[]) => number[]} */ made,
) => rows.map(heads => heads.with(head, made(heads[head])))
const difference = (/** @type {number[]} */ a, /** @type {number[]} */ b) =>
  a === b ? null : a.map((x, i) => x - b[i])
/** An array of nested lists. */
function arrayOf(/** @type {any[]} */ rows) {
  const dims = []
  for (let one = rows; Array.isArray(one); one = one[0]) dims.push(one.length)
  return array(Float32Array.from(rows.flat(Infinity)), dims)
}

/**
 * The scores of all words if the model ended with each of these vectors: its own norm and head, and no layer.
 * @param {Checkpoint} model
 * @param {number[][]} stream
 * @param {string[]} [without]
 * @returns {number[][]}
 */
export function lens(model, stream, without = NONE) {
  const x = arrayOf(stream)
  /** @type {Call} */
  const call = (step, args, kwargs) => (step.role === ROLES.LAYER ? x : asItIs(step, args, kwargs))
  const watch = { call: without.length ? ablated(without, call) : call }
  return model.run(Array(stream.length).fill(0), { watch }).scores.lists()
}
/** @type {string[]} */
const NONE = []

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
