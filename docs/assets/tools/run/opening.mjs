// A checkpoint from a reader's disk: what its files hold, as a session that runs texts.

import {
  architectureOf,
  described,
  layoutOf,
  model as modelOf,
  named,
  parsed,
  Problem,
  py,
  tensorsOf,
} from "../../model.mjs"
import { M } from "../../engine/base.mjs"
import { adds_its_branches, arraysOf, Checkpoint, ROLES, STORED } from "../../running.mjs"
import "../../engine/published.mjs"
import { ggufsOf, of, opened } from "./folder.mjs"
import { Session } from "./session.mjs"
import { tokenizerOf } from "./tokens.mjs"

/**
 * @typedef {import("../../running.mjs").NDArray} NDArray
 * @typedef {import("./folder.mjs").Given} Given
 * @typedef {import("./session.mjs").Progress} Progress
 * @typedef {import("../../safetensors.mjs").Tensor} Tensor
 */

const { Published } = M["engine.published"]
const MOST_BYTES = 2 ** 32, // of weights
  MOST_TOKENS = 256, // of a text
  MOST_JOINED = 2 ** 30, // bytes of arrays that are put together from several of a file, and kept
  SMALL = 2 ** 20 // elements of a tensor that is read though no parameter: a router's bias, a mask is larger

/** The tensors of the files under the names that the forward pass asks for, kept once they are put together. */
export class Weights {
  /** @type {Map<string, NDArray>} */
  known = new Map()
  joined = 0
  /**
   * @param {any} ours
   * @param {[name: string, array: NDArray][]} files
   * @param {(name: string, array: NDArray) => number} joinedOf the bytes that one takes besides the files
   */
  constructor(ours, files, joinedOf = () => 0) {
    this.ours = ours
    this.files = files
    this.joinedOf = joinedOf
  }
  read = (/** @type {string} */ name) => this.__getitem__(name)
  __getitem__(/** @type {string} */ name) {
    const known = this.known.get(name)
    if (known) return known
    const array = this.ours.__getitem__(name),
      bytes = this.joinedOf(name, array)
    if (this.joined + bytes <= MOST_JOINED) {
      this.joined += bytes
      this.known.set(name, array)
    }
    return array
  }
  /** Of the files, and what was put together from them. */
  arrays() {
    return [...this.known, ...this.files]
  }
}

/**
 * Opens a folder, or a GGUF file, and reads its weights.
 * @param {Given[]} given
 * @param {(progress: Progress) => void} [came]
 * @returns {Promise<Session<import("./session.mjs").About>>}
 */
export async function open(given, came = () => {}) {
  const ggufs = ggufsOf(given)
  return ggufs.length ? (await import("./gguf.mjs")).open(ggufs, came) : ofFolder(given, came)
}
/** @param {Given[]} given @param {(progress: Progress) => void} came */
async function ofFolder(given, came) {
  const { config, tokenizer, tensors } = await opened(given),
    raw = await of("config.json", async () => described(keysOf(parsed(config)))),
    counted = runnable(raw),
    sizes = counted.config.symbols
  const shapes = new Map([...tensors].map(([name, { shape }]) => [name, shape])),
    layout = layoutOf(counted, shapes),
    ours = tensorsOf(counted),
    places = ours.map(([name]) => layout.find(name))
  ours.forEach(([name, shape], i) => {
    const place = places[i],
      its = place && layout.shape(place)
    if (!place)
      throw Problem(`the files have no tensor ${named(name)}`, "check that config.json belongs to these files")
    if (its && its.join() !== shape.join())
      throw Problem(
        `${named(name)} is [${its.join(", ")}] in the file and [${shape.join(", ")}] by config.json`,
        "check that config.json belongs to these files",
      )
  })
  const used = new Set(places.flatMap(place => place?.cuts.map(cut => cut.stored) ?? [])),
    isRead = (/** @type {string} */ name, /** @type {Tensor} */ { shape, dtype }) =>
      used.has(name) || (Object.hasOwn(STORED, dtype) && shape.reduce((n, size) => n * size, 1) < SMALL),
    read = new Map([...tensors].filter(([name, tensor]) => isRead(name, tensor))),
    bytes = [...read.values()].reduce((all, { start, end }) => all + end - start, 0)
  checkBytes(bytes)
  let done = 0
  const arrays = await arraysOf(read, slice => came({ done: (done += slice), of: bytes }))
  const arrayOf = (/** @type {string} */ name) => {
    if (arrays.has(name)) return arrays.read(name)
    throw Problem(`${named(name)} is too large to be no parameter`, "run it in a terminal: every-parameter run")
  }
  const files = {
    __getitem__: arrayOf,
    member: (/** @type {string} */ name, /** @type {bigint} */ at) => arrayOf(name).__getitem__(at),
  }
  const d_head = sizes.read("d_head", undefined) ?? null,
    published = Published(files, new py.Dict([...shapes].map(([n, s]) => [n, s.map(BigInt)])), architectureOf(raw))
  published.d_head = d_head
  const joinedOf = (/** @type {string} */ name, /** @type {any} */ { size }) => {
    const place = published.layout.find(name)
    return place.cuts.length > 1 || place.is_stack ? 4 * Number(size) : 0
  }
  const vocabulary = Number(sizes.read("vocab_size", undefined) ?? 0)
  return new Session(
    new Checkpoint(raw, new Weights(published, py.entries(arrays), joinedOf)),
    tokenizer && (await tokenizerOf(tokenizer, vocabulary)),
    aboutOf(counted, {
      ...{ bytes, types: [...new Set([...read.values()].map(({ dtype }) => dtype))], warnings: [] },
      hasTokenizer: tokenizer !== null,
    }),
  )
}

/**
 * The model of a config; throws a problem if it predicts no next token of a text.
 * @param {Engine.Keys} raw
 */
export function runnable(raw) {
  const counted = modelOf(raw)
  if (counted.head)
    throw Problem(`${counted.head.name} (${counted.head.said}) scores no next token`, "choose one with its own head")
  if (counted.config.symbols.has("n_source") && counted.config.source_shape !== null)
    throw Problem("reads a spectrogram or an image beside the text", "run it in a terminal: every-parameter run")
  return counted
}
export function checkBytes(/** @type {number} */ bytes) {
  if (bytes <= MOST_BYTES) return
  throw Problem(`its weights have ${gb(bytes)}, and this page reads at most ${gb(MOST_BYTES)}`, "run it in a terminal")
}
/**
 * What is said of a checkpoint, and bounds its texts.
 * @param {Engine.Model} counted
 * @param {Pick<import("./session.mjs").OfFiles, "bytes" | "types" | "hasTokenizer" | "warnings" | "unpacked">} files
 * @returns {import("./session.mjs").About}
 */
export function aboutOf(counted, files) {
  const sizes = counted.config.symbols,
    size = (/** @type {string} */ name) => Number(sizes.read(name, undefined) ?? 0)
  return {
    ...files,
    architecture: counted.architecture,
    parameters: py.format(counted.counts.total, ","),
    layers: size("n_layers"),
    vocabulary: size("vocab_size"),
    longest: Math.min(MOST_TOKENS, size("n_positions") || MOST_TOKENS),
    hasSource: sizes.has("n_source"),
    isSum: layersOf(counted.counts.trace).every(adds_its_branches),
    warnings: [...counted.otherwise, ...counted.sizes.map(name => `${name} is not known`), ...files.warnings],
  }
}

const layersOf = (/** @type {any} */ trace) =>
  [...trace.root.walk()].filter((/** @type {any} */ { role }) => role === ROLES.LAYER)
const gb = (/** @type {number} */ bytes) => `${(bytes / 1e9).toFixed(1)} GB`
/** @returns {Engine.Keys} */
function keysOf(/** @type {Engine.Json} */ value) {
  if (value instanceof py.Dict) return value
  throw Problem("is not a JSON object", "give a whole config.json")
}
