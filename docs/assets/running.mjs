// Runs a checkpoint: the forward pass that the build compiled from Python, on the numbers of a safetensors file.

import { architectureOf, load } from "./architectures.mjs"
import { M } from "./engine/base.mjs"
import { array, NDArray, ofHalves, TYPES, watched, wholeNumbers } from "./engine/numpy.mjs"
import "./engine/ablations.mjs"
import "./engine/loaded.mjs"
import { named, parsed, Problem, py, shorten } from "./problems.mjs"
import { tensorsIn } from "./safetensors.mjs"

export { array, TYPES as STORED, watched, wholeNumbers } from "./engine/numpy.mjs"
export { NDArray }
export { py } from "./problems.mjs"
const { Arrays, Cache } = M["engine.loaded"]
export { Cache }
export const { Ablation, adds_its_branches, is_scaled } = M["engine.ablations"]
/**
 * A recurrence over the tokens, as it runs without a tracer.
 * @param {(state: any, ...rows: any[]) => [any, any]} body
 * @param {any} state
 * @param {any[]} xs
 */
export const repeated = (body, state, xs) => watched(null, () => M["engine.ops.recurrence"].scan(body, state, xs))
export const HOLDS = M["engine.steps"].Holds
export const ROLES = M["engine.steps"].Role
export const { ACTIVATIONS, FEED_FORWARDS, NORMS } = M["engine.steps"]

/**
 * @typedef {import("./safetensors.mjs").Tensor} Tensor
 * @typedef {object} Watch observes the steps, and each call of NumPy
 * @property {(step: Engine.Step, args: any[], kwargs: Engine.Dict<string, any>) => any} call
 * @property {(name: string, args: any[], given: object, result: any) => void} [computed]
 */

/**
 * The numbers of a tensor as an array; 16-bit numbers are not widened.
 * @param {string} name
 * @param {string} dtype
 * @param {number[]} shape
 * @param {ArrayBuffer} bytes
 * @returns {NDArray}
 */
function arrayOf(name, dtype, shape, bytes) {
  if (dtype === "BF16" || dtype === "F16") return ofHalves(new Uint16Array(bytes), shape, dtype)
  if (dtype === "F32") return array(new Float32Array(bytes), shape)
  if (dtype === "F64") return array(new Float64Array(bytes), shape, TYPES.F64)
  if (dtype === "I64") return array(new BigInt64Array(bytes), shape, TYPES.I64)
  throw Problem(`${named(name)} is stored as ${shorten(dtype)}`, "store it as float32, float16 or bfloat16")
}

const SLICE = 2 ** 24 // bytes that are read at a time
/**
 * Reads the arrays of some tensors, each in slices.
 * @param {Map<string, Tensor>} tensors
 * @param {(bytes: number) => void} [came] hears of each slice
 * @returns {Promise<Engine.Dict<string, NDArray>>}
 */
export async function arraysOf(tensors, came = () => {}) {
  /** @type {Engine.Dict<string, NDArray>} */
  const arrays = new py.Dict()
  for (const [name, { file, dtype, shape, start, end }] of tensors) {
    if (!Object.hasOwn(TYPES, dtype)) arrayOf(name, dtype, shape, new ArrayBuffer(0))
    arrays.put(name, arrayOf(name, dtype, shape, (await bytesOf(file, start, end, came)).buffer))
  }
  return arrays
}
/**
 * Bytes of a file, read in slices.
 * @param {Blob} file
 * @param {number} start
 * @param {number} end
 * @param {(bytes: number) => void} came hears of each slice
 */
export async function bytesOf(file, start, end, came) {
  const bytes = new Uint8Array(end - start)
  for (let at = start; at < end; at += SLICE) {
    const slice = new Uint8Array(await file.slice(at, Math.min(at + SLICE, end)).arrayBuffer())
    bytes.set(slice, at - start)
    came(slice.length)
  }
  return bytes
}

export class Checkpoint {
  /**
   * @param {Engine.Keys} raw
   * @param {Pick<Engine.Dict<string, NDArray>, "read">} weights of the names that the forward pass asks for
   */
  constructor(raw, weights) {
    this.architecture = architectureOf(raw)
    this.config = this.architecture.config.read(raw)[0]
    this.weights = /** @type {Engine.Dict<string, NDArray>} */ (weights)
  }

  /**
   * Runs the forward pass on tokens that follow those in the cache; returns each token's logits and the next cache.
   * @param {number[]} ids
   * @param {{ cache?: any, last?: boolean, watch?: Watch | null }} [how]
   * @returns {{ scores: NDArray, cache: any }}
   */
  run(ids, { cache = Cache(), last = false, watch = null } = {}) {
    const scores = watched(watch, () =>
      this.architecture.forward(Arrays(this.weights), wholeNumbers(ids), this.config, cache, last),
    )
    return { scores, cache: cache.after(BigInt(ids.length)) }
  }
}

/**
 * Loads a checkpoint from the contents of its files, and its type's forward pass.
 * @param {string} config
 * @param {ArrayBuffer} weights
 */
export async function checkpoint(config, weights) {
  const raw = /** @type {Engine.Keys} */ (parsed(config))
  await load(raw.read("model_type"))
  return new Checkpoint(raw, await arraysOf(await tensorsIn(new Blob([weights]))))
}
