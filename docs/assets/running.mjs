// A checkpoint that runs: the forward pass that the build compiled from Python, on the numbers of a safetensors file.

import { architectureOf, load } from "./architectures.mjs"
import { M } from "./engine/base.mjs"
import { array, TYPES, watched, wholeNumbers } from "./engine/numpy.mjs"
import "./engine/ablations.mjs"
import "./engine/loaded.mjs"
import { parsed, Problem, py } from "./problems.mjs"

export { array } from "./engine/numpy.mjs"
export { py } from "./problems.mjs"
const { Arrays, Cache } = M["engine.loaded"]
export { Cache }
export const { Ablation } = M["engine.ablations"]
export const HOLDS = M["engine.steps"].Holds
export const ROLES = M["engine.steps"].Role

/**
 * @typedef {import("./engine/numpy.mjs").NDArray} NDArray
 * @typedef {{ call(step: Engine.Step, args: any[], kwargs: Engine.Dict<string, any>): any }} Watch observes the steps
 */

/** @type {Record<string, (bytes: ArrayBuffer) => ArrayLike<number | bigint>>} */
const READ = {
  F32: bytes => new Float32Array(bytes),
  F64: bytes => new Float64Array(bytes),
  I64: bytes => new BigInt64Array(bytes),
  BF16: bytes => widened(new Uint16Array(bytes)),
}

// bfloat16 is the upper half of float32.
function widened(/** @type {Uint16Array} */ halves) {
  const bits = new Uint32Array(halves.length)
  for (let i = 0; i < halves.length; i++) bits[i] = halves[i] << 16
  return new Float32Array(bits.buffer)
}

/**
 * The tensors of a safetensors file, each by its name.
 * @param {ArrayBuffer} buffer
 * @returns {Engine.Dict<string, NDArray>}
 */
export function tensors(buffer) {
  const length = Number(new DataView(buffer).getBigUint64(0, true))
  /** @type {Record<string, { dtype: string, shape: number[], data_offsets: [number, number] }>} */
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)))
  delete head.__metadata__
  return new py.Dict(
    Object.entries(head).map(
      ([
        name,
        {
          dtype,
          shape,
          data_offsets: [start, end],
        },
      ]) => {
        if (!Object.hasOwn(READ, dtype)) throw Problem(`${name} is stored as ${dtype}`, "store it as float32")
        const numbers = READ[dtype](buffer.slice(8 + length + start, 8 + length + end))
        return [name, array(numbers, shape, TYPES[dtype])]
      },
    ),
  )
}

export class Checkpoint {
  /**
   * @param {Engine.Keys} raw
   * @param {Engine.Dict<string, NDArray>} weights
   */
  constructor(raw, weights) {
    this.architecture = architectureOf(raw)
    this.config = this.architecture.config.read(raw)[0]
    this.weights = weights
  }

  /**
   * The forward pass on tokens that follow those of a cache: a score of each word for each of them, and the next cache.
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
 * A checkpoint from the texts and bytes of its files; the forward pass of its type is loaded.
 * @param {string} config
 * @param {ArrayBuffer} weights
 */
export async function checkpoint(config, weights) {
  const raw = /** @type {Engine.Keys} */ (parsed(config))
  await load(raw.read("model_type"))
  return new Checkpoint(raw, tensors(weights))
}
