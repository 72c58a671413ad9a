// A worker: runs a checkpoint beside the page, which stays quick, and ends it when a reader stops it.

import { said } from "../../problems.mjs"
import { open as opened } from "./opening.mjs"

/**
 * @typedef {import("./session.mjs").How} How
 * @typedef {import("./session.mjs").Progress} Progress
 * @typedef {{ off: string[], without: string[], patches: string[], other: string }} Changed what is switched off, left
 *   out, or patched from a text
 */

/** @type {import("./session.mjs").Session<import("./session.mjs").About> | undefined} */
let session
const open = () => {
  if (session) return session
  throw new Error("no checkpoint is open")
}

export const TASKS = {
  /** @param {{ given: import("./folder.mjs").Given[] }} asked */
  async open({ given }, /** @type {(progress: Progress) => void} */ came) {
    session = undefined // its memory is free before the next one takes any
    session = await opened(given, came)
    return session.about
  },
  /** @param {{ text: string, source: string, added: number[], how: How, changed: Changed }} asked */
  run({ text, source, added, how, changed }, /** @type {(progress: Progress) => void} */ came) {
    const one = open(),
      begin = performance.now(),
      ids = [...one.encode(text), ...added],
      other = changed.other ? one.encode(changed.other) : null,
      isOther = other?.length === ids.length
    one.run(ids, one.about.hasSource ? one.encode(source) : [], came, { ...changed, other: isOther ? other : null })
    const problem =
      !other || isOther
        ? ""
        : `It has ${other.length} tokens, and the text above has ${ids.length}: a patch needs as many.`
    return { ...one.answer(how), problem, seconds: (performance.now() - begin) / 1000 }
  },
  /** @param {{ how: How }} asked */
  answer: ({ how }) => open().answer(how),
  /** @param {{ how: How, chance: number }} asked */
  drawn: ({ how, chance }) => open().drawn(how, chance),
  /** @param {{ layer: number, head: number }} asked */
  head: ({ layer, head }) => open().head(layer, head),
  /** @param {{ layer: number }} asked */
  small: ({ layer }) => open().small(layer),
  /** @param {{ layer: number, head: number }} asked */
  keys: ({ layer, head }) => open().keys(layer, head),
  /** @param {{ token: number }} asked */
  parts: ({ token }) => open().parts(token),
  /** @param {{ layer: number, at: number }} asked */
  moved: ({ layer, at }, /** @type {(progress: Progress) => void} */ came) => open().moved(layer, at, came),
  /** @param {{ place: string, how: How }} asked */
  origin: ({ place, how }, /** @type {(progress: Progress) => void} */ came) => open().origin(place, how, came),
  /** @param {{ layer: number }} asked */
  steps: ({ layer }, /** @type {(progress: Progress) => void} */ came) => open().steps(layer, came),
  /** @param {{ step: number, head: number }} asked */
  corner: ({ step, head }, /** @type {(progress: Progress) => void} */ came) => open().corner(step, head, came),
  lens: () => open().lens(),
}

addEventListener("message", async ({ data: { number, task, asked } }) => {
  const came = (/** @type {Progress} */ progress) => postMessage({ number, progress })
  try {
    postMessage({ number, result: await /** @type {any} */ (TASKS)[task](asked, came) })
  } catch (error) {
    const isMemory = error instanceof RangeError && /alloc|array length|memory/i.test(error.message)
    postMessage({
      number,
      problem: isMemory ? "the browser gives no more memory; choose a smaller checkpoint" : said(error),
    })
  }
})
