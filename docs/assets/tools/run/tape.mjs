// What any number of a run was made of, whatever the type of the model: each call of NumPy is kept as it happens, with
// the step that it is part of. A number is named by its place: the call that made it, or the tensor that it is stored
// in, and where it stands in the array.

import { Problem } from "../../problems.mjs"
import { sum } from "../capitals/numbers.mjs"
import { ACTIVATIONS, array, NDArray, py, repeated, ROLES, STORED, watched } from "../../running.mjs"

/**
 * @typedef {import("../capitals/asked.mjs").Origin} Origin
 * @typedef {import("../capitals/asked.mjs").Part} Part
 * @typedef {Pick<Origin, "how"> & Partial<Pick<Origin, "head" | "rows" | "then" | "isList">>} Answer
 * @typedef {object} Frame a step
 * @property {any} role
 * @property {any} function
 * @property {any[]} args
 * @property {any} kwargs
 * @property {number?} layer
 * @property {number} start the number of its first call
 * @property {Made} [made] the call that made its result, if that has words of its own
 * @typedef {object} Made a call that made an array
 * @property {number} number
 * @property {Tape} tape
 * @property {string} name
 * @property {any[]} args
 * @property {number} which of several results
 * @property {Record<string, any>} given
 * @property {NDArray} result
 * @property {Frame[]} frames the steps that it is part of
 * @property {Frame} [whole] the step whose result it is, if that has words of its own
 * @property {number[]} [from] where each number of a copy stood before
 * @property {NDArray[]} [arrays] from which it was copied
 * @property {Made} [before] what made the array in which this sets numbers
 * @property {Recurrence} [recurrence] that made it
 * @typedef {{ number: number, last?: any[], rows?: any[] }} Recurrence its first call; once it is computed again, its
 *   last state, and the row that each token gives
 * @typedef {{ store: any, at: number }} Place of a number in memory
 */

const MOST = 24, // terms that have a row each
  MOST_BYTES = 2 ** 31, // of what a run makes
  MOST_ROWS = 32, // of a step's result that are shown
  MOST_COLUMNS = 16,
  NEXT = 3 // places that a number goes to
const MOVES = new Set(
  "reshape concatenate stack take pick take_along_axis repeat pad where astype put broadcast_to".split(" "),
)
const FIRST_MOVES = new Set("take pick take_along_axis repeat reshape pad broadcast_to".split(" ")) // not the indices
const OF_SCORES = new Set([ROLES.SCORES, ROLES.LATENT_SCORES, ROLES.CAUSAL_MASK, ROLES.WINDOW_MASK, ROLES.SOFTMAX])
const REDUCING = new Set(["sum", "mean", "max", "min"])
const ORDERING = new Set(["sort", "argsort"])
const COMPOSED = new Set([ROLES.SOFTMAX, ROLES.LAYER_NORM, ROLES.RMS_NORM])
const TITLES = {
  ...{ conv1d: "Linear layer", linear: "Linear layer", unembed: "Logit", scores: "Score", rope: "RoPE" },
  ...{ layer: "Residual stream", rms_norm: "RMSNorm", layer_norm: "LayerNorm", rope_pairs: "RoPE" },
  ...{ gelu: "GELU", gelu_tanh: "GELU", silu: "SiLU", relu: "ReLU", embed: "Token embedding" },
  ...{ embed_positions: "Position embedding", feed_forward: "Feed-forward network" },
}
/** @type {Map<unknown, [string, string]>} */
const FACTORS = new Map([
  [ROLES.SCORES, ["Query", "Key"]],
  [ROLES.WEIGHTED_SUM, ["Attention weight", "Value"]],
])
// Of a step that adds products: what each is.
/** @type {Map<unknown, [string, string]>} */
const TERMS = new Map([[ROLES.STATE_UPDATE, ["What stays of the state", "What is written"]]])
/** @type {Record<string, string>} what is done to a number, or to the first of two with the second */
const OPERATIONS = {
  add: "Plus",
  subtract: "Minus",
  multiply: "Times",
  divide: "Divided by",
  floor_divide: "Divided, and rounded down, by",
  remainder: "The remainder after dividing by",
  power: "To the power of",
  maximum: "Or this, if it is larger",
  minimum: "Or this, if it is smaller",
  logaddexp: "The logarithm of its exponential, plus that of",
  greater: "1 if it is larger than",
  greater_equal: "1 if it is not smaller than",
  less: "1 if it is smaller than",
  less_equal: "1 if it is not larger than",
  equal: "1 if it is equal to",
  not_equal: "1 if it is not equal to",
  bitwise_and: "Bit by bit, and",
  bitwise_or: "Bit by bit, or",
  bitwise_xor: "Bit by bit, either it or",
  exp: "e to the power of",
  expm1: "1 less than e to the power of",
  log: "The logarithm of",
  log1p: "The logarithm of 1 plus",
  sqrt: "The square root of",
  negative: "Minus",
  absolute: "Without its sign,",
  sign: "The sign of",
  tanh: "The hyperbolic tangent of",
  cos: "The cosine of",
  sin: "The sine of",
  floor: "Rounded down,",
  ceil: "Rounded up,",
  isfinite: "1 if it is finite,",
}
const SHIFTED = 2 ** 40 // more than any array has numbers

const storeOf = (/** @type {any} */ a) => a.halves ?? a.data
const capital = (/** @type {string} */ text) => text.charAt(0).toUpperCase() + text.slice(1)

/** Hears of the calls while a run, or a recurrence in it, is computed. */
export class Tape {
  /**
   * @param {Tape | null} [outer]
   * @param {string} [prefix] of the names of its numbers
   * @param {Map<any, Made>} [made] calls by what they made
   */
  constructor(outer = null, prefix = "", made = new Map()) {
    this.outer = outer
    this.prefix = prefix
    /** @type {Made[]} */
    this.calls = []
    this.made = made
    /** @type {Map<number, Tape>} of recurrences that were computed once more, by their calls */
    this.inner = new Map()
    /** @type {Frame[]} */
    this.frames = []
    /** @type {{ frame: Frame, result: NDArray }[]} the steps, in the order in which they end */
    this.steps = []
    this.bytes = 0
  }
  /** @type {NonNullable<import("../../running.mjs").Watch["computed"]>} */
  computed(name, args, given, result) {
    const before = new Set(args.flat().filter(isArray).map(storeOf))
    for (const [which, one] of [result].flat().entries()) {
      const store = storeOf(one)
      if (name === "set" || (!this.made.has(store) && !before.has(store))) this.put(name, args, given, one, which)
    }
  }
  /**
   * @param {string} name
   * @param {any[]} args
   * @param {object} given
   * @param {NDArray} result
   * @returns {Made}
   */
  put(name, args, given, result, which = 0) {
    const store = storeOf(result),
      of = { number: this.calls.length, tape: this, name, args, given, result, which, frames: this.frames },
      call = { ...of, before: this.made.get(store) }
    this.grow(store.byteLength)
    this.calls.push(call)
    this.made.set(store, call)
    return call
  }
  /** @returns {void} */
  grow(/** @type {number} */ bytes) {
    if (this.outer) return this.outer.grow(bytes)
    this.bytes += bytes
    if (this.bytes > MOST_BYTES)
      throw Problem("the text is too long to keep each number", "ask for a number of a shorter one")
  }
  /**
   * A recurrence over the tokens, whose steps are kept once one of them is asked for.
   * @param {any} body
   * @param {any} state
   * @param {any[]} xs
   * @param {any} made
   */
  scanned(body, state, xs, made) {
    const known = new Set([state, xs].flat(2).map(storeOf)),
      recurrence = { number: this.calls.length }
    for (const [which, one] of [made].flat(2).entries())
      if (!known.has(storeOf(one))) this.put("scan", [body, state, xs], {}, one, which).recurrence = recurrence
  }
  /** Computes a recurrence once more, with each call. */
  again(/** @type {Made} */ { args: [body, state, xs], frames }, /** @type {Recurrence} */ recurrence) {
    const inner = new Tape(this, `${this.prefix}${recurrence.number}_`, this.made),
      layer = frames[0]?.layer ?? null,
      plain = (/** @type {any} */ f, /** @type {any[]} */ args, /** @type {any} */ kwargs) =>
        py.apply(f, args, Object.fromEntries(py.entries(kwargs)))
    inner.frames = frames
    this.inner.set(recurrence.number, inner)
    const watch = {
      call: (/** @type {Engine.Step} */ step, /** @type {any[]} */ args, /** @type {any} */ kwargs) =>
        inner.step(step, args, kwargs, layer, () => plain(step.function, args, kwargs)),
      computed: (/** @type {Parameters<Tape["computed"]>} */ ...call) => inner.computed(...call),
      repeat: repeated,
    }
    /** @type {any[]} */
    const rows = [],
      [last] = repeated(
        (...given) => {
          const made = watched(watch, () => body(...given))
          rows.push(made[1])
          return made
        },
        state,
        xs,
      )
    Object.assign(recurrence, { last: [last].flat(), rows })
  }
  /**
   * A step, with what it calls.
   * @param {Engine.Step} step
   * @param {any[]} args
   * @param {any} kwargs
   * @param {number | null} layer
   * @param {() => any} run
   */
  step({ role, function: f }, args, kwargs, layer, run) {
    const around = this.frames,
      frame = /** @type {Frame} */ ({ role, function: f, args, kwargs, layer, start: this.calls.length })
    this.frames = [frame, ...around]
    const result = run(),
      call = isArray(result) ? this.made.get(storeOf(result)) : null
    this.frames = around
    const first = Array.isArray(result) ? result[0] : result,
      isWhole = COMPOSED.has(role) || (ACTIVATIONS.has(role) && args.length === 1)
    if (isArray(first)) this.steps.push({ frame, result: first })
    if (call && call.tape === this && call.number >= frame.start && isWhole && !call.whole) {
      call.whole = frame
      frame.made = call
    }
    return result
  }
  /** The tape of a name's beginning, as `12_`. @returns {Tape | undefined} */
  of(/** @type {string | undefined} */ name) {
    return name ? this.inner.get(Number.parseInt(name, 10)) : this
  }
}
const isArray = (/** @type {any} */ x) => x instanceof NDArray

/**
 * The place of an array's number.
 * @param {any} a
 * @param {number[]} index
 * @returns {Place}
 */
export const placeIn = (a, index) => ({
  store: storeOf(a),
  at: index.reduce((at, n, axis) => at + n * a.strides[axis], a.offset),
})
/**
 * Where a number stands in an array that has it; null if the array does not.
 * @param {any} a
 * @param {number} at
 */
function indexIn(a, at) {
  const { dims, strides } = a,
    index = Array(dims.length).fill(0)
  let rest = at - a.offset
  const axes = [...dims.keys()].filter(i => dims[i] > 1 && strides[i] > 0).sort((i, j) => strides[j] - strides[i])
  for (const axis of axes) {
    index[axis] = Math.floor(rest / strides[axis])
    if (index[axis] < 0 || index[axis] >= dims[axis]) return null
    rest -= index[axis] * strides[axis]
  }
  return rest ? null : index
}

/** The origins of the numbers of a run. */
export class Origins {
  /**
   * @param {Tape} tape
   * @param {Map<any, { name: string, array: NDArray }>} stored tensors, by what holds them
   * @param {string[]} text its tokens
   * @param {(id: number) => string} wordOf a token
   * @param {{ prefix: string, store: any, place: (at: number) => string | undefined }} [begun] where this run takes up
   *   what another made: the beginning of its names, what it took, and the other's name of each number of it
   */
  constructor(tape, stored, text, wordOf, begun) {
    this.tape = tape
    this.stored = stored
    this.tensors = [...stored.keys()]
    this.text = text
    this.wordOf = wordOf
    this.begun = begun
  }

  value(/** @type {Place} */ { store, at }) {
    const known = this.stored.get(store)
    return Number(known ? /** @type {any} */ (known.array).view([], [], at).item() : store[at])
  }
  // Whether the number was stored in a file.
  isStored(/** @type {Place} */ { store }) {
    return this.stored.has(store)
  }

  /** Where a number was before it was copied. @param {Place} place */
  source(place) {
    let call = this.tape.made.get(place.store)
    for (;;) {
      const isSet = call?.name === "set",
        from = call && (isSet || call.name === "scan" || MOVES.has(call.name)) ? this.moved(call, place) : null
      if (from) place = from
      if (from) call = this.tape.made.get(place.store)
      else if (isSet) call = call?.before
      else return place
    }
  }
  /** @returns {Place | null} */
  moved(/** @type {Made} */ call, /** @type {Place} */ place) {
    const { name, args, result } = call,
      index = indexIn(result, place.at)
    if (!index) return null
    if (name === "scan") {
      const { last, rows } = this.again(call),
        of = call.which < last.length ? last[call.which] : rows[index[0]]
      return placeIn(of, call.which < last.length ? index : index.slice(1))
    }
    if (name === "put" || name === "astype") {
      const other = placeIn(args[0], index),
        [before, after] = [this.value(other), this.value(place)]
      return before === after || (name === "astype" && Math.fround(before) === after) ? other : null
    }
    if (!call.from) {
      /** @type {any[]} */
      const arrays = [],
        numbered = (/** @type {any} */ a) => (isArray(a) ? standIn(a, arrays.push(a)) : a)
      const given = args.map((a, i) => {
        if (i && FIRST_MOVES.has(name)) return a
        if ((!i && name === "where") || (i < 2 && name === "set")) return a
        return Array.isArray(a) ? a.map(numbered) : numbered(a)
      })
      const [first, ...others] = given,
        made =
          name === "pick"
            ? first.__getitem__(others[0])
            : name === "set"
              ? setIn(first.dims, others[0], others[1])
              : py.apply(/** @type {any} */ (py).module("numpy")[name], given, call.given)
      call.from = Array.from(made.flat(), Number)
      call.arrays = arrays
    }
    let at = 0
    for (const [axis, n] of index.entries()) at = at * result.dims[axis] + n
    const from = call.from[at]
    if (!Number.isFinite(from) || from < SHIFTED) return null
    const of = Math.floor(from / SHIFTED)
    return { store: storeOf(call.arrays?.[of - 1]), at: from % SHIFTED }
  }
  /** A recurrence's last state and rows, once its steps are kept. */
  again(/** @type {Made} */ call) {
    const recurrence = call.recurrence ?? { number: 0 },
      { last, rows } = recurrence
    if (last && rows) return { last, rows }
    call.tape.again(call, recurrence)
    this.taken = null
    return { last: recurrence.last ?? [], rows: recurrence.rows ?? [] }
  }

  // The name of a place.
  name(/** @type {Place} */ { store, at }) {
    if (store === this.begun?.store) return this.begun?.place(at)
    const call = this.tape.made.get(store)
    if (call) return `${this.prefix}${call.tape.prefix}${call.number}/${at}`
    const tensor = this.tensors.indexOf(store)
    return tensor < 0 ? undefined : `${this.prefix}w${tensor}/${at}`
  }
  get prefix() {
    return this.begun?.prefix ?? ""
  }
  /** @returns {Part} */
  part(/** @type {Place} */ place) {
    const of = this.source(place)
    return { value: this.value(of), of: this.name(of) }
  }

  /** The place of a name; null if it is none of this run. @returns {Place | null} */
  placeOf(/** @type {string} */ name) {
    if (!name.startsWith(this.prefix)) return null
    const [, isStored, within, number, offset] =
      /^(w?)(?:(\d{1,6})_)?(\d{1,6})\/(\d{1,12})$/.exec(name.slice(this.prefix.length)) ?? []
    const scan = within && this.tape.calls[Number(within)]
    if (scan && scan.name === "scan") this.again(scan)
    const of = isStored ? this.tensors[Number(number)] : this.tape.of(within)?.calls[Number(number)],
      store = isStored || !of ? of : storeOf(/** @type {Made} */ (of).result)
    return store && Number(offset) < store.length ? { store, at: Number(offset) } : null
  }

  /** @returns {Origin} */
  of(/** @type {Place} */ given) {
    const place = this.source(given),
      { store, at } = place,
      value = this.value(place),
      call = this.tape.made.get(store),
      known = this.stored.get(store)
    const rest = { value, head: [], rows: [], then: [], next: this.next(place) }
    if (known) {
      const index = indexIn(known.array, at) ?? []
      return {
        ...rest,
        title: `${known.name}, ${index.map(n => `${n}`).join(", ")}`,
        how: "A trained number. It is in the file, at this place of the tensor.",
      }
    }
    if (!call) return { ...rest, title: "A number", how: "A fixed number, or one of the token ids: nothing made it." }
    const index = indexIn(call.result, at) ?? [],
      title = this.title(call, index),
      pair = this.pairOf(call, index)
    if (pair) Object.assign(rest, { pair })
    if (call.whole?.role === ROLES.SOFTMAX) return { ...rest, title, ...this.ofSoftmax(call, index) }
    if (call.whole && COMPOSED.has(call.whole.role)) return { ...rest, title, ...this.ofNorm(call, index) }
    if (!call.whole) return { ...rest, title, ...this.ofCall(call, index, place) }
    const name = this.stepName(call.whole)
    return {
      ...rest,
      title,
      how: `${name} of one number.`,
      then: [[`${name} of`, this.part(placeIn(call.whole.args[0], index))]],
    }
  }

  stepName(/** @type {Frame} */ { role }) {
    return TITLES[/** @type {keyof typeof TITLES} */ (role.value)] ?? capital(role.value.replaceAll("_", " "))
  }
  // The name of the weights of a step.
  weightsOf(/** @type {Frame} */ { args }) {
    const weights = args.find(one => typeof one?.prefix === "string"),
      name = args[2]
    return weights && typeof name === "string" ? `${weights.prefix}${name}` : ""
  }
  /**
   * The steps of a layer, and those outside of the layers: each with the shape and the size of its result.
   * @param {number} layer
   */
  steps(layer) {
    return [...this.tape.steps.entries()]
      .filter(([, { frame }]) => frame.layer === null || frame.layer === layer)
      .map(([number, { frame, result }]) => {
        const finite = Array.from(result.flat(), Number).filter(Number.isFinite),
          largest = finite.reduce((most, x) => Math.max(most, Math.abs(x)), 0)
        return {
          number,
          layer: frame.layer,
          name: this.stepName(frame),
          weights: this.weightsOf(frame),
          dims: result.dims,
          mean: finite.length ? sum(finite) / finite.length : 0,
          largest,
        }
      })
  }
  /**
   * The corner of a step's result, of one head if it has several: its numbers, null where masked, and their places.
   * @param {number} number
   * @param {number} head
   */
  corner(number, head) {
    const step = this.tape.steps[number]
    if (!step || step.result.dims.length < 2 || step.result.dims.length > 3) return null
    const { frame, result } = step,
      { dims } = result,
      tokens = this.text.length,
      isOfScores = OF_SCORES.has(frame.role) && dims.length === 3 && dims[1] === tokens,
      one = Math.min(head, dims.length === 3 ? dims[isOfScores ? 0 : 1] - 1 : 0),
      at = (/** @type {number} */ i, /** @type {number} */ j) =>
        dims.length === 2 ? [i, j] : isOfScores ? [one, i, j] : [i, one, j],
      height = isOfScores ? dims[1] : dims[0],
      width = dims[dims.length - 1],
      [rows, columns] = [Math.min(height, MOST_ROWS), Math.min(width, MOST_COLUMNS)]
    const word = (/** @type {number} */ i, /** @type {number} */ n) => this.text[i + tokens - n] ?? `${i + 1}`,
      places = [...Array(rows).keys()].map(i => [...Array(columns).keys()].map(j => placeIn(result, at(i, j))))
    const shown = (/** @type {Place} */ place) => (this.value(place) > -Infinity ? this.value(place) : null)
    const where = `${frame.layer === null ? "" : `, layer ${frame.layer}`}${dims.length === 3 ? `, head ${one}` : ""}`,
      isCut = columns < width ? `: the first ${columns} of ${width} columns` : ""
    return {
      title: `${this.stepName(frame)}${where}${isCut}`,
      heads: [...Array(rows).keys()].map(i => (height <= tokens ? word(i, height) : `${i + 1}`)),
      columns: [...Array(columns).keys()].map(j => (isOfScores && width <= tokens ? word(j, width) : `${j + 1}`)),
      numbers: places.map(row => row.map(shown)),
      places: places.map(row => row.map(place => this.name(this.source(place)) ?? "")),
    }
  }

  // What a number is, in words: the step, its weights, and which one of its result.
  title(/** @type {Made} */ call, /** @type {number[]} */ index) {
    const frame = call.whole ?? call.frames[0],
      tokens = this.text.length,
      { dims } = call.result,
      word = (/** @type {number} */ n) => `“${this.text[n]}”`
    const weights = frame ? this.weightsOf(frame) : "",
      of = weights && ` ${weights}`,
      layer = frame && frame.layer !== null ? `, layer ${frame.layer}` : ""
    const [a, b, c] = index,
      [, , from, to] = this.pairOf(call, index) ?? [],
      isOfScores = from !== undefined,
      ofHead = frame && !COMPOSED.has(frame.role) ? this.ofHead(placeIn(call.result, index)) : null
    if (ofHead) {
      const [token, head, element] = ofHead.index
      return `${ofHead.name} of ${word(token)}${layer}, head ${head}, element ${element + 1}`
    }
    if (dims.length === 2 && frame?.role === ROLES.UNEMBED)
      return `Logit of “${this.wordOf(b)}”${a < dims[0] - 1 ? `, after ${word(a)}` : ""}`
    let which = `element ${index.join(", ")}`
    if (isOfScores) which = `head ${a}: ${word(from)} looks at ${word(to)}`
    else if (dims.length === 3 && dims[0] === tokens) which = `${word(a)}, head ${b}, element ${c + 1}`
    else if (dims.length === 2 && (dims[0] === tokens || dims[0] === 1))
      which = `${word(dims[0] === 1 ? tokens - 1 : a)}, element ${b + 1}`
    const outside = call.name === "add" && dims[0] === tokens ? "Embedding" : "A number",
      step = !frame ? outside : isOfScores && call.whole ? "Attention weight" : this.stepName(frame)
    return `${step}${of}${layer}, ${which}`
  }

  /** Layer, head, and two tokens, of a score. @returns {number[] | null} */
  pairOf(/** @type {Made} */ { whole, frames, result: { dims } }, /** @type {number[]} */ [head, from, to]) {
    const frame = whole ?? frames[0],
      tokens = this.text.length
    if (!frame || !OF_SCORES.has(frame.role) || dims.length !== 3 || dims[1] !== tokens || dims[2] > tokens) return null
    return [frame.layer ?? -1, head, from, to + tokens - dims[2]]
  }
  /**
   * Of which head a number is a query, a key or a value, if it goes into its products as it is.
   * @param {Place} place
   * @returns {{ name: string, index: number[] } | null}
   */
  ofHead(place, depth = 0) {
    for (const call of this.takers(place.store)) {
      const { name, args, frames } = call
      if (MOVES.has(name) && depth < 3) {
        const to = this.after(call, place),
          found = to && this.ofHead(to, depth + 1)
        if (found) return found
      }
      const factors = name === "einsum" ? (FACTORS.get(frames[0]?.role) ?? []) : []
      for (const [i, factor] of factors.entries()) {
        const one = args[i + 1],
          index = storeOf(one) === place.store && one.dims.length === 3 ? indexIn(one, place.at) : null
        if (index && factor !== "Attention weight")
          return { name: factor, index: index.with(0, index[0] + this.text.length - one.dims[0]) }
      }
    }
    return null
  }
  /** @returns {Answer} */
  ofSoftmax(/** @type {Made} */ call, /** @type {number[]} */ index) {
    const [x] = call.whole?.args ?? [],
      last = index.length - 1,
      all = [...Array(x.dims[last]).keys()].map(n => this.part(placeIn(x, index.with(last, n)))),
      most = Math.max(...all.map(one => one.value)),
      power = (/** @type {Part} */ one) => Math.exp(one.value - most),
      isOfText = all.length <= this.text.length,
      label = (/** @type {number} */ n) => (isOfText ? `${this.text[n + this.text.length - all.length]}` : `${n + 1}`)
    const shown = [...all.keys()].filter(n => all[n].value > -Infinity)
    return {
      how: "Softmax: e to the power of a score minus the largest, over the sum of them.",
      ...largest(
        [isOfText ? "Token" : "Element", "Score", "Exponential"],
        shown.map(n => [label(n), all[n], { value: power(all[n]) }]),
      ),
      then: [
        [
          `Of ${isOfText ? `“${label(index[last])}”` : label(index[last])}, over this sum`,
          { value: power(all[index[last]]) },
        ],
      ],
    }
  }
  /** @returns {Answer} */
  ofNorm(/** @type {Made} */ { whole }, /** @type {number[]} */ at) {
    const { args, role } = /** @type {Frame} */ (whole),
      [x, , , eps, groups = 1n] = args,
      index = inHeads(at, x.dims),
      last = index.length - 1,
      isCentred = role === ROLES.LAYER_NORM,
      width = x.dims[last] / Number(py.int(groups)),
      first = index[last] - (index[last] % width),
      vector = [...Array(width).keys()].map(n => this.value(placeIn(x, index.with(last, first + n)))),
      ofWhat = width < x.dims[last] ? "group" : "vector",
      mean = isCentred ? sum(vector) / vector.length : 0,
      size = Math.sqrt(sum(vector.map(v => (v - mean) ** 2)) / vector.length + Number(eps)),
      // What the step makes of other vectors says what it multiplies by and adds.
      { scale, shift } = affine(/** @type {Frame} */ (whole)),
      i = index.slice(1).reduce((at, n, axis) => at * x.dims[axis + 1] + n, 0)
    /** @type {Origin["then"]} */
    const then = [["Element", this.part(placeIn(x, index))]]
    if (isCentred) then.push(["Minus the mean of the vector", { value: mean }])
    then.push([
      isCentred ? "Divided by its standard deviation" : `Divided by the root mean square of the ${ofWhat}`,
      { value: size },
    ])
    then.push(["Times the scale", { value: scale[i] }])
    if (isCentred) then.push(["Plus the shift", { value: shift[i] }])
    return {
      how: isCentred
        ? "The element minus the mean of its vector, divided by its standard deviation, times a scale, plus a shift."
        : `The element divided by the root mean square of its ${ofWhat}, times a scale.`,
      then,
    }
  }

  /** @returns {Answer} */
  ofCall(/** @type {Made} */ call, /** @type {number[]} */ index, /** @type {Place} */ place) {
    const { name, args } = call
    if (name === "einsum") return this.ofProducts(call, index)
    if (REDUCING.has(name)) return this.ofReduced(call, index)
    if (ORDERING.has(name)) return this.ofOrder(call, index)
    if (name === "put")
      return { how: this.value(place) ? "Taken from the same place in the other text." : "Nothing: it is off." }
    if (name === "astype")
      return { how: "A number, rounded.", then: [["Without what is behind the point,", this.operand(args[0], index)]] }
    if (name === "nonzero") return { how: "The place of a number that is not 0, in an array, counted from 0." }
    if (name === "unique") return { how: `One of the different numbers of an array: number ${index[0] + 1} by size.` }
    if (!Object.hasOwn(OPERATIONS, name))
      return { how: name === "where" ? "A fixed number: a condition chose it." : "A fixed number." }
    const parts = args.map(one => this.operand(one, index)),
      then = OPERATIONS[name]
    if (args.length === 1) return { how: "A function of one number.", then: [[then, parts[0]]] }
    // A product of vectors, and what is done to it, is one computation.
    const at = args.findIndex(one => isArray(one) && this.madeOf(one)?.name === "einsum"),
      sums = at < 0 ? null : this.madeOf(args[at])
    if (sums && sums.frames[0] === call.frames[0] && (at === 0 || name === "add" || name === "multiply")) {
      const inner = indexIn(sums.result, placeIn(args[at], within(args[at], index)).at) ?? [],
        { how, head, rows } = this.ofProducts(sums, inner)
      return {
        how: how.replace(/\.$/, `, ${then.charAt(0).toLowerCase()}${then.slice(1)} another number.`),
        head,
        rows,
        then: [[then, parts[1 - at]]],
      }
    }
    const wraps = typeof place.store[place.at] === "bigint" && Math.abs(this.value(place)) > Number.MAX_SAFE_INTEGER
    return (
      (wraps ? null : this.ofSum(call, index)) ?? {
        how: wraps ? "One operation on two whole numbers, of which 64 bits stay." : "One operation on two numbers.",
        then: [
          ["The first", parts[0]],
          [then, parts[1]],
        ],
      }
    )
  }
  /** Of a sum or a difference of products, that the same step made. @returns {Answer | null} */
  ofSum(/** @type {Made} */ { name, args, frames }, /** @type {number[]} */ index) {
    if ((name !== "add" && name !== "subtract") || !args.every(isArray)) return null
    const products = args.map(one => {
      const place = this.source(placeIn(one, within(one, index))),
        made = this.tape.made.get(place.store),
        isProduct = made?.name === "multiply" && !made.whole && made.frames[0] === frames[0],
        at = isProduct ? indexIn(made.result, place.at) : null
      return made && at ? made.args.map(factor => this.operand(factor, at)) : null
    })
    if (!products.some(Boolean)) return null
    const [first, second] = TERMS.get(frames[0]?.role) ?? ["First", OPERATIONS[name]],
      rows = products.map((factors, i) => {
        const sign = i && name === "subtract" ? -1 : 1,
          own = this.operand(args[i], index),
          [a, b] = factors ?? (sign < 0 ? [NONE, own] : [NONE, NONE]),
          last = factors ? { value: sign * a.value * b.value } : sign < 0 ? { value: -own.value } : own
        return /** @type {Origin["rows"][number]} */ ([i ? second : first, a, b, last])
      })
    return { how: "The sum of products, each of two numbers.", head: ["Term", "Factor", "Factor", "Product"], rows }
  }
  madeOf(/** @type {NDArray} */ a) {
    return this.tape.made.get(storeOf(a))
  }
  /** @returns {Part} one of the numbers that go into an operation, number by number */
  operand(/** @type {any} */ one, /** @type {number[]} */ index) {
    if (!isArray(one)) return { value: Number(typeof one === "object" ? py.float(one) : one) }
    return this.part(placeIn(one, within(one, index)))
  }

  /** @returns {Pick<Origin, "how" | "head" | "rows">} */
  ofProducts(/** @type {Made} */ call, /** @type {number[]} */ index) {
    const { head, rows } = this.products(call, index)
    if (!rows.length) return { how: "A sum of no products: the vectors have no numbers.", head: [], rows: [] }
    const isCut = rows.length > MOST ? `: the ${MOST} largest of ${rows.length} products` : ""
    return { how: `A row times a column, number by number, added up${isCut}.`, ...largest(head, rows) }
  }
  /** @returns {Pick<Origin, "head" | "rows">} */
  products(/** @type {Made} */ call, /** @type {number[]} */ index) {
    const [spec, a, b] = call.args,
      { left, right, out } = letters(spec),
      /** @type {Record<string, number>} */
      at = {},
      /** @type {Record<string, number>} */
      sizes = {}
    ;[...out].forEach((letter, i) => (at[letter] = index[i]))
    for (const [names, one] of [
      [left, a],
      [right, b],
    ])
      [...names].forEach((letter, i) => (sizes[letter] = one.dims[i]))
    const summed = [...new Set(left + right)].filter(letter => !out.includes(letter))
    /** @type {number[][]} */
    let each = [[]]
    for (const letter of summed)
      each =
        each.flat().length > 1e6 ? each : each.flatMap(one => [...Array(sizes[letter]).keys()].map(n => [...one, n]))
    const isOfText = summed.join() === "s" && sizes.s <= this.text.length,
      named = (/** @type {any} */ one) =>
        this.stored.get(
          this.source(
            placeIn(
              one,
              one.dims.map(() => 0),
            ),
          ).store,
        )?.name,
      index_ = (/** @type {string} */ names, /** @type {number[]} */ numbers) =>
        [...names].map(letter => (letter in at ? at[letter] : numbers[summed.indexOf(letter)]))
    const names = FACTORS.get(call.frames[0]?.role) ?? [
      named(a) ?? (named(b) ? "Input" : "First"),
      named(b) ?? (named(a) ? "Input" : "Second"),
    ]
    const rows = each.map(numbers => {
      const [x, y] = [this.part(placeIn(a, index_(left, numbers))), this.part(placeIn(b, index_(right, numbers)))]
      const label = isOfText ? this.text[numbers[0] + this.text.length - sizes.s] : numbers.map(n => n + 1).join(", ")
      return /** @type {Origin["rows"][number]} */ ([label, x, y, { value: x.value * y.value }])
    })
    return { head: [isOfText ? "Token" : "Element", ...names, "Product"], rows }
  }
  /** @returns {Answer} */
  ofReduced(/** @type {Made} */ call, /** @type {number[]} */ index) {
    const { name, args, given, result } = call,
      [x] = args,
      axis = args[1] ?? given.axis ?? null,
      isSum = name === "sum" || name === "mean",
      along = axis === null ? null : Number(axis) + (Number(axis) < 0 ? x.dims.length : 0),
      base = along === null || result.dims.length === x.dims.length ? index : index.toSpliced(along, 0, 0),
      places =
        along === null
          ? [...everyIndex(x.dims)].map(at => placeIn(x, at))
          : [...Array(x.dims[along]).keys()].map(n => placeIn(x, base.with(along, n))),
      rows = places.map((place, n) => /** @type {Origin["rows"][number]} */ ([`${n + 1}`, this.part(place)])),
      value = (/** @type {Origin["rows"][number]} */ [, one]) => /** @type {Part} */ (one).value,
      order = name === "min" ? 1 : -1
    const how = {
      sum: "The sum of these numbers.",
      mean: "Their sum, divided by how many there are.",
      max: "The largest of these numbers.",
      min: "The smallest of these numbers.",
    }
    return {
      how: how[/** @type {keyof typeof how} */ (name)],
      ...(isSum
        ? largest(["Element", "Number"], rows)
        : {
            head: ["Element", "Number"],
            rows: rows.toSorted((a, b) => order * (value(a) - value(b))).slice(0, MOST),
            isList: true,
          }),
      then: name === "mean" ? [["Divided by", { value: rows.length }]] : [],
    }
  }
  /** Of numbers in order, or of their places. @returns {Answer} */
  ofOrder(/** @type {Made} */ { name, args, given }, /** @type {number[]} */ index) {
    const [x] = args,
      axis = Number(args[1] ?? given.axis ?? -1),
      along = axis < 0 ? axis + x.dims.length : axis,
      at = index[along],
      from = Math.max(0, Math.min(at - MOST / 2, x.dims[along] - MOST))
    const rows = [...Array(x.dims[along]).keys()]
      .map(n => /** @type {[string, Part]} */ ([`${n}`, this.part(placeIn(x, index.with(along, n)))]))
      .sort(([, a], [, b]) => a.value - b.value)
      .slice(from, from + MOST)
    return {
      how:
        `${name === "sort" ? "The number" : "The place, counted from 0, of the number"} that is number ${at + 1} ` +
        "from the smallest. They are in order here.",
      head: ["Place", "Number"],
      rows,
      isList: true,
    }
  }

  /** Where a number goes: into the first calls that take it. @returns {Origin["next"]} */
  next(/** @type {Place} */ place) {
    /** @type {Origin["next"]} */
    const found = []
    const look = (/** @type {Place} */ here, /** @type {number} */ depth) => {
      for (const call of this.takers(here.store)) if (call.name === "scan") this.again(call)
      for (const call of this.takers(here.store)) {
        if (found.length >= NEXT) return
        if (call.name === "scan") continue
        const to = this.ofStep(call, here) ?? this.after(call, here)
        if (!to) continue
        if (MOVES.has(call.name) || call.name === "set") {
          if (depth < 8) look(to, depth + 1)
          continue
        }
        const name = this.name(to),
          frame = call.whole ?? call.frames[0],
          step = frame ? this.stepName(frame) : "the next step",
          label = /[A-Z].*[A-Z]/.test(step) ? step : step.toLowerCase()
        if (name && !found.some(([known]) => known === label)) found.push([label, name])
      }
    }
    if (!this.isStored(place)) look(place, 0)
    return found
  }
  /** The result of a step that takes a number, if that has words of its own. @returns {Place | null} */
  ofStep(/** @type {Made} */ { frames }, /** @type {Place} */ { store, at }) {
    const frame = frames.find(({ made, args }) => made && storeOf(args[0]) === store),
      index = frame?.made && indexIn(frame.args[0], at)
    return frame?.made && index ? placeIn(frame.made.result, index) : null
  }
  /** @returns {Made[]} */
  takers(/** @type {any} */ store) {
    if (!this.taken) {
      /** @type {Map<any, Made[]>} */
      const taken = new Map()
      for (const { calls } of [this.tape, ...this.tape.inner.values()])
        for (const call of calls)
          for (const of of new Set(call.args.flat().filter(isArray).map(storeOf)))
            taken.set(of, [...(taken.get(of) ?? []), call])
      this.taken = taken
    }
    return this.taken.get(store) ?? []
  }
  /** A number of a call's result that depends on one that it takes. @returns {Place | null} */
  after(/** @type {Made} */ call, /** @type {Place} */ { store, at }) {
    const { name, args, result } = call,
      given = args.flat().find(one => isArray(one) && storeOf(one) === store && indexIn(one, at)),
      index = given && indexIn(given, at)
    if (!index) return null
    const size = result.dims.reduce((n, d) => n * d, 1)
    if (MOVES.has(name) || name === "set") {
      if (size > 1e5) return null
      for (const place of everywhere(result)) {
        const from = this.moved(call, { store: storeOf(result), at: place })
        if (from && from.store === store && from.at === at) return { store: storeOf(result), at: place }
      }
      return null
    }
    if (name === "einsum") {
      const { left, right, out } = letters(args[0]),
        names = given === args[1] ? left : right
      return placeIn(
        result,
        [...out].map(letter => (names.includes(letter) ? index[names.indexOf(letter)] : 0)),
      )
    }
    const axis = REDUCING.has(name) ? Number(args[1] ?? call.given.axis ?? NaN) : NaN
    if (REDUCING.has(name) && (Number.isNaN(axis) || result.dims.length < index.length))
      return Number.isNaN(axis) ? null : placeIn(result, index.toSpliced(axis, 1))
    const more = result.dims.length - index.length
    return placeIn(
      result,
      result.dims.map((d, i) => (i < more ? 0 : Math.min(index[i - more], d - 1))),
    )
  }
}
const NONE = { value: NaN }

/**
 * The rows of terms: all, or the largest with the sum of the others.
 * @param {string[]} head
 * @param {Origin["rows"]} rows
 * @returns {Pick<Origin, "head" | "rows">}
 */
export function largest(head, rows) {
  if (rows.length <= MOST) return { head, rows }
  const value = (/** @type {Origin["rows"][number]} */ row) => /** @type {Part} */ (row[row.length - 1]).value,
    first = rows.toSorted((a, b) => Math.abs(value(b)) - Math.abs(value(a))).slice(0, MOST),
    others = rows.filter(row => !first.includes(row)),
    blank = head.slice(2).map(() => NONE)
  return { head, rows: [...first, [`The other ${others.length}`, ...blank, { value: sum(others.map(value)) }]] }
}

const letters = (/** @type {string} */ spec) => {
  const [from, out] = spec.split("->"),
    [left, right] = from.split(",")
  return { left, right, out }
}
// An index of a result in an array that was broadcast to it.
const within = (/** @type {any} */ a, /** @type {number[]} */ index) =>
  index
    .slice(index.length - a.dims.length)
    .map((/** @type {number} */ n, /** @type {number} */ i) => (a.dims[i] === 1 ? 0 : n))
/** @returns {Generator<number[]>} */
function* everyIndex(/** @type {number[]} */ [n, ...dims]) {
  if (n === undefined) return yield []
  for (let i = 0; i < n; i++) for (const rest of everyIndex(dims)) yield [i, ...rest]
}
// An array of these dims in which places are set, and NaN elsewhere.
function setIn(/** @type {number[]} */ dims, /** @type {any} */ key, /** @type {any} */ value) {
  const all = new /** @type {any} */ (NDArray)(
    new Float64Array(dims.reduce((n, d) => n * d, 1)).fill(NaN),
    dims,
    STORED.F64,
  )
  watched(null, () => all.__setitem__(key, value))
  return all
}
function* everywhere(/** @type {any} */ a) {
  const size = a.dims.reduce((/** @type {number} */ n, /** @type {number} */ d) => n * d, 1)
  for (let i = 0; i < size; i++) yield a.offset + i
}
// An array in whose stead each number says where it stands.
function standIn(/** @type {any} */ a, /** @type {number} */ number) {
  const data = new Proxy(
    {},
    { get: (_, key) => (typeof key === "string" && /^\d+$/.test(key) ? number * SHIFTED + Number(key) : undefined) },
  )
  return new /** @type {any} */ (NDArray)(data, a.dims, STORED.F64, a.strides, a.offset)
}

// The place in an array of heads of an element of the vector that joins them.
const inHeads = (/** @type {number[]} */ at, /** @type {number[]} */ dims) => {
  const [n, width] = [at[at.length - 1], dims[dims.length - 1]]
  return dims.length > at.length ? [...at.slice(0, -1), Math.floor(n / width), n % width] : at
}

/**
 * What a norm multiplies each element of a token by, and adds to it.
 * @param {{ role: any, args: any[], kwargs: any, function?: any }} frame
 */
export function affine({ role, args: [x, ...args], kwargs, function: f }) {
  const dims = [1, ...x.dims.slice(1)],
    width = dims[dims.length - 1],
    size = dims.reduce((n, d) => n * d, 1)
  if (role === ROLES.UNIT_NORM) return { shift: Array(size).fill(0), scale: Array(size).fill(1) }
  const given = Object.fromEntries(py.entries(kwargs)),
    made = (/** @type {number[]} */ x) =>
      Array.from(py.apply(f, [array(Float32Array.from(x), dims), ...args], given).flat(), Number)
  const probe = Array.from({ length: size }, (_, i) => ((i % width) % 2 ? -1 : 1)),
    shift = made(Array(size).fill(0)),
    mean = role === ROLES.LAYER_NORM ? sum(probe.slice(0, width)) / width : 0,
    spread = Math.sqrt(sum(probe.slice(0, width).map(v => (v - mean) ** 2)) / width + Number(args[2]))
  return { shift, scale: made(probe).map((y, i) => (y - shift[i]) / ((probe[i] - mean) / spread)) }
}
