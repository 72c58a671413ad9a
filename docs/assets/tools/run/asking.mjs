// Asks the worker in which a checkpoint runs.

/**
 * @typedef {import("./worker.mjs").Tasks} Tasks
 * @typedef {import("./session.mjs").Progress} Progress
 */

/** Asks a worker, which begins with the first question, and ends with `stop`. */
export class Asked {
  constructor() {
    /** @type {Worker | undefined} */
    this.worker = undefined
    this.number = 0
    this.stopped = () => {}
  }
  /**
   * @template {keyof Tasks} T
   * @param {T} task
   * @param {Parameters<Tasks[T]>} asked
   * @param {(progress: Progress) => void} [came]
   * @returns {Promise<Awaited<ReturnType<Tasks[T]>>>}
   */
  ask(task, asked, came = () => {}) {
    this.worker ??= new Worker(new URL("worker.mjs", import.meta.url), { type: "module" })
    const { worker } = this,
      number = ++this.number
    return new Promise((resolve, reject) => {
      const done = (/** @type {() => void} */ then) => {
        worker.removeEventListener("message", take)
        worker.removeEventListener("error", fail)
        then()
      }
      function take(/** @type {MessageEvent} */ { data }) {
        if (data.number !== number) return
        if (data.progress) came(data.progress)
        else done(() => (data.problem === undefined ? resolve(data.result) : reject(new Error(data.problem))))
      }
      const fail = () => done(() => reject(new Error("the scripts could not be loaded")))
      worker.addEventListener("message", take)
      worker.addEventListener("error", fail)
      this.stopped = () => done(() => reject(new Stopped()))
      worker.postMessage({ number, task, asked })
    })
  }
  stop() {
    this.worker?.terminate()
    this.worker = undefined
    this.stopped()
  }
}
export class Stopped extends Error {}
