// A worker: runs a checkpoint beside the page, which stays quick, and ends it when a reader stops it.

import { said } from "../../problems.mjs"
import { Session } from "./session.mjs"

/**
 * @typedef {import("./session.mjs").How} How
 * @typedef {import("./session.mjs").Progress} Progress
 */

/** @type {Session | undefined} */
let session
const open = () => {
  if (session) return session
  throw new Error("no checkpoint is open")
}

export const TASKS = {
  /** @param {{ given: import("./folder.mjs").Given[] }} asked */
  async open({ given }, /** @type {(progress: Progress) => void} */ came) {
    session = undefined // its memory is free before the next one takes any
    session = await Session.open(given, came)
    return session.about
  },
  /** @param {{ text: string, source: string, added: number[], how: How }} asked */
  run({ text, source, added, how }, /** @type {(progress: Progress) => void} */ came) {
    const one = open(),
      begin = performance.now()
    one.run([...one.encode(text), ...added], one.about.hasSource ? one.encode(source) : [], came)
    return { ...one.answer(how), seconds: (performance.now() - begin) / 1000 }
  },
  /** @param {{ how: How }} asked */
  answer: ({ how }) => open().answer(how),
  /** @param {{ how: How, chance: number }} asked */
  drawn: ({ how, chance }) => open().drawn(how, chance),
  /** @param {{ layer: number, head: number }} asked */
  head: ({ layer, head }) => open().head(layer, head),
  /** @param {{ layer: number }} asked */
  small: ({ layer }) => open().small(layer),
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
