// Reads untrusted files and JSON, and reports what is wrong with them.

import { M, py } from "./engine/base.mjs"

export { py }
export const BOUNDS = M["engine.bounds"]
export const { named, Problem, shorten } = M["engine.errors"]

// Whether an error is about the user's config; any other error is a bug here.
export const isProblem = (/** @type {unknown} */ error) => {
  const rules = M["engine.rules"] // there with the forward passes
  return py.isinstance(error, rules ? [Problem, rules.ShapeError] : [Problem])
}
export const said = (/** @type {unknown} */ error) =>
  isProblem(error) ? py.str(error) : String(error instanceof Error ? error.message : error)

/**
 * Parses untrusted JSON; throws a problem with the command line's wording.
 * @param {string} source
 */
export function parsed(source) {
  const { whole, special_float, check_data } = M["engine.json_data"]
  if (source.length > BOUNDS.LARGEST_TEXT) throw tooLarge(source.length, BOUNDS.LARGEST_TEXT)
  let value
  try {
    value = py.parse(source, { whole, table: special_float })
  } catch (error) {
    throw error instanceof SyntaxError ? Problem(error.message, "check it") : error
  }
  check_data(value)
  return value
}
function tooLarge(/** @type {number} */ size, /** @type {bigint} */ most) {
  const [bytes, limit] = [BigInt(size), most].map(n => py.format(n, ","))
  return Problem(`cannot be read: it has ${bytes} bytes, more than ${limit}`, "check the file")
}

/**
 * Reads a file, or a slice of one, as text after checking its size; throws a problem.
 * @param {Blob} file
 * @param {bigint} most
 */
export async function textOf(file, most) {
  if (file.size > most) throw tooLarge(file.size, most)
  let data
  try {
    data = await file.arrayBuffer()
  } catch (error) {
    throw Problem(`cannot be read: ${said(error)}`, "choose a file")
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(data)
  } catch {
    throw Problem("is not UTF-8", "choose a file of text")
  }
}

// Yields to the event loop so that the page stays responsive; the current task resumes first.
export const pause = () => globalThis.scheduler?.yield?.() ?? new Promise(resolve => setTimeout(resolve))
// Like `pause`, but also waits for a paint unless the page is hidden.
export const painted = () =>
  new Promise(resolve => {
    if (document.hidden) setTimeout(resolve)
    else requestAnimationFrame(() => setTimeout(resolve))
  })
/**
 * Returns a function to call between units of work; it pauses whenever that many milliseconds have passed.
 * @param {number} most
 */
export function paced(most) {
  let since = performance.now()
  return async () => {
    if (performance.now() - since < most) return
    await pause()
    since = performance.now()
  }
}
