// What any number of a run was made of, whatever the type of the model: each call of NumPy is kept as it happens, with
// the step that it is part of. A number is named by its place: the call that made it, or the tensor that it is stored
// in, and where it stands in the array.

import { Problem } from "../../problems.mjs"
import { ACTIVATIONS, array, NDArray, py, ROLES, STORED } from "../../running.mjs"

/**
 * @typedef {import("../capitals/origin.mjs").Origin} Origin
 * @typedef {import("../capitals/origin.mjs").Part} Part
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
 * @property {string} name
 * @property {any[]} args
 * @property {Record<string, any>} given
 * @property {NDArray} result
 * @property {Frame[]} frames the steps that it is part of
 * @property {Frame} [whole] the step whose result it is, if that has words of its own
 * @property {number[]} [from] where each number of a copy stood before
 * @property {NDArray[]} [arrays] from which it was copied
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
/** @type {Record<string, [how: string, labels: string[]]>} */
const OPERATIONS = {
  add: ["One number plus another.", ["First", "Second"]],
  subtract: ["One number minus another.", ["First", "Second"]],
  multiply: ["One number times another.", ["First", "Second"]],
  divide: ["One number divided by another.", ["Dividend", "Divisor"]],
  power: ["One number to the power of another.", ["Base", "Exponent"]],
  maximum: ["The larger of two numbers.", ["First", "Second"]],
  minimum: ["The smaller of two numbers.", ["First", "Second"]],
  exp: ["e to the power of a number.", ["Exponent"]],
  log: ["The natural logarithm of a number.", ["Of"]],
  sqrt: ["The square root of a number.", ["Of"]],
  negative: ["A number with the other sign.", ["Of"]],
}
const THEN = { add: "Plus", subtract: "Minus", multiply: "Times", divide: "Divided by" }
const SHIFTED = 2 ** 40 // more than any array has numbers

const storeOf = (/** @type {any} */ a) => a.halves ?? a.data
const sum = (/** @type {number[]} */ numbers) => numbers.reduce((all, x) => all + x, 0)
const capital = (/** @type {string} */ text) => text.charAt(0).toUpperCase() + text.slice(1)

/** Hears of the calls while a run is computed. */
export class Tape {
  constructor() {
    /** @type {Made[]} */
    this.calls = []
    /** @type {Map<any, Made>} by what they made */
    this.made = new Map()
    /** @type {Frame[]} */
    this.frames = []
    /** @type {{ frame: Frame, result: NDArray }[]} the steps, in the order in which they end */
    this.steps = []
    this.bytes = 0
  }
  computed(
    /** @type {string} */ name,
    /** @type {any[]} */ args,
    /** @type {object} */ given,
    /** @type {any} */ result,
  ) {
    const before = new Set(args.flat().filter(isArray).map(storeOf))
    for (const one of Array.isArray(result) ? result : [result]) {
      const store = storeOf(one)
      if (name === "set" || (!this.made.has(store) && !before.has(store))) this.put(name, args, given, one)
    }
  }
  put(
    /** @type {string} */ name,
    /** @type {any[]} */ args,
    /** @type {object} */ given,
    /** @type {NDArray} */ result,
  ) {
    const call = { number: this.calls.length, name, args, given, result, frames: this.frames }
    this.bytes += storeOf(result).byteLength
    if (this.bytes > MOST_BYTES)
      throw Problem("the text is too long to keep each number", "ask for a number of a shorter one")
    this.calls.push(call)
    this.made.set(storeOf(result), call)
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
    const first = Array.isArray(result) ? result[0] : result
    if (isArray(first)) this.steps.push({ frame, result: first })
    if (call && call.number >= frame.start && (COMPOSED.has(role) || ACTIVATIONS.has(role)) && !call.whole) {
      call.whole = frame
      frame.made = call
    }
    return result
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
    for (;;) {
      const call = this.tape.made.get(place.store),
        from = call && MOVES.has(call.name) ? this.moved(call, place) : null
      if (!from) return place
      place = from
    }
  }
  /** @returns {Place | null} */
  moved(/** @type {Made} */ call, /** @type {Place} */ place) {
    const { name, args, result } = call
    if (name === "put") {
      const other = placeIn(args[0], indexIn(result, place.at) ?? [])
      return this.value(other) === this.value(place) ? other : null
    }
    if (name === "astype") return placeIn(args[0], indexIn(result, place.at) ?? [])
    if (!call.from) {
      /** @type {any[]} */
      const arrays = [],
        numbered = (/** @type {any} */ a) => (isArray(a) ? standIn(a, arrays.push(a)) : a)
      const given = args.map((a, i) => {
        if (i && FIRST_MOVES.has(name)) return a
        if (!i && name === "where") return a
        return Array.isArray(a) ? a.map(numbered) : numbered(a)
      })
      const [first, ...others] = given,
        made =
          name === "pick"
            ? first.__getitem__(others[0])
            : py.apply(/** @type {any} */ (py).module("numpy")[name], given, call.given)
      call.from = Array.from(made.flat(), Number)
      call.arrays = arrays
    }
    const index = indexIn(result, place.at)
    if (!index) return null
    let at = 0
    for (const [axis, n] of index.entries()) at = at * result.dims[axis] + n
    const from = call.from[at]
    if (!Number.isFinite(from) || from < SHIFTED) return null
    const of = Math.floor(from / SHIFTED)
    return { store: storeOf(call.arrays?.[of - 1]), at: from % SHIFTED }
  }

  // The name of a place.
  name(/** @type {Place} */ { store, at }) {
    if (store === this.begun?.store) return this.begun?.place(at)
    const call = this.tape.made.get(store)
    if (call) return `${this.prefix}${call.number}/${at}`
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
    const [, isStored, number, offset] = /^(w?)(\d{1,6})\/(\d{1,12})$/.exec(name.slice(this.prefix.length)) ?? []
    const of = isStored ? this.tensors[Number(number)] : this.tape.calls[Number(number)],
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
    if (!call)
      return { ...rest, title: "A number", how: "A constant, or made inside a step whose numbers are not kept." }
    const index = indexIn(call.result, at) ?? [],
      title = this.title(call, index)
    if (call.whole?.role === ROLES.SOFTMAX) return { ...rest, title, ...this.ofSoftmax(call, index) }
    if (call.whole && COMPOSED.has(call.whole.role)) return { ...rest, title, ...this.ofNorm(call, index) }
    if (call.whole)
      return {
        ...rest,
        title,
        how: `${this.stepName(call.whole)} of one number.`,
        then: [["Before", this.part(placeIn(call.whole.args[0], index))]],
      }
    return { ...rest, title, ...this.ofCall(call, index, place) }
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
    const [a, b, c] = index
    let which = `element ${index.join(", ")}`
    const isOfScores =
      frame && OF_SCORES.has(frame.role) && dims.length === 3 && dims[1] === tokens && dims[2] <= tokens
    if (isOfScores) which = `head ${a}: ${word(b)} looks at ${word(c + tokens - dims[2])}`
    else if (dims.length === 3 && dims[0] === tokens) which = `${word(a)}, head ${b}, element ${c + 1}`
    else if (dims.length === 2 && frame?.role === ROLES.UNEMBED) which = `“${this.wordOf(b)}”`
    else if (dims.length === 2 && (dims[0] === tokens || dims[0] === 1))
      which = `${word(dims[0] === 1 ? tokens - 1 : a)}, element ${b + 1}`
    const outside = call.name === "add" && dims[0] === tokens ? "Embedding" : "A number",
      step = !frame ? outside : isOfScores && call.whole ? "Attention weight" : this.stepName(frame)
    return `${step}${of}${layer}, ${which}`
  }

  /** @returns {Pick<Origin, "how" | "head" | "rows" | "then">} */
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
      then: [[`Of ${isOfText ? `“${label(index[last])}”` : label(index[last])}`, { value: power(all[index[last]]) }]],
    }
  }
  /** @returns {Pick<Origin, "how" | "then">} */
  ofNorm(/** @type {Made} */ { whole }, /** @type {number[]} */ index) {
    const { args, role } = /** @type {Frame} */ (whole),
      [x, , , eps] = args,
      last = index.length - 1,
      isCentred = role === ROLES.LAYER_NORM,
      vector = [...Array(x.dims[last]).keys()].map(n => this.value(placeIn(x, index.with(last, n)))),
      mean = isCentred ? sum(vector) / vector.length : 0,
      size = Math.sqrt(sum(vector.map(v => (v - mean) ** 2)) / vector.length + Number(eps)),
      // What the step makes of other vectors says what it multiplies by and adds.
      { scale, shift } = affine(/** @type {Frame} */ (whole)),
      i = index.slice(1).reduce((at, n, axis) => at * x.dims[axis + 1] + n, 0)
    /** @type {Origin["then"]} */
    const then = [["Element", this.part(placeIn(x, index))]]
    if (isCentred) then.push(["Mean of the vector", { value: mean }])
    then.push([isCentred ? "Its standard deviation" : "Root mean square of the vector", { value: size }])
    then.push(["Scale", { value: scale[i] }])
    if (isCentred) then.push(["Shift", { value: shift[i] }])
    return {
      how: isCentred
        ? "The element minus the mean of its vector, divided by its standard deviation, times a scale, plus a shift."
        : "The element divided by the root mean square of its vector, times a scale.",
      then,
    }
  }

  /** @returns {Pick<Origin, "how" | "head" | "rows" | "then">} */
  ofCall(/** @type {Made} */ call, /** @type {number[]} */ index, /** @type {Place} */ place) {
    const { name, args } = call,
      none = { head: [], rows: [], then: [] }
    if (name === "einsum") return this.ofProducts(call, index)
    if (REDUCING.has(name)) return this.ofReduced(call, index)
    if (name === "put")
      return {
        ...none,
        how: this.value(place) ? "Taken from the same place in the other text." : "Nothing: it is off.",
      }
    const known = Object.hasOwn(OPERATIONS, name) ? OPERATIONS[name] : null
    if (name === "where" || (known === null && !args.some(isArray)))
      return { ...none, how: "A constant: it does not depend on the text." }
    if (name === "scan") return { ...none, how: "Made by a recurrence over the tokens, whose steps are not kept." }
    if (known === null && args.length > 2) return { ...none, how: "Made by a step whose numbers are not kept." }
    const parts = args.map(one => this.operand(one, index))
    // A product of vectors, and what is done to it, is one computation.
    const at = args.findIndex(one => isArray(one) && this.madeOf(one)?.name === "einsum"),
      sums = at < 0 ? null : this.tape.made.get(storeOf(args[at]))
    if (
      sums &&
      sums.frames[0] === call.frames[0] &&
      args.length === 2 &&
      (at === 0 || name === "add" || name === "multiply")
    ) {
      const inner = indexIn(sums.result, placeIn(args[at], within(args[at], index)).at) ?? [],
        { how, head, rows } = this.ofProducts(sums, inner)
      return {
        how: how.replace(
          /\.$/,
          `, ${THEN[/** @type {keyof typeof THEN} */ (name)]?.toLowerCase() ?? name} another number.`,
        ),
        head,
        rows,
        then: [[THEN[/** @type {keyof typeof THEN} */ (name)] ?? name, parts[1 - at]]],
      }
    }
    const [how, labels] = known ?? [
      `The function ${name} of ${args.length === 1 ? "a number" : "two numbers"}.`,
      ["First", "Second"],
    ]
    return { ...none, how, then: parts.map((one, i) => [labels[i], one]) }
  }
  madeOf(/** @type {NDArray} */ a) {
    return this.tape.made.get(storeOf(a))
  }
  /** @returns {Part} one of the numbers that go into an operation, number by number */
  operand(/** @type {any} */ one, /** @type {number[]} */ index) {
    if (!isArray(one)) return { value: Number(typeof one === "object" ? py.float(one) : one) }
    return this.part(placeIn(one, within(one, index)))
  }

  /** @returns {Pick<Origin, "how" | "head" | "rows" | "then">} */
  ofProducts(/** @type {Made} */ call, /** @type {number[]} */ index) {
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
    const all = largest([isOfText ? "Token" : "Element", ...names, "Product"], rows)
    const isCut = rows.length > MOST ? `: the ${MOST} largest of ${rows.length} products` : ""
    return {
      how: `A row times a column, number by number, added up${isCut}.`,
      head: all.head,
      rows: all.rows,
      then: [],
    }
  }
  /** @returns {Pick<Origin, "how" | "head" | "rows" | "then">} */
  ofReduced(/** @type {Made} */ call, /** @type {number[]} */ index) {
    const { name, args, given, result } = call,
      [x] = args,
      axis = Number(args[1] ?? given.axis ?? NaN)
    if (Number.isNaN(axis)) return { how: `The ${name} of all numbers of an array.`, head: [], rows: [], then: [] }
    const along = axis < 0 ? axis + x.dims.length : axis,
      base = result.dims.length === x.dims.length ? index : index.toSpliced(along, 0, 0),
      rows = [...Array(x.dims[along]).keys()].map(
        n => /** @type {Origin["rows"][number]} */ ([`${n + 1}`, this.part(placeIn(x, base.with(along, n)))]),
      ),
      isSum = name === "sum" || name === "mean"
    const how = {
      sum: "The sum of these numbers.",
      mean: "Their sum, divided by how many there are.",
      max: "The largest of these numbers.",
      min: "The smallest of these numbers.",
    }
    const all = isSum
      ? largest(["Element", "Number"], rows)
      : { head: ["Element", "Number"], rows: rows.slice(0, MOST) }
    return {
      how: how[/** @type {keyof typeof how} */ (name)],
      head: all.head,
      rows: all.rows,
      then: name === "mean" ? [["Divided by", { value: rows.length }]] : [],
    }
  }

  /** Where a number goes: into the first calls that take it. @returns {Origin["next"]} */
  next(/** @type {Place} */ place) {
    /** @type {Origin["next"]} */
    const found = []
    const look = (/** @type {Place} */ here, /** @type {number} */ depth) => {
      for (const call of this.takers(here.store)) {
        if (found.length >= NEXT) return
        const to = this.ofStep(call, here) ?? this.after(call, here)
        if (!to) continue
        if (MOVES.has(call.name)) {
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
      for (const call of this.tape.calls)
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
    if (MOVES.has(name)) {
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
