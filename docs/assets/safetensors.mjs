// Reads the header of a safetensors file: its tensors by name, without their data. No DOM access, so a worker can load
// it.

import { BOUNDS, named, Problem, py, said, textOf } from "./problems.mjs"

/**
 * @typedef {{ file: Blob, dtype: string, shape: number[], start: number, end: number }} Tensor where it is in its file
 */

const grouped = (/** @type {bigint | number} */ n) => py.format(BigInt(n), ",")

/**
 * The entries of a JSON object.
 * @param {string} text
 * @param {string} otherwise what is said of a text that is none
 * @returns {[string, unknown][]}
 */
export function entriesOf(text, otherwise) {
  /** @type {unknown} */
  let table
  try {
    table = JSON.parse(text)
  } catch (error) {
    throw Problem(`${otherwise}: ${said(error)}`, "choose another file")
  }
  if (!isTable(table)) throw Problem(otherwise, "choose another file")
  return Object.entries(table)
}
/** @returns {value is Record<string, unknown>} */
export const isTable = (/** @type {unknown} */ value) =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/**
 * The entries of a file's header, and where its numbers begin; throws a problem.
 * @param {Blob} file
 * @returns {Promise<{ entries: [string, unknown][], begin: number }>}
 */
export async function headerOf(file) {
  if (file.size < 8) throw Problem("is too short to have a header", "give a safetensors file")
  const length = new DataView(await file.slice(0, 8).arrayBuffer()).getBigUint64(0, true)
  if (length > BOUNDS.LARGEST_HEADER)
    throw Problem(`has a header of ${grouped(length)} bytes, which is too large`, "give a safetensors file")
  if (file.size < length + 8n)
    throw Problem(`ends within its header, which has ${grouped(length)} bytes`, "download the whole header")
  const begin = 8 + Number(length),
    entries = entriesOf(await textOf(file.slice(8, begin), BOUNDS.LARGEST_HEADER), "has no valid header")
  return { entries: entries.filter(([name]) => name !== "__metadata__"), begin }
}

/**
 * @param {string} name
 * @param {unknown} tensor
 * @returns {number[]}
 */
export function shapeOf(name, tensor) {
  const shape = isTable(tensor) ? tensor.shape : null
  if (Array.isArray(shape) && shape.length <= BOUNDS.MOST_AXES && shape.every(n => Number.isSafeInteger(n) && n >= 0))
    return shape
  throw Problem(`${named(name)} has no valid shape`, "give a safetensors file")
}

/** Bytes of a number, by the name of its type. @type {Record<string, number>} */
export const SIZES = { F64: 8, F32: 4, F16: 2, BF16: 2, I64: 8, I32: 4, I16: 2, I8: 1, U8: 1, BOOL: 1 }

/**
 * The tensors of a complete file; throws a problem if one extends past its end.
 * @param {Blob} file
 * @returns {Promise<Map<string, Tensor>>}
 */
export async function tensorsIn(file) {
  const { entries, begin } = await headerOf(file)
  return new Map(
    entries.map(([name, tensor]) => {
      const shape = shapeOf(name, tensor),
        { dtype, data_offsets: offsets } = /** @type {Record<string, unknown>} */ (tensor)
      if (typeof dtype !== "string") throw Problem(`${named(name)} has no type`, "give a safetensors file")
      const [start, end] = Array.isArray(offsets) && offsets.every(n => Number.isSafeInteger(n)) ? offsets : [0, -1]
      const bytes = Object.hasOwn(SIZES, dtype) ? shape.reduce((all, n) => all * n, SIZES[dtype]) : end - start
      if (start < 0 || end < start || end - start !== bytes || begin + end > file.size)
        throw Problem(`${named(name)} does not lie in the file`, "download the file again")
      return [name, { file, dtype, shape, start: begin + start, end: begin + end }]
    }),
  )
}
