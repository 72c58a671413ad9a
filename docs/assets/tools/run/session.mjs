// A checkpoint from a reader's disk that runs: its files, the text so far with its cache, and what was seen on the way.
// Nothing of a page: a worker and a test of Node load it.

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
import { arraysOf, Cache, Checkpoint, ROLES, STORED, unwatched, wholeNumbers } from "../../running.mjs"
import "../../engine/published.mjs"
import { candidates, drawn, lens } from "../capitals/inside.mjs"
import { of, opened } from "./folder.mjs"
import { tokenizerOf } from "./tokens.mjs"

const { Published } = M["engine.published"]
export const MOST_BYTES = 2 ** 32, // of weights
  MOST_TOKENS = 256 // of a text
const SHOWN = 10, // words
  MOST_JOINED = 2 ** 30 // bytes of arrays that are put together from several of a file, and kept
const SMALL = 2 ** 20 // elements of a tensor that is read though no parameter: a router's bias, a mask is larger
const LENGTH = 60n // characters of a token that are shown

/**
 * @typedef {import("../../running.mjs").NDArray} NDArray
 * @typedef {import("./folder.mjs").Given} Given
 * @typedef {import("../../safetensors.mjs").Tensor} Tensor
 * @typedef {{ done: number, of: number }} Progress bytes that were read, or layers that were computed
 * @typedef {{ id: number, text: string }} Token
 * @typedef {{ temperature: number, topK: number, topP: number }} How a next token is chosen
 * @typedef {object} About
 * @property {string} architecture
 * @property {string} parameters
 * @property {number} bytes of the weights, as they are stored
 * @property {string[]} types
 * @property {number} layers
 * @property {number} vocabulary
 * @property {number} longest tokens of a text
 * @property {boolean} hasTokenizer
 * @property {boolean} hasSource whether an encoder reads another text
 * @property {string[]} warnings
 */

/** The tensors of the files under the names that the forward pass asks for. */
class Weights {
  /** @param {any} published */
  constructor(published) {
    this.published = published
    /** @type {Map<string, NDArray>} */
    this.known = new Map()
    this.joined = 0
  }
  /** @param {string} name */
  __getitem__(name) {
    const known = this.known.get(name)
    if (known) return known
    const array = this.published.__getitem__(name),
      place = this.published.layout.find(name),
      bytes = place.cuts.length > 1 || place.is_stack ? 4 * Number(array.size) : 0
    if (this.joined + bytes <= MOST_JOINED) {
      this.joined += bytes
      this.known.set(name, array)
    }
    return array
  }
  /** @param {string} name */
  read(name) {
    return this.__getitem__(name)
  }
}

/**
 * What a layer made of the tokens so far: the attention weights of each step, [heads, new tokens, seen tokens].
 * @typedef {{ maps: NDArray[], after: Float32Array | null }} Layer
 */

export class Session {
  /**
   * @param {Checkpoint} model
   * @param {import("./tokens.mjs").Tokenizer | null} tokenizer
   * @param {About} about
   */
  constructor(model, tokenizer, about) {
    this.model = model
    this.tokenizer = tokenizer
    this.about = about
    /** @type {number[]} */
    this.ids = []
    /** @type {number[]} */
    this.source = []
    this.begin([])
  }

  /**
   * Opens a folder and reads its weights.
   * @param {Given[]} given
   * @param {(progress: Progress) => void} [came]
   */
  static async open(given, came = () => {}) {
    const { config, tokenizer, tensors } = await opened(given),
      raw = await of("config.json", async () => described(keysOf(parsed(config)))),
      counted = modelOf(raw)
    if (counted.head)
      throw Problem(`${counted.head.name} (${counted.head.said}) scores no next token`, "choose one with its own head")
    const sizes = counted.config.symbols,
      size = (/** @type {string} */ name) => Number(sizes.read(name, undefined) ?? 0)
    const hasSource = sizes.has("n_source")
    if (hasSource && counted.config.source_shape !== null)
      throw Problem("reads a spectrogram or an image beside the text", "run it in a terminal: every-parameter run")
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
    if (bytes > MOST_BYTES)
      throw Problem(
        `its weights have ${gb(bytes)}, and this page reads at most ${gb(MOST_BYTES)}`,
        "run it in a terminal",
      )
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
    const vocabulary = size("vocab_size")
    return new Session(
      new Checkpoint(raw, new Weights(published)),
      tokenizer && (await tokenizerOf(tokenizer, vocabulary)),
      {
        architecture: counted.architecture,
        parameters: py.format(counted.counts.total, ","),
        bytes,
        types: [...new Set([...read.values()].map(({ dtype }) => dtype))],
        layers: size("n_layers"),
        vocabulary,
        longest: Math.min(MOST_TOKENS, size("n_positions") || MOST_TOKENS),
        hasTokenizer: tokenizer !== null,
        hasSource,
        warnings: [...counted.otherwise, ...counted.sizes.map(name => `${name} is not known`)],
      },
    )
  }

  /** Forgets the text; `source` is what an encoder reads. */
  begin(/** @type {number[]} */ source) {
    this.ids = []
    this.source = source
    this.cache = Cache(0n, undefined, 0n, undefined, 0n, this.about.hasSource ? wholeNumbers(source) : undefined)
    /** @type {number[]} */
    this.scores = []
    /** @type {Map<string, Layer>} by the prefix of their weights */
    this.layers = new Map()
    /** @type {Float32Array | null} the residual stream of the last token before the first layer */
    this.before = null
  }

  /** A text, or token ids as 464,3139. @returns {number[]} */
  encode(/** @type {string} */ text) {
    if (this.tokenizer) return this.tokenizer.encode(text)
    return text
      .split(",")
      .filter(part => part.trim())
      .map(part => {
        const id = /^\s*\d{1,9}\s*$/.test(part) ? Number(part) : NaN
        if (id < this.about.vocabulary) return id
        throw Problem(`“${named(part)}” is no token id`, `write ids from 0 to ${this.about.vocabulary - 1}`)
      })
  }
  /** @returns {Token} */
  token(/** @type {number} */ id) {
    return { id, text: this.tokenizer ? named(this.tokenizer.decode(id), LENGTH) : `${id}` }
  }

  /**
   * Runs a text; what of it stands in the cache is not computed again.
   * @param {number[]} ids
   * @param {number[]} source
   * @param {(progress: Progress) => void} [came]
   */
  run(ids, source = [], came = () => {}) {
    if (!ids.length) throw Problem("the text has no tokens", "write the beginning of a sentence")
    if (ids.length > this.about.longest)
      throw Problem(`the text has ${ids.length} tokens`, `write at most ${this.about.longest}`)
    if (this.about.hasSource && !source.length) throw Problem("the encoder’s text has no tokens", "write one")
    const isStart = source.join() === this.source.join() && this.ids.every((id, i) => id === ids[i])
    // What keeps nothing looks both ways: it gets the whole text.
    if (!isStart || this.ids.length >= ids.length || !this.cache.kept.map.size) this.begin(source)
    const fresh = ids.slice(this.ids.length)
    this.seen = { tokens: fresh.length, done: 0, came }
    /** @type {Layer | null} */
    this.at = null
    try {
      const { scores, cache } = this.model.run(fresh, { cache: this.cache, last: true, watch: this })
      const numbers = Array.from(scores.flat(), Number)
      if (!numbers.every(Number.isFinite))
        throw Problem(
          "the logits are not finite numbers",
          "the files hold NaN or infinity, or belong to another config.json",
        )
      this.scores = numbers
      this.cache = cache
      this.ids = [...ids]
    } catch (error) {
      this.begin([])
      throw error
    }
  }

  /**
   * Observes a step.
   * @param {Engine.Step} step
   * @param {any[]} args
   * @param {Engine.Dict<string, any>} kwargs
   */
  call({ function: f, role }, args, kwargs) {
    const around = this.at,
      isLayer = role === ROLES.LAYER
    if (isLayer) {
      const prefix = args.find(one => typeof one?.prefix === "string")?.prefix ?? ""
      if (!this.layers.size) this.before = lastRow(args[0])
      this.at = this.layers.get(prefix) ?? { maps: [], after: null }
      this.layers.set(prefix, this.at)
    }
    const result = py.apply(f, args, Object.fromEntries(py.entries(kwargs)))
    if (isLayer && this.at && this.seen) {
      this.at.after = lastRow(result)
      this.at = around
      this.seen.came({ done: ++this.seen.done, of: this.about.layers })
    } else if (this.at && (role === ROLES.SOFTMAX || role === ROLES.SOFTMAX_WITH_SINK)) this.keep(this.at, result)
    return result
  }
  /**
   * A recurrence over the tokens, as without a tracer.
   * @param {(state: any, ...rows: any[]) => [any, any]} body
   * @param {any} state
   * @param {any[]} xs
   */
  repeat(body, state, xs) {
    return unwatched(() => M["engine.ops.recurrence"].scan(body, state, xs))
  }
  // The attention weights of the new tokens, if they are some; the first of a layer.
  keep(/** @type {Layer} */ layer, /** @type {NDArray} */ shares) {
    const { dims } = shares,
      end = this.ids.length + (this.seen?.tokens ?? 0),
      have = layer.maps.reduce((n, map) => n + map.dims[1], 0)
    if (dims?.length === 3 && dims[1] === this.seen?.tokens && dims[2] <= end && dims[2] >= dims[1] && have < end)
      layer.maps.push(shares)
  }

  /** The layers with attention weights of the whole text. */
  get attending() {
    return [...this.layers.values()].filter(
      ({ maps }) => maps.length && maps.reduce((n, map) => n + map.dims[1], 0) === this.ids.length,
    )
  }

  /** The tokens of the text, and how the next one would be chosen. */
  answer(/** @type {How} */ how) {
    const all = candidates(this.scores, { ...how, topK: how.topK || this.scores.length }),
      left = all.filter(one => one.left)
    return {
      tokens: this.ids.map(id => this.token(id)),
      likely: all.slice(0, SHOWN).map(one => ({ ...one, text: this.token(one.id).text })),
      left: left.length,
      kept: left.reduce((sum, { share }) => sum + share, 0),
      vocabulary: all.length,
      heads: this.attending.map(({ maps }) => maps[0].dims[0]),
      cached: py
        .entries(this.cache.kept)
        .reduce((n, [, a]) => n + a.dims.reduce((/** @type {number} */ x, /** @type {number} */ y) => x * y, 1), 0),
      isFull: this.ids.length >= this.about.longest,
      hasLens: this.hasLens,
    }
  }
  drawn(/** @type {How} */ how, /** @type {number} */ chance) {
    return drawn(candidates(this.scores, { ...how, topK: how.topK || this.scores.length }), chance)
  }

  /**
   * The attention weights of one head: a row for each token, NaN where it cannot look.
   * @param {number} layer among those that attend
   * @param {number} head
   */
  head(layer, head) {
    const n = this.ids.length,
      result = new Float32Array(n * n).fill(NaN)
    let row = 0
    for (const { dims, ...map } of this.attending[layer].maps.map(whole)) {
      const [, T, S] = dims,
        first = row + T - S
      for (let t = 0; t < T; t++)
        for (let s = 0; s < S; s++) {
          const share = Number(map.numbers[(head * T + t) * S + s])
          if (share || first + s <= row + t) result[(row + t) * n + first + s] = share
        }
      row += T
    }
    return result
  }
  /** All heads of a layer, a byte for each weight. */
  small(/** @type {number} */ layer) {
    const n = this.ids.length,
      heads = this.attending[layer].maps[0].dims[0],
      bytes = new Uint8ClampedArray(heads * n * n)
    for (let head = 0; head < heads; head++)
      this.head(layer, head).forEach((x, i) => (bytes[head * n * n + i] = Number.isNaN(x) ? 0 : 255 * x))
    return bytes
  }

  get hasLens() {
    return !this.about.hasSource && this.before !== null && [...this.layers.values()].every(({ after }) => after)
  }
  /** The likeliest words if the model ended before its first layer, or after each. */
  lens(most = 3) {
    const rows = [this.before, ...[...this.layers.values()].map(({ after }) => after)].map(row => [...(row ?? [])])
    return lens(this.model, rows).map(scores =>
      candidates(scores, { temperature: 1, topK: most, topP: 1 })
        .slice(0, most)
        .map(({ id, share }) => ({ ...this.token(id), share })),
    )
  }
}

// The last row of the residual stream; null where a layer has something else.
function lastRow(/** @type {any} */ x) {
  if (!Array.isArray(x?.dims) || x.dims.length !== 2) return null
  return Float32Array.from(x.flat(), Number).slice(-x.dims[1])
}
const whole = (/** @type {NDArray} */ map) => ({ dims: map.dims, numbers: map.flat() })
const gb = (/** @type {number} */ bytes) => `${(bytes / 1e9).toFixed(1)} GB`
/** @returns {Engine.Keys} */
function keysOf(/** @type {Engine.Json} */ value) {
  if (value instanceof py.Dict) return value
  throw Problem("is not a JSON object", "give a whole config.json")
}
