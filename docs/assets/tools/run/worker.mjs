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
  /** @param {import("./folder.mjs").Given[]} given @param {(progress: Progress) => void} [came] */
  async open(given, came) {
    session = undefined // its memory is free before the next one takes any
    session = await opened(given, came)
    return session.about
  },
  /**
   * @param {{ text: string, source: string, added: number[], how: How, changed: Changed }} asked
   * @param {(progress: Progress) => void} [came]
   */
  run({ text, source, added, how, changed }, came) {
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
}
// What the session is asked as it is.
const OF_SESSION = /** @type {const} */ ([
  ...["answer", "drawn", "head", "small", "keys", "parts", "moved", "origin", "steps", "corner", "lens"],
])
/** @typedef {typeof TASKS & Pick<import("./session.mjs").Session, typeof OF_SESSION[number]>} Tasks */

addEventListener("message", async ({ data: { number, task, asked } }) => {
  const came = (/** @type {Progress} */ progress) => postMessage({ number, progress })
  try {
    const of = /** @type {any} */ (OF_SESSION.includes(task) ? open() : TASKS)
    postMessage({ number, result: await of[task](...asked, came) })
  } catch (error) {
    const isMemory = error instanceof RangeError && /alloc|array length|memory/i.test(error.message)
    postMessage({
      number,
      problem: isMemory ? "the browser gives no more memory; choose a smaller checkpoint" : said(error),
    })
  }
})
