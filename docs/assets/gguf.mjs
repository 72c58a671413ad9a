// Reads the header of a GGUF file, possibly split: its metadata and its list of tensors, according to versions 2 and 3
// of the specification, like macros/catalogue/gguf_header.py. No DOM access.

import { M } from "./engine/base.mjs"
import { BOUNDS, named, Problem, py, shorten } from "./problems.mjs"

const AGAIN = "download the file again",
  MOST_NUMBERS = 2n ** 62n,
  FIRST = 2 ** 22, // bytes that hold most headers
  LARGEST_HEADER = 2 ** 27,
  MOST_KEYS = 100_000n,
  MOST_TENSORS = 200_000n,
  LONGEST_KEY = 65_535n,
  LONGEST_NAME = 1_000n,
  LONGEST_TEXT = 2n ** 24n,
  LONGEST_FLOATS = 2 ** 16, // bytes of a tensor whose numbers are read
  TEXT = 8,
  LIST = 9,
  utf8 = new TextDecoder()

const grouped = (/** @type {bigint | number} */ n) => py.format(BigInt(n), ",")

/** The value types of the metadata by number: their size in bytes and how to read them. */
const SCALARS = new Map(
  /** @type {[number, [number, (view: DataView, at: number) => bigint | number | boolean]][]} */ ([
    [0, [1, (view, at) => BigInt(view.getUint8(at))]],
    [1, [1, (view, at) => BigInt(view.getInt8(at))]],
    [2, [2, (view, at) => BigInt(view.getUint16(at, true))]],
    [3, [2, (view, at) => BigInt(view.getInt16(at, true))]],
    [4, [4, (view, at) => BigInt(view.getUint32(at, true))]],
    [5, [4, (view, at) => BigInt(view.getInt32(at, true))]],
    [6, [4, (view, at) => view.getFloat32(at, true)]],
    [7, [1, (view, at) => view.getUint8(at) !== 0]],
    [10, [8, (view, at) => view.getBigUint64(at, true)]],
    [11, [8, (view, at) => view.getBigInt64(at, true)]],
    [12, [8, (view, at) => view.getFloat64(at, true)]],
  ]),
)

/** @param {DataView} view @param {number} length @param {number} at */
function texts(view, length, at) {
  return Array.from({ length }, () => {
    const size = Number(view.getBigUint64(at, true)),
      text = utf8.decode(new Uint8Array(view.buffer, at + 8, size))
    at += 8 + size
    return text
  })
}
/** A list in the metadata, whose values are read lazily. */
class Values {
  /** @param {DataView} view @param {number} type @param {number} length @param {number} start */
  constructor(view, type, length, start) {
    Object.assign(this, { view, type, length, start })
    this.all = () => {
      const [size, read] = SCALARS.get(type) ?? [0, () => 0n]
      return type === TEXT ? texts(view, length, start) : Array.from({ length }, (_, i) => read(view, start + i * size))
    }
    this.__repr__ = () => `a list of ${grouped(length)}`
  }
}

class Short extends Error {}

/** Reads one value after the other. */
class Reader {
  at = 0
  constructor(/** @type {ArrayBuffer} */ data) {
    this.view = new DataView(data)
    this.data = data
  }
  /** @param {number} size */
  step(size) {
    if (this.at + size > this.data.byteLength) throw new Short()
    this.at += size
    return this.at - size
  }
  whole32() {
    return this.view.getUint32(this.step(4), true)
  }
  whole64() {
    return this.view.getBigUint64(this.step(8), true)
  }
  text(/** @type {bigint} */ most) {
    const length = this.whole64()
    if (length > most)
      throw Problem(`has a text of ${grouped(length)} bytes in its header, more than ${grouped(most)}`, AGAIN)
    const start = this.step(Number(length))
    return utf8.decode(new Uint8Array(this.data, start, Number(length)))
  }
  values() {
    const type = this.whole32(),
      count = this.whole64(),
      start = this.at,
      scalar = SCALARS.get(type)
    if (type !== TEXT && !scalar) throw Problem(`has a list of type ${type} in its metadata, which is not known`, AGAIN)
    const size = scalar ? scalar[0] : 8 // the length of an empty text
    if (count * BigInt(size) > BigInt(this.data.byteLength - start)) throw new Short()
    if (scalar) this.step(Number(count) * size)
    else
      for (let left = Number(count); left > 0; left--) {
        const length = this.whole64()
        if (length > BigInt(this.data.byteLength)) throw new Short()
        this.step(Number(length))
      }
    return new Values(this.view, type, Number(count), start)
  }
  /** @param {string} key @returns {unknown} */
  value(key) {
    const type = this.whole32(),
      scalar = SCALARS.get(type)
    if (type === LIST) return this.values()
    if (type === TEXT) return this.text(LONGEST_TEXT)
    if (!scalar) throw Problem(`${named(key)} is of type ${type}, which is not known`, AGAIN)
    return scalar[1](this.view, this.step(scalar[0]))
  }
}

/**
 * @typedef {Engine.GgufTensor & { offset: bigint, numbers?: number[], file?: Blob, begin: bigint }} Listed and where it
 *   begins in its file
 * @typedef {Engine.Gguf & { tensors: Engine.Dict<string, Listed>, files: number }} Header
 */

/**
 * The metadata and the tensors of a file's header, and where the numbers begin.
 * @param {Reader} reader
 */
function parsed(reader) {
  if (utf8.decode(new Uint8Array(reader.data, 0, Math.min(4, reader.data.byteLength))) !== "GGUF")
    throw Problem("does not begin with GGUF", "give a GGUF file")
  reader.at = 4
  const version = reader.whole32()
  if (version !== 2 && version !== 3) {
    const what = version % 65_536 === 0 ? "is big-endian" : `is GGUF version ${version}; 2 and 3 are read`
    throw Problem(what, "convert it with a current llama.cpp")
  }
  const count = reader.whole64(),
    keys = reader.whole64()
  for (const [n, most, of] of /** @type {[bigint, bigint, string][]} */ ([
    [keys, MOST_KEYS, "keys"],
    [count, MOST_TENSORS, "tensors"],
  ]))
    if (n > most) throw Problem(`says that it has ${grouped(n)} ${of}, more than ${grouped(most)}`, AGAIN)
  /** @type {Map<string, unknown>} */
  const metadata = new Map(),
    /** @type {Map<string, Listed>} */
    tensors = new Map()
  for (let left = keys; left > 0n; left--) {
    const key = reader.text(LONGEST_KEY)
    if (metadata.has(key)) throw Problem(`has the key ${named(key)} twice`, AGAIN)
    metadata.set(key, reader.value(key))
  }
  for (let left = count; left > 0n; left--) {
    const [name, tensor] = listed(reader)
    if (tensors.has(name)) throw Problem(`lists ${named(name)} twice`, AGAIN)
    tensors.set(name, tensor)
  }
  const alignment = metadata.get("general.alignment") ?? 32n
  if (typeof alignment !== "bigint" || alignment < 1n || alignment > 2n ** 20n || alignment & (alignment - 1n))
    throw Problem(`general.alignment = ${shorten(alignment)}: expected a power of two`, AGAIN)
  const start = ((BigInt(reader.at) + alignment - 1n) / alignment) * alignment
  check(tensors, alignment)
  return { metadata, tensors, start }
}
/** @returns {[name: string, tensor: Listed]} */
function listed(/** @type {Reader} */ reader) {
  const name = reader.text(LONGEST_NAME),
    axes = reader.whole32()
  if (axes > BOUNDS.MOST_AXES)
    throw Problem(`${named(name)} has ${grouped(axes)} axes, more than ${BOUNDS.MOST_AXES}`, AGAIN)
  const shape = Array.from({ length: axes }, () => reader.whole64()).reverse(),
    kind = reader.whole32(),
    offset = reader.whole64(),
    known = M["counting.gguf_types"].BY_ID.read(BigInt(kind))
  if (!known) throw Problem(`${named(name)} is of type ${kind}, which is not known`, "convert the model again")
  const [type, block, bytes] = known,
    numbers = shape.reduce((all, n) => all * n, 1n)
  if (numbers > MOST_NUMBERS)
    throw Problem(`${named(name)} has ${grouped(numbers)} numbers, more than ${grouped(MOST_NUMBERS)}`, AGAIN)
  if ((shape.at(-1) ?? 1n) % block) {
    const what = `${type} of shape ${shorten(shape)}, whose rows are not whole blocks of ${block}`
    throw Problem(`${named(name)} is ${what}`, AGAIN)
  }
  /** @type {Listed} */
  const tensor = {
    ...{ type, shape, offset, begin: 0n },
    size: (numbers / block) * bytes,
    floats: () => tensor.numbers ?? [],
  }
  return [name, tensor]
}
/**
 * Throws a problem if two tensors overlap.
 * @param {Map<string, Listed>} tensors
 * @param {bigint} alignment
 */
function check(tensors, alignment) {
  let end = 0n,
    before = ""
  const inOrder = [...tensors].sort(([, a], [, b]) => (a.offset < b.offset ? -1 : a.offset > b.offset ? 1 : 0))
  for (const [name, { offset, size }] of inOrder) {
    if (offset < end) throw Problem(`${named(name)} begins within ${named(before)}`, AGAIN)
    if (offset % alignment)
      throw Problem(`${named(name)} begins at ${grouped(offset)}, which is no multiple of ${alignment}`, AGAIN)
    end = offset + size
    before = name
  }
}

/** @typedef {{ metadata: Map<string, unknown>, tensors: Map<string, Listed> }} Part */

/**
 * The header of one file; throws a problem.
 * @param {File} file
 * @returns {Promise<Part>}
 */
async function partOf(file) {
  for (let length = FIRST; ; length *= 8) {
    const data = await file.slice(0, Math.min(length, LARGEST_HEADER)).arrayBuffer(),
      isLast = data.byteLength === file.size || length >= LARGEST_HEADER
    try {
      return await read(file, parsed(new Reader(data)))
    } catch (error) {
      if (!(error instanceof Short)) throw error
      if (!isLast) continue
      const isWhole = data.byteLength === file.size
      const what = isWhole ? "ends within its header" : `has a header of more than ${grouped(LARGEST_HEADER)} bytes`
      throw Problem(what, AGAIN, file.name)
    }
  }
}
/** @param {File} file @param {ReturnType<typeof parsed>} header @returns {Promise<Part>} */
async function read(file, { metadata, tensors, start }) {
  for (const [name, tensor] of tensors) {
    Object.assign(tensor, { file, begin: start + tensor.offset })
    if (!name.endsWith("rope_freqs.weight") || tensor.type !== "F32" || tensor.size > LONGEST_FLOATS) continue
    const begin = Number(start + tensor.offset),
      data = await file.slice(begin, begin + Number(tensor.size)).arrayBuffer()
    if (data.byteLength === Number(tensor.size))
      tensor.numbers = Array.from({ length: data.byteLength / 4 }, (_, i) => new DataView(data).getFloat32(4 * i, true))
  }
  return { metadata, tensors }
}
/** @param {Part} part @returns {Header} */
function whole({ metadata, tensors }, files = 1) {
  const architecture = metadata.get("general.architecture")
  if (typeof architecture !== "string")
    throw Problem(`general.architecture = ${shorten(architecture ?? null)}: expected a name`, AGAIN)
  const list_of = (/** @type {string} */ key) => {
    const value = metadata.get(key)
    return value instanceof Values ? value.all() : null
  }
  return {
    ...{ architecture, files, list_of, metadata: new py.Dict(metadata), tensors: new py.Dict(tensors) },
    of: key => metadata.get(`${architecture}.${key}`) ?? null,
    listed: key => list_of(`${architecture}.${key}`),
  }
}

const PART = /^(.+)-(\d{5})-of-(\d{5})\.gguf$/

/**
 * The header of a file, or of a split file's parts, which are recognized by name; throws a problem.
 * @param {File[]} given
 * @returns {Promise<Header>}
 */
export async function headerOf(given) {
  const files = inOrder(given),
    /** @type {Part} */
    all = { metadata: new Map(), tensors: new Map() }
  for (const [number, file] of files.entries())
    try {
      add(all, await partOf(file), number, files.length)
    } catch (error) {
      throw files.length > 1 && py.isinstance(error, [Problem])
        ? /** @type {Engine.Problem} */ (error).at(file.name)
        : error
    }
  const said = all.metadata.get("split.tensors.count")
  if (files.length > 1 && typeof said === "bigint" && said !== BigInt(all.tensors.size)) {
    const what = `has ${grouped(all.tensors.size)} tensors in ${files.length} files, and says ${grouped(said)}`
    throw Problem(what, AGAIN, files[0].name)
  }
  return whole(all, files.length)
}
/** @returns {File[]} of one model, the parts of a split one in their order */
function inOrder(/** @type {File[]} */ given) {
  const found = PART.exec(given[0].name)
  if (!found) {
    if (given.length > 1) throw Problem(`there are ${given.length} GGUF files`, "choose one, or the parts of one")
    return given
  }
  const [, name, , of] = found,
    byName = new Map(given.map(file => [file.name, file])),
    names = Array.from({ length: Math.min(Number(of), 1000) }, (_, i) => {
      return `${name}-${`${i + 1}`.padStart(5, "0")}-of-${of}.gguf`
    }),
    missing = names.filter(one => !byName.has(one)),
    shown = missing
      .slice(0, 3)
      .map(one => named(one))
      .join(", "),
    more = missing.length > 3 ? ` and ${missing.length - 3} more` : ""
  if (missing.length || !names.length) {
    const what = `is one of ${Number(of)} files, and these are not here: ${shown}`
    throw Problem(`${what}${more}`, "choose all of them together", given[0].name)
  }
  if (given.length > names.length)
    throw Problem(`there are ${given.length} GGUF files`, "choose one, or the parts of one")
  return names.flatMap(one => byName.get(one) ?? [])
}
/** @param {Part} all @param {Part} part @param {number} number @param {number} parts */
function add(all, { metadata, tensors }, number, parts) {
  const count = metadata.get("split.count") ?? null,
    place = metadata.get("split.no") ?? null,
    mend = "restore the files' original names"
  if (count !== null && count !== BigInt(parts) && !(count === 0n && parts === 1))
    throw Problem(`split.count = ${shorten(count)}, and its name says ${parts}`, mend)
  if (parts > 1 && place !== null && place !== BigInt(number))
    throw Problem(`split.no = ${shorten(place)}, and its name makes it number ${number}`, mend)
  if (!number) all.metadata = metadata
  for (const [name, tensor] of tensors) {
    if (all.tensors.has(name)) throw Problem(`lists ${named(name)}, which another part lists too`, AGAIN)
    all.tensors.set(name, tensor)
  }
}
