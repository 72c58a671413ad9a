// A text that runs token by token, with parts switched off, designs left out, or parts taken from the run of another
// text. All of it is done from outside, step by step by its role, so it works for a model of any type.

import { Ablation, array, Cache, FEED_FORWARDS, py, repeated, ROLES } from "../../running.mjs"

/**
 * @typedef {import("../../running.mjs").Checkpoint} Checkpoint
 * @typedef {import("../../running.mjs").NDArray} NDArray
 * @typedef {import("../../running.mjs").Watch["call"]} Call
 * @typedef {object} Layer what one layer made of the tokens so far, a row each
 * @property {number} number of the layer, in the order of the forward pass
 * @property {string} prefix of its weights
 * @property {number[][]} before the residual stream that it got
 * @property {(number[] | null)[]} taken what a patch of the residual stream added to it
 * @property {number[][][]} mixed what each head found, by token and head
 * @property {number[][]} after
 * @property {any[]} others what the layer gives besides
 * @property {number[][]} feedForward
 * @typedef {object} Changes
 * @property {Set<string>} [off] what is switched off: `0.1` (layer, head), `0.mlp`, `0.layer`
 * @property {string[]} [without] designs that are left out, as `Ablation` names them
 * @property {Changed | null} [from] the run of another text
 * @property {Set<string>} [patches] what is taken from it: `0.1@4` (layer, head, token), `0.mlp@4`, `0.stream@4`
 */

/**
 * A text that grows token by token: only new tokens are computed, the others are in the cache.
 * @template {Layer} [L=Layer]
 */
export class Changed {
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
    /** @type {L[]} */
    this.layers = []
    /** @type {Map<string, L>} by the prefix of their weights, and how often it came before */
    this.known = new Map()
    /** @type {L | null} the layer that is computed */
    this.at = null
    this.new = 0 // tokens
    this.run = without.length ? ablated(without, (...step) => this.changed(...step)) : this.changed
  }

  /**
   * @param {number[]} ids
   * @param {boolean} [last] whether only the last token's scores are computed
   */
  add(ids, last = true) {
    if (!ids.length) return
    this.at = null
    this.begun = new Map()
    this.isInside = false
    this.new = ids.length
    const { scores, cache } = this.model.run(ids, { cache: this.cache, last, watch: this })
    this.ids = [...this.ids, ...ids]
    this.cache = cache
    this.logits = scores
    this.scores = Array.from(scores.__getitem__(-1n).flat(), Number)
  }

  get isMasked() {
    return !this.without.includes("causal_mask")
  }

  /** The residual stream of the last token, before the first layer and after each. */
  get stream() {
    return [...this.layers.map(layer => layer.before), this.layers[this.layers.length - 1].after].map(
      rows => rows[rows.length - 1],
    )
  }

  /** @returns {L} */
  begin(/** @type {any[]} */ args) {
    const prefix = args.find(one => typeof one?.prefix === "string")?.prefix ?? "",
      times = this.begun?.get(prefix) ?? 0,
      name = `${prefix} ${times}`
    this.begun?.set(prefix, times + 1)
    const layer = this.known.get(name) ?? this.empty(this.layers.length, prefix)
    if (!this.known.has(name)) this.layers.push(layer)
    this.known.set(name, layer)
    return layer
  }
  /** @returns {L} */
  empty(/** @type {number} */ number, prefix = "") {
    return /** @type {any} */ ({
      number,
      prefix,
      before: [],
      taken: [],
      mixed: [],
      after: [],
      others: [],
      feedForward: [],
    })
  }

  /**
   * A step: as it is, or what is put in its place; what it makes is kept.
   * @type {Call}
   */
  call(step, args, kwargs) {
    if (step.role !== ROLES.LAYER) {
      const result = this.run(step, args, kwargs)
      this.keep(step, args, kwargs, result)
      return result
    }
    const around = this.at,
      layer = (this.at = this.begin(args))
    this.isMixed = false
    if (this.isOfTokens(args[0])) {
      const own = args[0].lists(),
        rows = this.patched(own, "stream", ({ before }, t) => before[t])
      layer.before.push(...rows)
      layer.taken.push(...own.map((/** @type {number[]} */ row, /** @type {number} */ t) => difference(rows[t], row)))
      if (rows !== own) args = [this.put(args[0], rows), ...args.slice(1)]
    }
    const result = this.run(step, args, kwargs),
      [stream, ...others] = Array.isArray(result) ? result : [result]
    if (this.isOfTokens(stream)) layer.after.push(...stream.lists())
    layer.others = others
    this.at = around
    return result
  }
  /**
   * A recurrence over the tokens, as without a tracer.
   * @param {any} body
   * @param {any} state
   * @param {any[]} xs
   */
  repeat(body, state, xs) {
    return repeated(body, state, xs)
  }
  /**
   * Keeps what a step made.
   * @type {(...step: [...Parameters<Call>, any]) => void}
   */
  keep() {}
  /** An array of these rows, in the place of another. */
  put(/** @type {NDArray} */ _, /** @type {any[]} */ rows) {
    return arrayOf(rows)
  }
  isOfTokens(/** @type {any} */ x, ndim = 2) {
    return x?.dims?.length === ndim && x.dims[0] === this.new
  }

  /**
   * A step of this run: nothing of what is off, and what is taken from the other.
   * @type {Call}
   */
  changed(step, args, kwargs) {
    const { role } = step,
      layer = this.at
    if (!layer) return asItIs(step, args, kwargs)
    const isOff = (/** @type {string | number} */ part) => this.off.has(`${layer.number}.${part}`)
    if (FEED_FORWARDS.has(role) && !this.isInside) {
      this.isInside = true // and not those within
      const result = asItIs(step, args, kwargs)
      this.isInside = false
      if (!this.isOfTokens(result)) return isOff("mlp") && Array.isArray(result?.dims) ? zeros(result) : result
      const own = result.lists(),
        rows = this.patched(
          isOff("mlp") ? own.map((/** @type {number[]} */ row) => row.map(() => 0)) : own,
          "mlp",
          ({ feedForward }, t) => feedForward[t],
        )
      layer.feedForward.push(...rows)
      return rows === own ? result : this.put(result, rows)
    }
    const result = asItIs(step, args, kwargs)
    if ((role === ROLES.WEIGHTED_SUM || role === ROLES.LATENT_VALUES) && !this.isMixed && this.isOfTokens(result, 3)) {
      this.isMixed = true // the first attention of a layer
      const own = result.lists()
      let rows = own
      for (let head = 0; head < rows[0].length; head++) {
        const off = Array(rows[0][head].length).fill(0)
        if (isOff(head)) rows = rows.map((/** @type {number[][]} */ heads) => heads.with(head, off))
        rows = this.patched(rows, head, ({ mixed }, t, own) => own.with(head, mixed[t][head]))
      }
      layer.mixed.push(...rows)
      return rows === own ? result : this.put(result, rows)
    }
    if (role !== ROLES.LAYER || !isOff("layer")) return result
    const [stream, ...others] = Array.isArray(result) ? result : [result]
    if (!Array.isArray(stream?.dims) || stream.dims.join() !== args[0]?.dims?.join()) return result
    return others.length ? [args[0], ...others] : args[0]
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
      layer = from?.layers[at?.number ?? -1]
    if (!at || !layer || !patches.size) return rows
    const is = (/** @type {number} */ t) => patches.has(`${at.number}.${part}@${ids.length + t}`)
    if (!rows.some((_, t) => is(t))) return rows
    return rows.map((own, t) => (is(t) ? taken(layer, ids.length + t, own) : own))
  }
}

/** @type {(step: { function: any }, args: any[], kwargs: any) => any} */
export const asItIs = (step, args, kwargs) => py.apply(step.function, args, Object.fromEntries(py.entries(kwargs)))
/**
 * @param {string[]} without
 * @param {Call} run
 * @returns {Call}
 */
export function ablated(without, run) {
  const ablation = Ablation(without, run)
  return (step, args, kwargs) => ablation.call(step, args, kwargs)
}
const difference = (/** @type {number[]} */ a, /** @type {number[]} */ b) =>
  a === b ? null : a.map((x, i) => x - b[i])
const zeros = (/** @type {NDArray} */ { dims }) => array(new Float32Array(dims.reduce((n, size) => n * size, 1)), dims)
/** An array of nested lists. */
export function arrayOf(/** @type {any[]} */ rows) {
  const dims = []
  for (let one = rows; Array.isArray(one); one = one[0]) dims.push(one.length)
  return array(Float32Array.from(rows.flat(Infinity)), dims)
}
