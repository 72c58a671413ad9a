// What a run of a checkpoint of any type leaves behind: the attention weights of each layer, the residual stream, and
// the steps that say what each part adds to the score of a token.

import { Cache, FEED_FORWARDS, is_scaled, NDArray, NORMS, py, ROLES, wholeNumbers } from "../../running.mjs"
import { arrayOf, asItIs, Changed } from "../capitals/changes.mjs"
import { sum } from "../capitals/numbers.mjs"
import { affine } from "./tape.mjs"

/**
 * @typedef {import("../capitals/changes.mjs").Changes} Changes
 * @typedef {import("./tape.mjs").Tape} Tape
 * @typedef {{ function: any, role: any, args: any[], kwargs: any, result: any }} Called a step with its arguments
 * @typedef {{ name: "multiply" | "divide" | "cap" | "norm", by: number, of: Called | null, result: NDArray }} Next what
 *   is done to an array: all of it times a number, a cap, a norm
 * @typedef {object} Attention of a layer
 * @property {NDArray[]} maps attention weights of each pass, [heads, new tokens, seen tokens]
 * @property {Called | null} out the output projection
 * @property {Next[]} ofHeads what is done to its result, and to that of the feed-forward network
 * @property {Next[]} ofFeedForward
 * @typedef {import("../capitals/changes.mjs").Layer & Attention} Layer
 * @typedef {object} Parts of a token's score: they add up to it
 * @property {{ heads: number[], bias: number, feedForward: number, whole: number }[]} layers whose parts are not told
 *   apart have no heads
 * @property {number} embedding
 * @property {number} between layers: patches, and what a model adds there
 * @property {number} shift of the last norm, and bias
 * @property {number} score
 * @property {number} before the caps: what they add up to
 * @property {number} factor of all logits, and of each part
 * @property {number[]} caps of the logits
 * @property {boolean} isNormed
 * @property {boolean} isNormedWithin whether what parts add is normed first
 */

/** @extends {Changed<Layer>} */
export class Seen extends Changed {
  /** @type {Called | null} */
  norm = null
  /** @type {Called | null} */
  head = null
  /** @type {Set<string>} designs that can be left out, as `Ablation` names them */
  designs = new Set()
  /** @type {Next[]} from the product with the table of tokens to the logits */
  finish = []

  /**
   * @param {import("../../running.mjs").Checkpoint} model
   * @param {Changes} changes
   * @param {number[] | null} source what an encoder reads
   * @param {(layers: number) => void} [came] hears of each layer that is computed
   * @param {Tape | null} [tape] keeps each number
   */
  constructor(model, changes, source, came = () => {}, tape = null) {
    super(model, changes)
    this.source = source
    this.cache = Cache(0n, undefined, 0n, undefined, 0n, source ? wholeNumbers(source) : undefined)
    this.came = came
    this.tape = tape
  }
  empty(/** @type {number} */ number, prefix = "") {
    return { ...super.empty(number, prefix), maps: [], out: null, ofHeads: [], ofFeedForward: [] }
  }
  begin(/** @type {any[]} */ args) {
    return Object.assign(super.begin(args), { out: null, ofHeads: [], ofFeedForward: [] })
  }

  // What keeps nothing or has no mask looks both ways: it gets the whole text.
  isStartOf(/** @type {number[]} */ ids) {
    const { length } = this.ids,
      isGrowing = this.isMasked && this.cache.kept.map.size > 0
    return this.ids.every((id, i) => id === ids[i]) && (length === ids.length || !length || isGrowing)
  }

  /** @type {Changed["call"]} */
  call(step, args, kwargs) {
    if (step.role === ROLES.LAYER) this.norm = this.head = null
    const layer = step.role === ROLES.LAYER ? this.layers.length : (this.at?.number ?? null),
      run = () => super.call(step, args, kwargs),
      result = this.tape ? this.tape.step(step, args, kwargs, layer, run) : run()
    if (step.role === ROLES.LAYER) this.came(1)
    return result
  }
  /** @type {NonNullable<import("../../running.mjs").Watch["computed"]>} */
  computed(name, args, given, result) {
    this.tape?.computed(name, args, given, result)
    if (name !== "multiply" && name !== "divide") return
    for (const steps of this.followed) {
      const before = steps.at(-1)?.result,
        other = args[0] === before ? args[1] : args[0]
      if (before && args.includes(before) && !(other instanceof NDArray))
        steps.push({ name, by: Number(typeof other === "object" ? py.float(other) : other), of: null, result })
    }
  }
  get followed() {
    return this.at ? [this.at.ofHeads, this.at.ofFeedForward] : [this.finish]
  }
  // A step on an array that is followed takes the place of the calls within it.
  follow(/** @type {"cap" | "norm"} */ name, /** @type {Called} */ of, by = NaN) {
    for (const steps of this.followed) {
      const at = steps.findIndex(({ result }) => result === of.args[0])
      if (at >= 0)
        steps.splice(at + 1, Infinity, { name, by: name === "cap" && this.at ? NaN : by, of, result: of.result })
    }
  }
  /** @type {Changed["repeat"]} */
  repeat(body, state, xs) {
    const made = super.repeat(body, state, xs)
    this.tape?.scanned(body, state, xs, made)
    return made
  }
  /** @type {Changed["put"]} */
  put(own, rows) {
    const made = super.put(own, rows)
    this.tape?.put("put", [own], {}, made)
    return made
  }

  /** @type {Changed["keep"]} */
  keep(step, args, kwargs, result) {
    const { role, function: f } = step,
      layer = this.at,
      called = { role, function: f, args, kwargs, result }
    if (is_scaled(step, args)) this.designs.add("scaling")
    if (role === ROLES.CAUSAL_MASK) this.designs.add("causal_mask")
    if (NORMS.has(role)) this.designs.add(`${args[1].prefix}${args[2]}`.replace(layer?.prefix ?? "", ""))
    const isNorm = NORMS.has(role) || role === ROLES.UNIT_NORM
    if (isNorm && result !== args[0]) this.follow("norm", called)
    if (role === ROLES.SOFT_CAP) this.follow("cap", called, Number(args[1]))
    if (!layer) {
      if (isNorm) this.norm = called
      if (role === ROLES.UNEMBED) {
        this.head = called
        this.finish = begun(result)
      }
      return
    }
    if (FEED_FORWARDS.has(role) && this.isOfTokens(result)) layer.ofFeedForward = begun(result)
    if (role === ROLES.SOFTMAX || role === ROLES.SOFTMAX_WITH_SINK) {
      const { dims } = result,
        end = this.ids.length + this.new,
        have = rowsIn(layer.maps)
      // The attention weights of the new tokens, if they are some; the first of a layer.
      if (dims?.length === 3 && dims[1] === this.new && dims[2] <= end && dims[2] >= dims[1] && have < end)
        layer.maps.push(result)
    }
    if ((role === ROLES.LINEAR || role === ROLES.CONV1D) && this.isMixed && !layer.out && this.isOfTokens(args[0])) {
      const found = layer.mixed[layer.mixed.length - 1].flat(),
        row = args[0].__getitem__(BigInt(this.new - 1)).flat()
      if (row.length === found.length && found.every((x, i) => x === row[i])) {
        layer.out = called
        layer.ofHeads = begun(result)
      }
    }
  }

  isWhole(/** @type {Layer} */ { maps }) {
    return maps.length > 0 && rowsIn(maps) === this.ids.length
  }
  get hasLens() {
    const { length } = this.ids
    return !this.source && this.layers.every(({ before, after }) => before.length === length && after.length === length)
  }

  /**
   * The attention weights of one head: a row for each token, NaN where it cannot look.
   * @param {number} layer
   * @param {number} head
   */
  map(layer, head) {
    const n = this.ids.length,
      result = new Float32Array(n * n).fill(NaN)
    let row = 0
    for (const map of this.layers[layer].maps) {
      const [, T, S] = map.dims,
        numbers = map.flat(),
        first = row + T - S
      for (let t = 0; t < T; t++)
        for (let s = 0; s < S; s++) {
          const share = Number(numbers[(head * T + t) * S + s])
          if (share || first + s <= row + t) result[(row + t) * n + first + s] = share
        }
      row += T
    }
    return result
  }

  /**
   * What each part adds to the residual stream of the last token; heads only where their output projection is known and
   * all of it adds up to what the layer adds.
   * @param {Layer} layer
   */
  added(layer) {
    const [before, after, feedForward, mixed] = [layer.before, layer.after, layer.feedForward, layer.mixed].map(rows =>
        rows.at(-1),
      ),
      whole = /** @type {number[]} */ (after).map((x, i) => x - Number(/** @type {number[]} */ (before)[i])),
      none = { whole, heads: [], bias: null, feedForward: null }
    if (!layer.out || !mixed || !feedForward) return none
    const { function: f, args, kwargs } = layer.out,
      heads = /** @type {number[][]} */ (mixed),
      alone = heads.map((_, n) => heads.map((found, i) => (i === n ? found : found.map(() => 0))).flat()),
      rows = asItIs({ function: f }, [arrayOf([...alone, alone[0].map(() => 0)]), ...args.slice(1)], kwargs).lists(),
      [ofHeads, ofFeedForward] = [layer.ofHeads, layer.ofFeedForward].map(through),
      alike = rows.pop(),
      bias = ofHeads(alike, true),
      own = rows.map((/** @type {number[]} */ row) => ofHeads(row.map((x, i) => x - alike[i]))),
      fed = ofFeedForward(/** @type {number[]} */ (feedForward), true),
      largest = Math.max(...whole.map(Math.abs), 1e-9)
    const isAll = whole.every(
      (x, i) => Math.abs(x - bias[i] - fed[i] - sum(own.map((/** @type {number[]} */ row) => row[i]))) < 1e-4 * largest,
    )
    return isAll ? { whole, heads: own, bias, feedForward: fed } : none
  }

  /**
   * What a vector adds to the score of a token, with the statistics of the last norm held as they are: each number,
   * without the vector's mean where the norm takes it away, times a direction.
   * @param {number} token
   * @returns {Pick<Parts, "shift" | "before" | "factor" | "caps" | "isNormed"> & { along: number[], isCentred: boolean,
   *   shifts: number[], bias: number } | string} or why there is no such sum
   */
  direction(token) {
    const { norm, head, layers, finish } = this,
      last = layers.at(-1)?.after.at(-1)
    if (this.without.includes("residual_stream"))
      return "Without the residual stream, only the last part of the last layer reaches the logits."
    if (!this.hasLens || !last) return "The layers of this model do not follow one another on one residual stream."
    if (typeof head?.args[2] !== "string") return "This model scores its tokens in another way."
    const isNormed = norm !== null && norm.result !== norm.args[0],
      x = /** @type {number[]} */ ([...(norm ?? head).args[0].lists().at(-1)])
    if (x.some((v, i) => Math.abs(v - last[i]) > 1e-4 * Math.max(1, Math.abs(v))))
      return "Something comes between the last layer and the last norm of this model."
    const held = isNormed
        ? heldOf(norm)
        : { scale: x.map(() => 1), shift: x.map(() => 0), isCentred: false, centre: 0 },
      { scale, shift, isCentred, centre } = held
    const cap = finish.findIndex(({ name }) => name === "cap"),
      [linear, rest] = cap < 0 ? [finish, []] : [finish.slice(0, cap), finish.slice(cap)],
      factor = linear.reduce((all, { name, by }) => (name === "divide" ? all / by : all * by), 1),
      [before, end] = [linear, finish].map(steps => Number(steps.at(-1)?.result.lists().at(-1)[token])),
      [, weights, name] = head.args,
      row = (/** @type {string} */ name) =>
        this.model.weights.read(`${weights.prefix}${name}`).__getitem__(BigInt(token)),
      answer = Array.from(row(name).flat(), v => factor * Number(v)),
      along = answer.map((v, i) => v * scale[i]),
      bias = head.kwargs.read("bias", null),
      shifts = shift.map((v, i) => v * answer[i]),
      ofBias = bias ? factor * Number(row(bias).flat()[0]) : 0,
      shifted = sum(shifts) + ofBias
    const total = sum(x.map((v, i) => (v - centre) * along[i])) + shifted,
      isNear = (/** @type {number} */ a, /** @type {number} */ b) => Math.abs(a - b) <= 1e-4 * Math.max(1, Math.abs(b))
    if (!isNear(total, before) || !isNear(end, this.scores[token]) || rest.some(({ name }) => name !== "cap"))
      return "This model does something else to its logits after the last product."
    const caps = rest.map(({ by }) => by)
    return { along, isCentred, isNormed, shift: shifted, shifts, bias: ofBias, before, factor, caps }
  }
  /**
   * What each part adds to the score of a token.
   * @param {number} token
   * @returns {Parts | string} or why that cannot be said
   */
  parts(token) {
    const { layers } = this,
      direction = this.direction(token)
    if (typeof direction === "string") return direction
    const { along, isCentred, ...rest } = direction
    const by = (/** @type {number[]} */ part) => {
      const mean = isCentred ? average(part) : 0
      return sum(part.map((v, i) => (v - mean) * along[i]))
    }
    let stream = layers[0].before.at(-1) ?? [],
      between = 0
    const embedding = by(stream)
    const each = layers.map(layer => {
      const before = layer.before.at(-1) ?? []
      between += by(before.map((v, i) => v - stream[i]))
      stream = layer.after.at(-1) ?? []
      const { whole, heads, bias, feedForward } = this.added(layer)
      return {
        whole: by(whole),
        heads: heads.map(by),
        bias: bias ? by(bias) : 0,
        feedForward: feedForward ? by(feedForward) : 0,
      }
    })
    const isNormedWithin = each.some(
      ({ heads }, i) =>
        heads.length && [...layers[i].ofHeads, ...layers[i].ofFeedForward].some(({ name }) => name === "norm"),
    )
    return { layers: each, embedding, between, score: this.scores[token], isNormedWithin, ...rest }
  }
  /**
   * What one part adds: of a layer a head by its number, `bias`, `mlp`, or `whole`; and `embedding`, `between`.
   * @param {number} layer
   * @param {string} what
   * @returns {number[] | null}
   */
  part(layer, what) {
    if (!this.layers[layer] || !this.hasLens) return null
    if (what === "embedding" || what === "between") {
      if (layer) return null
      const { stream } = this,
        [first, last] = [stream[0], stream[stream.length - 1]]
      if (what === "embedding") return first
      const added = this.layers.map(one => this.added(one).whole)
      return last.map((x, i) => x - first[i] - sum(added.map(whole => whole[i])))
    }
    const { whole, heads, bias, feedForward } = this.added(this.layers[layer])
    return { whole, bias, mlp: feedForward }[what] ?? heads[Number(what)] ?? null
  }
}

/** @returns {Next[]} */
const begun = (/** @type {any} */ result) => [{ name: "multiply", by: 1, of: null, result }]
// A norm of the last token with its mean and its size held: what each element is multiplied by, and what is added.
function heldOf(/** @type {Called} */ norm) {
  const { role, args } = norm,
    x = /** @type {number[]} */ (args[0].lists().at(-1)),
    isCentred = role === ROLES.LAYER_NORM,
    centre = isCentred ? average(x) : 0,
    eps = Number(args[role === ROLES.UNIT_NORM ? 1 : 3]),
    width = x.length / Number(py.int(args[4] ?? 1n)), // of each group
    { scale, shift } = affine(norm),
    size = (/** @type {number[]} */ group) => Math.sqrt(average(group.map(v => (v - centre) ** 2)) + eps),
    sizes = [...Array(x.length / width).keys()].map(n => size(x.slice(n * width, (n + 1) * width)))
  return { scale: scale.map((v, i) => v / sizes[Math.floor(i / width)]), shift, isCentred, centre }
}
// What becomes of a part of an array in what is done to it; one part gets the shifts.
function through(/** @type {Next[]} */ steps) {
  const all = steps.map(({ name, by, of }) => (of && name === "norm" ? heldOf(of) : name === "divide" ? 1 / by : by))
  return (/** @type {number[]} */ part, hasShifts = false) =>
    all.reduce((/** @type {number[]} */ x, one) => {
      if (typeof one === "number") return x.map(v => v * one)
      const mean = one.isCentred ? average(x) : 0
      return x.map((v, i) => (v - mean) * one.scale[i] + (hasShifts ? one.shift[i] : 0))
    }, part)
}
const rowsIn = (/** @type {NDArray[]} */ maps) => maps.reduce((n, map) => n + map.dims[1], 0)
const average = (/** @type {number[]} */ numbers) => sum(numbers) / numbers.length
