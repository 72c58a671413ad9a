// Dequantizes the blocks of a GGUF file to float32, as llama.cpp's ggml-quants.c does. No DOM access.

import { array, ofF16, ofHalves, TYPES } from "./engine/numpy.mjs"
import { named, Problem, shorten } from "./problems.mjs"

/**
 * @typedef {import("./engine/numpy.mjs").NDArray} NDArray
 * @typedef {(bytes: Uint8Array, at: number, into: Float32Array, to: number) => void} Unpack one block
 */

const half = (/** @type {Uint8Array} */ b, /** @type {number} */ at) => halves[b[at] | (b[at + 1] << 8)]
const signed = (/** @type {number} */ byte) => (byte << 24) >> 24
/** @type {Float32Array} */
let halves

// The values of the 4-bit formats whose steps are not equal.
const UNEVEN = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113],
  E2M1 = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12] // twice the value
// Digits of base 3, five in a byte, as a fraction: where a row of bytes begins, its width, and the digits of a byte.
const TERNARY = [
    [0, 32, 5],
    [32, 16, 5],
    [48, 4, 4],
  ],
  POWERS = [1, 3, 9, 27, 81]

// The scale and the minimum of one of eight parts, 6 bits each in 12 bytes.
const scale = (/** @type {Uint8Array} */ b, /** @type {number} */ at, /** @type {number} */ j) =>
  j < 4 ? b[at + j] & 63 : (b[at + j + 4] & 15) | ((b[at + j - 4] >> 6) << 4)
const least = (/** @type {Uint8Array} */ b, /** @type {number} */ at, /** @type {number} */ j) =>
  j < 4 ? b[at + j + 4] & 63 : (b[at + j + 4] >> 4) | ((b[at + j] >> 6) << 4)

/** @type {Record<string, Unpack>} */
const UNPACK = {
  Q4_0(b, at, into, to) {
    const d = half(b, at)
    for (let j = 0; j < 16; j++) {
      const q = b[at + 2 + j]
      into[to + j] = d * ((q & 15) - 8)
      into[to + 16 + j] = d * ((q >> 4) - 8)
    }
  },
  Q4_1(b, at, into, to) {
    const d = half(b, at),
      m = half(b, at + 2)
    for (let j = 0; j < 16; j++) {
      const q = b[at + 4 + j]
      into[to + j] = d * (q & 15) + m
      into[to + 16 + j] = d * (q >> 4) + m
    }
  },
  Q5_0(b, at, into, to) {
    const d = half(b, at)
    for (let j = 0; j < 16; j++) {
      const q = b[at + 6 + j]
      into[to + j] = d * (((q & 15) | fifth(b, at + 2, j)) - 16)
      into[to + 16 + j] = d * (((q >> 4) | fifth(b, at + 2, j + 16)) - 16)
    }
  },
  Q5_1(b, at, into, to) {
    const d = half(b, at),
      m = half(b, at + 2)
    for (let j = 0; j < 16; j++) {
      const q = b[at + 8 + j]
      into[to + j] = d * ((q & 15) | fifth(b, at + 4, j)) + m
      into[to + 16 + j] = d * ((q >> 4) | fifth(b, at + 4, j + 16)) + m
    }
  },
  Q8_0(b, at, into, to) {
    const d = half(b, at)
    for (let j = 0; j < 32; j++) into[to + j] = d * signed(b[at + 2 + j])
  },
  Q2_K(b, at, into, to) {
    const d = half(b, at + 80),
      m = half(b, at + 82)
    for (let part = 0; part < 16; part++) {
      const s = b[at + part],
        first = at + 16 + 32 * (part >> 3) + 16 * (part & 1),
        shift = 2 * ((part >> 1) & 3)
      for (let j = 0; j < 16; j++)
        into[to + 16 * part + j] = d * (s & 15) * ((b[first + j] >> shift) & 3) - m * (s >> 4)
    }
  },
  Q3_K(b, at, into, to) {
    const d = half(b, at + 108)
    for (let part = 0; part < 16; part++) {
      const low = part < 8 ? b[at + 96 + part] & 15 : b[at + 88 + part] >> 4,
        high = (b[at + 104 + (part & 3)] >> (2 * (part >> 2))) & 3,
        s = d * ((low | (high << 4)) - 32),
        half16 = 16 * (part & 1),
        first = at + 32 + 32 * (part >> 3) + half16,
        bit = part >> 1,
        shift = 2 * (bit & 3)
      for (let j = 0; j < 16; j++) {
        const isHigh = (b[at + half16 + j] >> bit) & 1
        into[to + 16 * part + j] = s * (((b[first + j] >> shift) & 3) - (isHigh ? 0 : 4))
      }
    }
  },
  Q4_K: (b, at, into, to) => eightParts(b, at, into, to, 16, 0),
  Q5_K: (b, at, into, to) => eightParts(b, at, into, to, 48, 16),
  Q6_K(b, at, into, to) {
    const d = half(b, at + 208)
    for (let part = 0; part < 8; part++) {
      const side = part >> 2,
        low = at + 64 * side + 32 * (part & 1),
        high = at + 128 + 32 * side,
        shift = 4 * ((part >> 1) & 1),
        up = 2 * (part & 3)
      for (let j = 0; j < 32; j++) {
        const q = ((b[low + j] >> shift) & 15) | (((b[high + j] >> up) & 3) << 4)
        into[to + 32 * part + j] = d * signed(b[at + 192 + 2 * part + (j >> 4)]) * (q - 32)
      }
    }
  },
  IQ4_NL(b, at, into, to) {
    const d = half(b, at)
    for (let j = 0; j < 16; j++) {
      const q = b[at + 2 + j]
      into[to + j] = d * UNEVEN[q & 15]
      into[to + 16 + j] = d * UNEVEN[q >> 4]
    }
  },
  IQ4_XS(b, at, into, to) {
    const d = half(b, at),
      highs = b[at + 2] | (b[at + 3] << 8)
    for (let part = 0; part < 8; part++) {
      const low = (b[at + 4 + (part >> 1)] >> (4 * (part & 1))) & 15,
        s = d * ((low | (((highs >> (2 * part)) & 3) << 4)) - 32)
      for (let j = 0; j < 16; j++) {
        const q = b[at + 8 + 16 * part + j]
        into[to + 32 * part + j] = s * UNEVEN[q & 15]
        into[to + 32 * part + 16 + j] = s * UNEVEN[q >> 4]
      }
    }
  },
  TQ1_0(b, at, into, to) {
    const d = half(b, at + 52)
    for (const [first, width, digits] of TERNARY)
      for (let n = 0; n < digits; n++)
        for (let j = 0; j < width; j++) into[to++] = d * (((((b[at + first + j] * POWERS[n]) & 255) * 3) >> 8) - 1)
  },
  TQ2_0(b, at, into, to) {
    const d = half(b, at + 64)
    for (let first = 0; first < 64; first += 32)
      for (let shift = 0; shift < 8; shift += 2)
        for (let j = 0; j < 32; j++) into[to++] = d * (((b[at + first + j] >> shift) & 3) - 1)
  },
  MXFP4(b, at, into, to) {
    const d = 2 ** (b[at] - 128) // half of the power, as the values are twice theirs
    for (let j = 0; j < 16; j++) {
      const q = b[at + 1 + j]
      into[to + j] = d * E2M1[q & 15]
      into[to + 16 + j] = d * E2M1[q >> 4]
    }
  },
}
/**
 * Q4_K, and Q5_K, which has a fifth bit of each number.
 * @param {Uint8Array} b
 * @param {number} at
 * @param {Float32Array} into
 * @param {number} to
 * @param {number} low where the lower 4 bits begin
 * @param {number} high where the fifth bits do; 0 for none
 */
function eightParts(b, at, into, to, low, high) {
  const d = half(b, at),
    m = half(b, at + 2)
  for (let part = 0; part < 8; part++) {
    const s = d * scale(b, at + 4, part),
      l = m * least(b, at + 4, part),
      first = at + low + 32 * (part >> 1),
      shift = 4 * (part & 1)
    for (let j = 0; j < 32; j++) {
      const fifth = high && ((b[at + high + j] >> part) & 1) << 4
      into[to + 32 * part + j] = s * (((b[first + j] >> shift) & 15) | fifth) - l
    }
  }
}
const fifth = (/** @type {Uint8Array} */ b, /** @type {number} */ at, /** @type {number} */ j) =>
  ((b[at + (j >> 3)] >> (j & 7)) & 1) << 4

/**
 * The numbers of a tensor; 16-bit numbers are not widened.
 * @param {string} name
 * @param {string} type
 * @param {number[]} shape
 * @param {Uint8Array<ArrayBuffer>} bytes which begin where their buffer does
 * @returns {NDArray}
 */
export function numbersOf(name, type, shape, bytes) {
  const size = shape.reduce((all, n) => all * n, 1)
  if (type === "F32") return array(new Float32Array(bytes.buffer), shape)
  if (type === "F64") return array(new Float64Array(bytes.buffer), shape, TYPES.F64)
  if (type === "F16" || type === "BF16") return ofHalves(new Uint16Array(bytes.buffer), shape, type)
  const unpack = Object.hasOwn(UNPACK, type) ? UNPACK[type] : null
  if (!unpack)
    throw Problem(`${named(name)} is in ${shorten(type)}, which this page does not unpack`, "run it in a terminal")
  halves ??= ofF16()
  const into = new Float32Array(size),
    block = SMALL.test(type) ? 32 : 256,
    step = (bytes.length / size) * block
  for (let at = 0, to = 0; to < size; at += step, to += block) unpack(bytes, at, into, to)
  return array(into, shape)
}
const SMALL = /^Q\d_[01]$|^IQ4_NL$|^MXFP4$/
