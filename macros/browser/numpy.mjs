// Arrays with numbers, for the modules that the build compiles to JavaScript: as much of NumPy as a forward pass uses.
// They come in by NumPy's own protocols, as the arrays of shapes do, so the forward passes know of neither. Numbers are
// stored as float32 (or float64, 64-bit integers, booleans), with NumPy's types of results; sums are made in float64.
// What a file stores in 16 bits stays so, and is widened where it is read.

import { py } from "./python.mjs"

const np = py.module("numpy")
const FLOAT = np.float32.$dtype,
  DOUBLE = np.float64.$dtype,
  WHOLE = np.int64.$dtype,
  BOOL = np.dtype(py.bool)
/** @type {[any, any][]} */
const OF_TYPES = [
  [FLOAT, Float32Array],
  [DOUBLE, Float64Array],
  [WHOLE, BigInt64Array],
  [BOOL, Uint8Array],
]
const STORES = new Map(OF_TYPES)
// The types that files have, by the names of safetensors.
export const TYPES = { F32: FLOAT, BF16: FLOAT, F16: FLOAT, F64: DOUBLE, I64: WHOLE }

/**
 * Observes each step of a run: a tracer, as steps.py says. If it has `computed`, it hears of each call of NumPy too.
 * @type {any}
 */
let watching = null
const computed = (name, args, given, result) => {
  watching?.computed?.(name, args, given, result)
  return result
}
const called = (name, args, given) => computed(name, args, given, FUNCTIONS[name](args, given))
/**
 * Runs a function while a tracer observes, or replaces, the steps that get real arrays.
 * @template T
 * @param {any} tracer
 * @param {() => T} run
 * @returns {T}
 */
export function watched(tracer, run) {
  const before = watching
  watching = tracer
  try {
    return run()
  } finally {
    watching = before
  }
}

const NOTHING = {}
const product = numbers => numbers.reduce((a, b) => a * b, 1)
const number = x => Number(typeof x === "object" ? (x instanceof NDArray ? x.item() : py.int(x)) : x)
// The steps through a block of memory, row by row.
const inRows = dims => {
  const strides = Array(dims.length)
  for (let i = dims.length - 1, step = 1; i >= 0; step *= dims[i--]) strides[i] = step
  return strides
}

export class NDArray {
  /**
   * @param {any} data
   * @param {number[]} dims
   * @param {any} dtype
   * @param {number[]} strides
   */
  constructor(data, dims, dtype, strides = inRows(dims), offset = 0) {
    this.data = data
    this.dims = dims
    this.dtype = dtype
    this.strides = strides
    this.offset = offset
  }
  get shape() {
    return this.dims.map(BigInt)
  }
  get ndim() {
    return BigInt(this.dims.length)
  }
  get size() {
    return BigInt(product(this.dims))
  }
  get T() {
    return FUNCTIONS.transpose([this], {})
  }
  get __tracer__() {
    return watching
  }
  // Whether the numbers stand one after the other.
  get isWhole() {
    let step = 1
    for (let i = this.dims.length - 1; i >= 0; i--) {
      if (this.dims[i] !== 1 && this.strides[i] !== step) return false
      step *= this.dims[i]
    }
    return true
  }
  // The numbers one after the other: a view of the store where they stand so.
  flat() {
    if (!this.isWhole) return copied(this).data
    const size = product(this.dims)
    return size === this.data.length ? this.data : this.data.subarray(this.offset, this.offset + size)
  }
  item() {
    return this.data[this.offset]
  }
  // The numbers as nested lists.
  lists() {
    const { data, dims, strides } = this
    const cut = (axis, at) => {
      if (axis === dims.length) return Number(data[at])
      const list = Array(dims[axis]),
        step = strides[axis]
      if (axis < dims.length - 1) for (let i = 0; i < list.length; i++) list[i] = cut(axis + 1, at + i * step)
      else for (let i = 0; i < list.length; i++) list[i] = Number(data[at + i * step])
      return list
    }
    return cut(0, this.offset)
  }
  view(dims, strides, offset = this.offset) {
    return new NDArray(this.data, dims, this.dtype, strides, offset)
  }
  __array_function__(f, _, args, kwargs) {
    if (!FUNCTIONS[f.__name__]) throw new Error(`np.${f.__name__} is not for arrays with numbers`)
    return called(f.__name__, args, Object.fromEntries(py.entries(kwargs)))
  }
  __array_ufunc__(f, _, ...args) {
    return elementwise(f.__name__, args)
  }
  __getitem__(key) {
    const { view, picked, axes } = indexed(this, key)
    return picked ? computed("pick", [this, key], NOTHING, gathered(view, picked, axes)) : view
  }
  __setitem__(key, value) {
    computed("set", [this, key, value], NOTHING, this)
    const { view, picked, axes } = indexed(this, key),
      given = arrayOf(value, this.dtype)
    if (!picked) return copy(view, broadcast(given, view.dims))
    const { dims, offsets, rest } = places(view, picked, axes),
      all = reshaped(broadcast(given, [...dims, ...rest.dims]), [offsets.length, ...rest.dims])
    offsets.forEach((offset, i) => copy(rest.view(rest.dims, rest.strides, rest.offset + offset), row(all, i)))
  }
  __len__() {
    return BigInt(this.dims[0])
  }
  *[Symbol.iterator]() {
    for (let i = 0; i < this.dims[0]; i++) yield row(this, i)
  }
  __int__() {
    return BigInt(Math.trunc(Number(this.item())))
  }
  __float__() {
    return Number(this.item())
  }
  __bool__() {
    if (product(this.dims) !== 1) throw py.ValueError("the truth of several numbers is ambiguous")
    return Number(this.item()) !== 0
  }
  __matmul__(other) {
    return called("einsum", ["ti,io->to", this, other], NOTHING)
  }
  __repr__() {
    return `array ${py.repr(this.shape)}`
  }
}
Object.defineProperty(NDArray.prototype, "$isArray", { value: true })

// Numbers of 16 bits, for everybody else those of float32: `data` are all of them, `widened` those of a view.
class Halves extends NDArray {
  constructor(halves, type, dims, strides, offset) {
    super(null, dims, FLOAT, strides, offset)
    this.halves = halves
    this.type = type
    Object.defineProperty(this, "data", { get: () => this.between(0, halves.length) })
  }
  // The numbers from one place in the file to another, or into an array that is there.
  between(from, to, into = new Float32Array(to - from), at = 0) {
    const { halves } = this
    if (this.type === "BF16") {
      const bits = new Uint32Array(into.buffer, into.byteOffset, into.length)
      for (let i = from; i < to; i++) bits[at++] = halves[i] << 16
    } else {
      const table = ofF16()
      for (let i = from; i < to; i++) into[at++] = table[halves[i]]
    }
    return into
  }
  widened() {
    const size = product(this.dims),
      result = empty(this.dims, FLOAT)
    if (this.isWhole) return array(this.between(this.offset, this.offset + size), this.dims)
    const table = this.type === "BF16" ? null : ofF16(),
      bits = new Uint32Array(result.data.buffer)
    rows(this.dims, [result, this], (n, [, s], [i, j]) => {
      if (table) for (let k = 0; k < n; k++, j += s) result.data[i + k] = table[this.halves[j]]
      else for (let k = 0; k < n; k++, j += s) bits[i + k] = this.halves[j] << 16
    })
    return result
  }
  flat() {
    return this.widened().data
  }
  item() {
    return this.between(this.offset, this.offset + 1)[0]
  }
  view(dims, strides, offset = this.offset) {
    return new Halves(this.halves, this.type, dims, strides, offset)
  }
}
const widened = a => (a instanceof Halves ? a.widened() : a)
let halfTable // what each of the 65,536 stands for
export const ofF16 = () =>
  (halfTable ??= Float32Array.from({ length: 65536 }, (_, bits) => {
    const exponent = (bits >> 10) & 31,
      part = bits & 1023,
      size = exponent === 31 ? (part ? NaN : Infinity) : (exponent ? 1024 + part : part) * 2 ** ((exponent || 1) - 25)
    return bits & 32768 ? -size : size
  }))
/**
 * An array of numbers that a file stores in 16 bits, by the name of their type there.
 * @param {Uint16Array} halves
 * @param {number[]} dims
 * @param {string} type
 */
export const ofHalves = (halves, dims, type) => new Halves(halves, type, dims)

const row = (a, i) => a.view(a.dims.slice(1), a.strides.slice(1), a.offset + i * a.strides[0])
const empty = (dims, dtype) => new NDArray(new (STORES.get(dtype))(product(dims)), dims, dtype)
const copied = a => (a instanceof Halves ? a.widened() : copy(empty(a.dims, a.dtype), a))
const whole = a => (a.isWhole ? a : copied(a))

/**
 * An array of given numbers.
 * @param {ArrayLike<number | bigint>} numbers
 * @param {number[]} dims
 */
export function array(numbers, dims, dtype = FLOAT) {
  return new NDArray(numbers, dims, dtype)
}
export const wholeNumbers = numbers => array(BigInt64Array.from(numbers, BigInt), [numbers.length], WHOLE)

// A plain number, a list or a constant as an array.
const arrayOf = (x, dtype) => {
  if (x instanceof NDArray) return as(x, dtype)
  if (x.$isConstant) x = x.items
  if (!Array.isArray(x)) {
    const one = empty([], dtype)
    one.data[0] = dtype === WHOLE ? py.int(x) : Number(typeof x === "object" ? py.float(x) : x)
    return one
  }
  const all = empty([x.length], dtype)
  x.forEach((one, i) => (all.data[i] = dtype === WHOLE ? py.int(one) : py.float(one)))
  return all
}
// In another type, if it has one.
const as = (a, dtype) => {
  if (a.dtype === dtype) return widened(a)
  const from = a.flat(),
    to = empty(a.dims, dtype)
  if (dtype === WHOLE) for (let i = 0; i < from.length; i++) to.data[i] = BigInt(Math.trunc(Number(from[i])))
  else if (dtype === BOOL) for (let i = 0; i < from.length; i++) to.data[i] = Number(from[i]) !== 0
  else for (let i = 0; i < from.length; i++) to.data[i] = Number(from[i])
  return to
}
const dtypeOf = x => (x instanceof NDArray || x.$isConstant ? x.dtype : null)
// The type in which several are computed with: a plain number takes that of the arrays, if its kind allows it.
const common = args => {
  const known = args.map(dtypeOf).filter(Boolean)
  let dtype = known.length ? np.result_type(...known) : BOOL
  for (const x of args)
    if (dtypeOf(x) === null && typeof x !== "boolean")
      if (typeof x === "number") dtype = dtype.kind === "f" ? dtype : DOUBLE
      else if (dtype === BOOL) dtype = WHOLE
  return dtype
}

// Shapes

const axisOf = (axis, ndim) => {
  const at = number(axis)
  return at < 0 ? at + ndim : at
}
const dimsOf = shape => (Array.isArray(shape) ? shape : [shape]).map(number)
const broadcast = (a, dims) => {
  const more = dims.length - a.dims.length
  const strides = dims.map((n, i) => {
    const own = a.dims[i - more]
    if (i < more || (own === 1 && n !== 1)) return 0
    if (own !== n) throw py.ValueError(`shapes [${a.dims}] and [${dims}] do not fit`)
    return a.strides[i - more]
  })
  return a.view(dims, strides)
}
const together = arrays => {
  const ndim = Math.max(...arrays.map(a => a.dims.length))
  return Array.from({ length: ndim }, (_, i) => {
    const sizes = arrays.map(a => a.dims[i - ndim + a.dims.length] ?? 1)
    return sizes.find(n => n !== 1) ?? 1
  })
}

// Calls `inner(n, steps, ...offsets)` for the rows along the last axis of arrays that have the same dims.
const rows = (dims, arrays, inner) => {
  if (dims.includes(0)) return
  const size = product(dims),
    isOne = a => a.strides.every((s, i) => s === 0 || dims[i] === 1)
  if (arrays.every(a => a.isWhole || isOne(a)))
    return inner(
      size,
      arrays.map(a => (isOne(a) && size !== 1 ? 0 : 1)),
      arrays.map(a => a.offset),
    )
  const last = dims.length - 1,
    n = dims[last],
    steps = arrays.map(a => a.strides[last]),
    offsets = arrays.map(a => a.offset),
    index = Array(last).fill(0)
  for (let left = size / n; left > 0; left--) {
    inner(n, steps, offsets)
    for (let axis = last - 1; axis >= 0; axis--) {
      const isOver = ++index[axis] === dims[axis]
      for (let k = 0; k < arrays.length; k++)
        offsets[k] += isOver ? -arrays[k].strides[axis] * (dims[axis] - 1) : arrays[k].strides[axis]
      if (!isOver) break
      index[axis] = 0
    }
  }
}
function copy(to, from) {
  from = widened(from)
  const a = to.data,
    b = from.data
  rows(to.dims, [to, from], (n, [s, t], [i, j]) => {
    for (let k = 0; k < n; k++, i += s, j += t) a[i] = b[j]
  })
  return to
}

// Elements

const finite = Number.isFinite
const floored = (a, b) => {
  if (typeof a === "bigint") return py.floordiv(a, b)
  return Math.floor(a / b)
}
const UFUNCS = {
  __proto__: null,
  add: (a, b) => a + b,
  subtract: (a, b) => a - b,
  multiply: (a, b) => a * b,
  divide: (a, b) => a / b,
  floor_divide: floored,
  remainder: (a, b) => a - b * floored(a, b),
  power: (a, b) => a ** b,
  maximum: (a, b) => (a > b || a !== a ? a : b),
  minimum: (a, b) => (a < b || a !== a ? a : b),
  bitwise_and: (a, b) => a & b,
  bitwise_or: (a, b) => a | b,
  bitwise_xor: (a, b) => a ^ b,
  greater: (a, b) => a > b,
  greater_equal: (a, b) => a >= b,
  less: (a, b) => a < b,
  less_equal: (a, b) => a <= b,
  equal: (a, b) => a === b,
  not_equal: (a, b) => a !== b,
  logaddexp: (a, b) => (a === b ? a + Math.LN2 : Math.max(a, b) + Math.log1p(Math.exp(-Math.abs(a - b)))),
  negative: a => -a,
  absolute: a => (a < 0 ? -a : a),
  sign: a => (typeof a === "bigint" ? BigInt(Math.sign(Number(a))) : Math.sign(a)),
  exp: Math.exp,
  expm1: Math.expm1,
  log: Math.log,
  log1p: Math.log1p,
  sqrt: Math.sqrt,
  tanh: Math.tanh,
  cos: Math.cos,
  sin: Math.sin,
  floor: Math.floor,
  ceil: Math.ceil,
  isfinite: finite,
}
const OF_BOOL = new Set("greater greater_equal less less_equal equal not_equal isfinite".split(" "))
const OF_FLOAT = new Set("divide logaddexp exp expm1 log log1p sqrt tanh cos sin floor ceil".split(" "))

function elementwise(name, args) {
  const f = UFUNCS[name]
  if (!f) throw new Error(`np.${name} is not for arrays with numbers`)
  let dtype = common(args)
  if (OF_FLOAT.has(name) && dtype.kind !== "f") dtype = DOUBLE
  const given = args.map(x => arrayOf(x, dtype)),
    dims = together(given),
    result = empty(dims, OF_BOOL.has(name) ? BOOL : dtype),
    [a, b] = given.map(x => broadcast(x, dims)),
    to = result.data
  if (b === undefined)
    rows(dims, [result, a], (n, [, s], [i, j]) => {
      const from = a.data
      for (let k = 0; k < n; k++, j += s) to[i + k] = f(from[j])
    })
  else
    rows(dims, [result, a, b], (n, [, s, t], [i, j, l]) => {
      const left = a.data,
        right = b.data
      for (let k = 0; k < n; k++, j += s, l += t) to[i + k] = f(left[j], right[l])
    })
  return computed(name, args, NOTHING, result)
}
function where(condition, x, y) {
  const dtype = common([x, y]),
    given = [as(condition, BOOL), arrayOf(x, dtype), arrayOf(y, dtype)],
    dims = together(given),
    result = empty(dims, dtype),
    [c, a, b] = given.map(one => broadcast(one, dims))
  rows(dims, [result, c, a, b], (n, [, r, s, t], [i, h, j, l]) => {
    for (let k = 0; k < n; k++, h += r, j += s, l += t) result.data[i + k] = c.data[h] ? a.data[j] : b.data[l]
  })
  return result
}

// Along an axis

// The array with one axis last, and what its results look like with that axis as a single place, or gone.
const alongLast = (a, axis) => {
  const at = axisOf(axis, a.dims.length),
    order = [...a.dims.keys()].filter(i => i !== at)
  return { at, last: whole(transposed(a, [...order, at])), rest: order.map(i => a.dims[i]) }
}
const reduced = (start, add, end, dtypeOf) => (a, axis, keepdims) => {
  if (axis === undefined || axis === null) {
    const all = reduced(start, add, end, dtypeOf)(reshaped(a, [product(a.dims)]), 0)
    return keepdims ? reshaped(all, Array(a.dims.length).fill(1)) : all
  }
  const { at, last, rest } = alongLast(a, axis),
    n = a.dims[at],
    dtype = dtypeOf(a.dtype),
    from = dtype === WHOLE ? as(last, WHOLE).flat() : last.flat(),
    result = empty(rest, dtype)
  for (let i = 0, j = 0; i < result.data.length; i++) {
    let total = start(from[j])
    for (let k = 0; k < n; k++) total = add(total, from[j++])
    result.data[i] = end(total, n)
  }
  return keepdims ? result.view(a.dims.toSpliced(at, 1, 1), inRows(a.dims.toSpliced(at, 1, 1))) : result
}
const same = x => x
const sum = reduced(
  first => (typeof first === "bigint" ? 0n : 0),
  (a, b) => a + b,
  same,
  dtype => (dtype === BOOL ? WHOLE : dtype),
)
const mean = reduced(
  () => 0,
  (a, b) => a + Number(b),
  (total, n) => total / n,
  dtype => (dtype.kind === "f" ? dtype : DOUBLE),
)
const largest = reduced(same, UFUNCS.maximum, same, same)
const smallest = reduced(same, UFUNCS.minimum, same, same)

// Each row along an axis by another of the same length.
const eachRow = (make, dtypeOf) => (a, axis) => {
  const { at, last, rest } = alongLast(a, axis ?? -1),
    n = a.dims[at],
    from = last.flat(),
    result = empty([...rest, n], dtypeOf(a.dtype))
  for (let j = 0; j < from.length; j += n) result.data.set(make(from.subarray(j, j + n)), j)
  const back = [...rest.keys()]
  back.splice(at, 0, rest.length)
  return transposed(result, back)
}
const upwards = (a, b) => (a < b ? -1 : a > b ? 1 : 0)
const sorted = eachRow(numbers => numbers.slice().sort(), same)
const argsort = eachRow(
  numbers =>
    BigInt64Array.from(
      Array.from(numbers.keys()).sort((i, j) => upwards(numbers[i], numbers[j])),
      BigInt,
    ),
  () => WHOLE,
)

// Views

const transposed = (a, order) =>
  a.view(
    order.map(i => a.dims[i]),
    order.map(i => a.strides[i]),
  )
const reshaped = (a, dims) => {
  const open = dims.indexOf(-1),
    all = open < 0 ? dims : dims.with(open, product(a.dims) / -product(dims))
  if (product(all) !== product(a.dims)) throw py.ValueError(`[${a.dims}] cannot be reshaped to [${dims}]`)
  return whole(a).view(all, inRows(all), a.isWhole ? a.offset : 0)
}
const withAxis = (a, axis) => a.view(a.dims.toSpliced(axis, 0, 1), a.strides.toSpliced(axis, 0, 0))

// What an index gives: a view, and the arrays among its parts, with the axes of the view that they pick from.
const indexed = (a, key) => {
  const parts = Array.isArray(key) ? key : [key],
    named = parts.filter(p => p !== null && p !== py.Ellipsis).length,
    dots = parts.indexOf(py.Ellipsis)
  const all = Array(a.dims.length - named).fill(py.slice())
  const full = dots < 0 ? [...parts, ...all] : parts.toSpliced(dots, 1, ...all)
  const dims = [],
    strides = [],
    picked = [],
    axes = []
  let { offset } = a,
    at = 0
  for (const part of full) {
    if (part === null) {
      dims.push(1)
      strides.push(0)
      continue
    }
    const n = a.dims[at],
      step = a.strides[at++]
    if (py.isinstance(part, py.slice)) {
      const by = part.step === null ? 1 : number(part.step)
      if (by < 1) throw new Error("an index backwards is not for arrays with numbers")
      const bound = (x, otherwise) => {
        if (x === null) return otherwise
        const place = number(x)
        return Math.max(0, Math.min(n, place < 0 ? place + n : place))
      }
      const start = bound(part.start, 0),
        stop = bound(part.stop, n)
      dims.push(Math.max(0, Math.ceil((stop - start) / by)))
      strides.push(step * by)
      offset += start * step
    } else if (part instanceof NDArray && part.dims.length) {
      if (part.dtype === BOOL) throw new Error("an index of booleans is not for arrays with numbers")
      picked.push(part)
      axes.push(dims.length)
      dims.push(n)
      strides.push(step)
    } else {
      const place = number(part)
      if (place < -n || place >= n) throw py.IndexError(`index ${place} is out of bounds for ${n}`)
      offset += (place < 0 ? place + n : place) * step
    }
  }
  return { view: a.view(dims, strides, offset), picked: picked.length ? picked : null, axes }
}
// The places that arrays of indices pick along some axes of a view: their dims and offsets, and the view of one place.
const places = (view, picked, axes) => {
  const dims = together(picked),
    offsets = Array(product(dims)).fill(0)
  picked.forEach((one, i) => {
    const n = view.dims[axes[i]],
      step = view.strides[axes[i]]
    whole(broadcast(as(one, WHOLE), dims))
      .flat()
      .forEach((index, k) => {
        const place = Number(index)
        if (place < -n || place >= n) throw py.IndexError(`index ${place} is out of bounds for ${n}`)
        offsets[k] += (place < 0 ? place + n : place) * step
      })
  })
  const others = [...view.dims.keys()].filter(i => !axes.includes(i))
  return { dims, offsets, rest: transposed(view, others) }
}
const gathered = (view, picked, axes) => {
  const { dims, offsets, rest } = places(view, picked, axes),
    result = empty([offsets.length, ...rest.dims], view.dtype)
  offsets.forEach((offset, i) => copy(row(result, i), rest.view(rest.dims, rest.strides, rest.offset + offset)))
  const before = axes[0],
    all = reshaped(result, [...dims, ...rest.dims]),
    order = [...all.dims.keys()]
  return transposed(all, [
    ...order.slice(dims.length, dims.length + before),
    ...order.slice(0, dims.length),
    ...order.slice(dims.length + before),
  ])
}

const joined = (arrays, axis) => {
  const dtype = common(arrays),
    at = axisOf(axis ?? 0, arrays[0].dims.length),
    total = arrays.reduce((n, a) => n + a.dims[at], 0),
    result = empty(arrays[0].dims.with(at, total), dtype)
  let from = 0
  for (const a of arrays) {
    copy(result.view(a.dims, result.strides, from * result.strides[at]), broadcast(as(a, dtype), a.dims))
    from += a.dims[at]
  }
  return result
}
const split = (a, where, axis) => {
  const at = axisOf(axis ?? 0, a.dims.length),
    n = a.dims[at],
    each = Array.isArray(where) ? null : number(where)
  if (each !== null && n % each) throw py.ValueError(`${n} cannot be cut into ${each} equal parts`)
  const ends = each === null ? where.map(number) : Array.from({ length: each - 1 }, (_, i) => ((i + 1) * n) / each)
  return [0, ...ends].map((start, i) =>
    a.view(a.dims.with(at, (ends[i] ?? n) - start), a.strides, a.offset + start * a.strides[at]),
  )
}
const alongAxis = (a, indices, axis) => {
  const at = axisOf(axis, a.dims.length),
    dims = together([a, indices]).with(at, indices.dims[at]),
    picks = broadcast(indices, dims),
    from = broadcast(a, dims.with(at, a.dims[at])),
    step = from.strides[at],
    result = empty(dims, a.dtype)
  const still = from.view(dims, from.strides.with(at, 0))
  rows(dims, [result, picks, still], (n, [r, s, t], [i, j, l]) => {
    for (let k = 0; k < n; k++, i += r, j += s, l += t) result.data[i] = a.data[l + Number(picks.data[j]) * step]
  })
  return result
}

// Products

// Some axes as a single one: a view if their numbers stand at equal distances.
const merged = (a, groups) => {
  const strides = groups.map(axes => {
    const real = axes.filter(i => a.dims[i] !== 1)
    const isEven = real.every((i, k) => !k || a.strides[real[k - 1]] === a.strides[i] * a.dims[i])
    return isEven ? (real.length ? a.strides[real.at(-1)] : 0) : null
  })
  const dims = groups.map(axes => product(axes.map(i => a.dims[i])))
  return strides.includes(null) ? reshaped(transposed(a, groups.flat()), dims) : a.view(dims, strides)
}
function einsum(spec, a, b) {
  const [[left, right], out] = spec.split("->").map((part, i) => (i ? part : part.split(",")))
  const dtype = common([a, b])
  if (!(a instanceof NDArray) || a.dtype !== dtype) a = arrayOf(a, dtype)
  if (!(b instanceof NDArray) || b.dtype !== dtype) b = arrayOf(b, dtype)
  const sizes = {}
  for (const [letters, one] of [
    [left, a],
    [right, b],
  ])
    [...letters].forEach((letter, i) => {
      if ((sizes[letter] ??= one.dims[i]) !== one.dims[i])
        throw py.ValueError(`einsum ${spec}: [${a.dims}], [${b.dims}]`)
    })
  const both = [...left].filter(x => right.includes(x)),
    of = [
      both.filter(x => out.includes(x)),
      [...left].filter(x => !right.includes(x)),
      [...right].filter(x => !left.includes(x)),
      both.filter(x => !out.includes(x)),
    ]
  const at = (letters, groups) => groups.map(group => group.map(x => letters.indexOf(x)))
  const x = merged(a, at(left, [of[0], of[1], of[3]])),
    y = merged(b, at(right, [of[0], of[2], of[3]]))
  const order = [...of[0], ...of[1], ...of[2]],
    result = empty(
      order.map(letter => sizes[letter]),
      dtype,
    )
  products(x, y, result.data)
  return transposed(
    result,
    [...out].map(letter => order.indexOf(letter)),
  )
}
const BLOCK = 32768 // numbers of the second factor that are at hand at a time
// [B M K], [B N K] -> [B M N], in blocks, so that each number of the second is read from memory, and widened, once.
function products(x, y, to) {
  const [B, M, K] = x.dims,
    N = y.dims[1],
    isByColumn = y.strides[1] === 1 && y.strides[2] !== 1
  if (y.strides[2] !== 1 && !isByColumn) y = whole(y)
  const left = widened(x),
    [xb, xm, xk] = left.strides,
    [yb, yn, yk] = y.strides,
    rows = new Float64Array(M * K)
  for (let b = 0; b < B; b++) {
    for (let m = 0, i = 0; m < M; m++)
      for (let k = 0, at = left.offset + b * xb + m * xm; k < K; k++, at += xk) rows[i++] = left.data[at]
    const start = y.offset + b * yb,
      result = to.subarray(b * M * N, (b + 1) * M * N)
    if (isByColumn) byColumn(rows, y, start, yk, M, K, N, result)
    else byRow(rows, y, start, yn, M, K, N, result)
  }
}
// The second factor's rows stand in memory one after the other.
function byRow(rows, y, start, yn, M, K, N, to) {
  const size = Math.max(1, Math.min(N, Math.ceil(BLOCK / Math.max(K, 1)))),
    isHalf = y instanceof Halves,
    right = isHalf ? new Float32Array(size * K) : y.data
  for (let first = 0; first < N; first += size) {
    const n = Math.min(size, N - first),
      from = start + first * yn
    if (isHalf) for (let i = 0; i < n; i++) y.between(from + i * yn, from + i * yn + K, right, i * K)
    dots(rows, right, isHalf ? 0 : from, isHalf ? K : yn, M, K, n, to, first, N)
  }
}
function dots(rows, right, start, step, M, K, n, to, first, N) {
  let m = 0
  for (; m + 4 <= M; m += 4)
    for (let i = 0, j = start; i < n; i++, j += step) {
      let a = 0,
        b = 0,
        c = 0,
        d = 0
      for (let k = 0, l = m * K; k < K; k++, l++) {
        const one = right[j + k]
        a += rows[l] * one
        b += rows[l + K] * one
        c += rows[l + 2 * K] * one
        d += rows[l + 3 * K] * one
      }
      const o = m * N + first + i
      to[o] = a
      to[o + N] = b
      to[o + 2 * N] = c
      to[o + 3 * N] = d
    }
  for (; m < M; m++) {
    const from = m * K
    let i = 0,
      o = m * N + first
    for (let j = start; i + 4 <= n; i += 4, j += 4 * step) {
      let a = 0,
        b = 0,
        c = 0,
        d = 0
      for (let k = 0, l = j; k < K; k++, l++) {
        const one = rows[from + k]
        a += one * right[l]
        b += one * right[l + step]
        c += one * right[l + 2 * step]
        d += one * right[l + 3 * step]
      }
      to[o++] = a
      to[o++] = b
      to[o++] = c
      to[o++] = d
    }
    for (; i < n; i++) {
      let a = 0
      for (let k = 0, l = start + i * step; k < K; k++, l++) a += rows[from + k] * right[l]
      to[o++] = a
    }
  }
}
// Its columns do: as GPT-2 stores a matrix. Four of their parts are added at a time.
function byColumn(rows, y, start, yk, M, K, N, to) {
  const sums = new Float64Array(M * N),
    isHalf = y instanceof Halves,
    right = isHalf ? new Float32Array(4 * N) : y.data,
    step = isHalf ? N : yk
  let k = 0
  for (; k + 4 <= K; k += 4) {
    const from = start + k * yk
    if (isHalf) for (let i = 0; i < 4; i++) y.between(from + i * yk, from + i * yk + N, right, i * N)
    fours(rows, right, isHalf ? 0 : from, step, M, K, k, N, sums)
  }
  for (; k < K; k++) {
    const from = start + k * yk
    if (isHalf) y.between(from, from + N, right)
    const at = isHalf ? 0 : from
    for (let m = 0, o = 0; m < M; m++)
      for (let n = 0, one = rows[m * K + k]; n < N; n++) sums[o++] += one * right[at + n]
  }
  to.set(sums)
}
function fours(rows, right, at, step, M, K, k, N, sums) {
  for (let m = 0, o = 0; m < M; m++) {
    const a = rows[m * K + k],
      b = rows[m * K + k + 1],
      c = rows[m * K + k + 2],
      d = rows[m * K + k + 3]
    for (let n = 0, j = at; n < N; n++, j++, o++)
      sums[o] += a * right[j] + b * right[j + step] + c * right[j + 2 * step] + d * right[j + 3 * step]
  }
}

// NumPy's functions: each with the names of its parameters.
const made = (names, f) => (args, given) => f(...names.split(" ").map((name, i) => args[i] ?? given[name]))
const typed = (x, otherwise) => (x === undefined ? otherwise : np.dtype(x))
const filled = (shape, value, dtype) => {
  const result = empty(dimsOf(shape), dtype)
  return value ? copy(result, broadcast(arrayOf(value, dtype), result.dims)) : result
}
const FUNCTIONS = {
  __proto__: null,
  einsum: made("spec a b", einsum),
  where: made("condition x y", where),
  sum: made("a axis keepdims", sum),
  mean: made("a axis keepdims", mean),
  max: made("a axis keepdims", largest),
  min: made("a axis keepdims", smallest),
  clip: made("a least most", (a, least, most) => elementwise("minimum", [elementwise("maximum", [a, least]), most])),
  sort: made("a axis", sorted),
  argsort: made("a axis", argsort),
  unique: made("a", a => {
    const each = [...new Set(a.flat())].sort(upwards)
    return new NDArray(a.data.constructor.from(each), [each.length], a.dtype)
  }),
  nonzero: made("a", a => {
    const flat = a.flat(),
      strides = inRows(a.dims),
      found = [...flat.keys()].filter(i => Number(flat[i]) !== 0)
    return a.dims.map((n, axis) => wholeNumbers(found.map(i => Math.floor(i / strides[axis]) % n)))
  }),
  reshape: made("a shape", (a, shape) => reshaped(a, dimsOf(shape))),
  transpose: made("a axes", (a, axes) => transposed(a, axes ? axes.map(number) : [...a.dims.keys()].reverse())),
  swapaxes: made("a one other", (a, one, other) => {
    const order = [...a.dims.keys()],
      [i, j] = [one, other].map(axis => axisOf(axis, a.dims.length))
    order[i] = j
    order[j] = i
    return transposed(a, order)
  }),
  broadcast_to: made("a shape", (a, shape) => broadcast(a, dimsOf(shape))),
  concatenate: made("arrays axis", joined),
  stack: made("arrays axis", (arrays, axis) => {
    const at = axisOf(axis ?? 0, arrays[0].dims.length + 1)
    return joined(
      arrays.map(a => withAxis(a, at)),
      at,
    )
  }),
  split: made("a where axis", split),
  repeat: made("a repeats axis", (a, repeats, axis) => {
    const at = axisOf(axis, a.dims.length),
      wide = withAxis(a, at + 1),
      times = number(repeats)
    return reshaped(broadcast(wide, wide.dims.with(at + 1, times)), a.dims.with(at, a.dims[at] * times))
  }),
  take: made("a indices axis", (a, indices, axis) => gathered(a, [indices], [axisOf(axis, a.dims.length)])),
  take_along_axis: made("a indices axis", alongAxis),
  pad: made("a widths mode constant_values", (a, widths, _, value) => {
    const sides = widths.map(dimsOf),
      dims = a.dims.map((n, i) => n + sides[i][0] + sides[i][1]),
      result = filled(dims, value ?? 0n, a.dtype)
    const start = sides.reduce((at, [before], i) => at + before * result.strides[i], 0)
    copy(result.view(a.dims, result.strides, start), a)
    return result
  }),
  astype: made("a dtype", (a, dtype) => (a.dtype === np.dtype(dtype) ? a : as(a, np.dtype(dtype)))),
  arange: made("start stop step", (start, stop, step) => {
    const [from, to, by] = stop === undefined ? [0, number(start), 1] : [number(start), number(stop), number(step ?? 1)]
    return wholeNumbers(Array.from({ length: Math.max(0, Math.ceil((to - from) / by)) }, (_, i) => from + i * by))
  }),
  zeros: made("shape dtype", (shape, dtype) => filled(shape, 0, typed(dtype, DOUBLE))),
  ones: made("shape dtype", (shape, dtype) => filled(shape, 1, typed(dtype, DOUBLE))),
  empty: made("shape dtype", (shape, dtype) => filled(shape, 0, typed(dtype, DOUBLE))),
  full: made("shape value dtype", (shape, value, dtype) => filled(shape, value, typed(dtype, common([value])))),
}
np.ofNumbers(called)

const method = (name, packed = args => args) => {
  const f = function (...args) {
    return called(name, [this, ...packed(args)], NOTHING)
  }
  f.$keywords = (self, args, given) => called(name, [self, ...packed(args)], given)
  Object.defineProperty(NDArray.prototype, name, { value: f })
}
for (const name of "sum mean max min astype swapaxes repeat".split(" ")) method(name)
method("reshape", args => [Array.isArray(args[0]) ? args[0] : args])
method("transpose", args => (args.length ? [args] : []))
for (const [name, ufunc] of Object.entries({
  add: "add",
  sub: "subtract",
  mul: "multiply",
  truediv: "divide",
  floordiv: "floor_divide",
  mod: "remainder",
  pow: "power",
  and: "bitwise_and",
  or: "bitwise_or",
  xor: "bitwise_xor",
  lt: "less",
  le: "less_equal",
  gt: "greater",
  ge: "greater_equal",
  eq: "equal",
  ne: "not_equal",
})) {
  Object.defineProperty(NDArray.prototype, `__${name}__`, {
    value(other) {
      return elementwise(ufunc, [this, other])
    },
  })
  Object.defineProperty(NDArray.prototype, `__r${name}__`, {
    value(other) {
      return elementwise(ufunc, [other, this])
    },
  })
}
for (const [name, ufunc] of [
  ["neg", "negative"],
  ["abs", "absolute"],
])
  Object.defineProperty(NDArray.prototype, `__${name}__`, {
    value() {
      return elementwise(ufunc, [this])
    },
  })
