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
import { adds_its_branches, arraysOf, Checkpoint, HOLDS, ROLES, STORED } from "../../running.mjs"
import "../../engine/published.mjs"
import { ofChance } from "../capitals/chances.mjs"
import { arrayOf as arrayOfRows } from "../capitals/changes.mjs"
import { candidates, drawn, endings, lens } from "../capitals/inside.mjs"
import { of, opened } from "./folder.mjs"
import { Seen } from "./seen.mjs"
import { largest, Origins, placeIn, Tape } from "./tape.mjs"
import { tokenizerOf } from "./tokens.mjs"

const { Published } = M["engine.published"]
export const MOST_BYTES = 2 ** 32, // of weights
  MOST_TOKENS = 256 // of a text
const SHOWN = 10, // words
  MOST_JOINED = 2 ** 30 // bytes of arrays that are put together from several of a file, and kept
const ENDING = "e" // begins the names of numbers that the logit lens made
const SMALL = 2 ** 20 // elements of a tensor that is read though no parameter: a router's bias, a mask is larger
const LENGTH = 60n // characters of a token that are shown

/**
 * @typedef {import("../../running.mjs").NDArray} NDArray
 * @typedef {import("./folder.mjs").Given} Given
 * @typedef {import("../../safetensors.mjs").Tensor} Tensor
 * @typedef {{ done: number, of: number }} Progress bytes that were read, or layers that were computed
 * @typedef {{ id: number, text: string }} Token
 * @typedef {{ temperature: number, topK: number, topP: number }} How a next token is chosen
 * @typedef {{ scores: NDArray, origins: Origins }} Endings
 * @typedef {Origins & { run: Seen, endings: Endings | null }} Taped
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
 * @property {boolean} isSum whether each part of a layer is added to the residual stream
 * @property {string[]} warnings
 */

/** The tensors of the files under the names that the forward pass asks for. */
class Weights {
  /**
   * @param {any} published
   * @param {[name: string, array: NDArray][]} files
   */
  constructor(published, files) {
    this.published = published
    this.files = files
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
  /** What holds each tensor, of the files and what was put together from them. */
  *stored() {
    for (const [name, array] of [...this.known, ...this.files]) {
      const its = /** @type {any} */ (array)
      yield /** @type {const} */ ([its.halves ?? its.data, { name, array }])
    }
  }
}

/**
 * What is changed in a run: parts that are off, designs that are left out, and parts that are taken from another text,
 * of as many tokens.
 * @typedef {{ off: string[], without: string[], patches: string[], other: number[] | null }} Changes
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
    this.begin()
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
      new Checkpoint(raw, new Weights(published, py.entries(arrays))),
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
        isSum: layersOf(counted.counts.trace).every(adds_its_branches),
        warnings: [...counted.otherwise, ...counted.sizes.map(name => `${name} is not known`)],
      },
    )
  }

  /** Forgets the text. */
  begin() {
    /** @type {Map<string, { name: string, run: Seen }>} */
    this.runs = new Map()
    /** @type {number[] | null} */
    this.source = null
    /** @type {Taped | null} */
    this.origins = null
  }
  get ids() {
    return this.now?.ids ?? []
  }
  get scores() {
    return this.now?.scores ?? []
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
   * Runs a text; what of it stands in a cache is not computed again.
   * @param {number[]} ids
   * @param {number[]} source
   * @param {(progress: Progress) => void} [came]
   * @param {Changes} [changes]
   */
  run(ids, source = [], came = () => {}, { off, without, patches, other } = UNCHANGED) {
    if (!ids.length) throw Problem("the text has no tokens", "write the beginning of a sentence")
    if (ids.length > this.about.longest)
      throw Problem(`the text has ${ids.length} tokens`, `write at most ${this.about.longest}`)
    if (this.about.hasSource && !source.length) throw Problem("the encoder’s text has no tokens", "write one")
    const taken = other?.length === ids.length ? patches.filter(patch => Number(patch.split("@")[1]) < ids.length) : []
    let done = 0
    const runs = 1 + Number(off.length + without.length > 0) + Number(other !== null) + Number(taken.length > 0),
      layer = (/** @type {number} */ n) => came({ done: (done += n), of: runs * this.about.layers })
    this.origins = null
    this.source = this.about.hasSource ? source : null
    try {
      this.plain = this.ran("plain", ids, {}, layer)
      const known = this.designs,
        leftOut = without.filter(name => known.includes(name)),
        isChanged = off.length + leftOut.length > 0
      this.base = isChanged ? this.ran("base", ids, { off: new Set(off), without: leftOut }, layer) : this.plain
      this.from = other && this.ran("from", other, { without: leftOut }, layer)
      const changes = { off: new Set(off), without: leftOut, from: this.from, patches: new Set(taken) }
      this.now = taken.length ? this.ran("now", ids, changes, layer) : this.base
    } catch (error) {
      this.begin()
      this.now = undefined
      throw error
    }
  }
  /**
   * A run of a text, which goes on where an earlier one with the same changes stands.
   * @param {string} role
   * @param {number[]} ids
   * @param {import("./seen.mjs").Changes} changes
   * @param {(layers: number) => void} came
   */
  ran(role, ids, changes, came) {
    const { off = new Set(), without = [], patches = new Set(), from = null } = changes,
      name = JSON.stringify([this.source, [...off], without, [...patches], from?.ids]),
      before = this.runs.get(role)
    const run =
      before?.name === name && before.run.isStartOf(ids) ? before.run : new Seen(this.model, changes, this.source)
    run.came = came
    run.add(ids.slice(run.ids.length))
    if (!run.scores.every(Number.isFinite))
      throw Problem(
        "the logits are not finite numbers",
        without.length
          ? "put back what is left out"
          : "the files hold NaN or infinity, or belong to another config.json",
      )
    this.runs.set(role, { name, run })
    return run
  }

  /** The designs that can be left out, as `Ablation` names them. */
  get designs() {
    const found = [...(this.plain?.designs ?? [])],
      named = new Set(["scaling", "causal_mask"]),
      isEnd = (/** @type {string} */ name) => found.some(other => other.endsWith(`.${name}`)),
      norms = found.filter(name => !named.has(name))
    return [
      ...["scaling", "causal_mask"].filter(name => found.includes(name)),
      ...(norms.length > 1 ? ["norms"] : []),
      ...norms.filter(name => !isEnd(name)), // which would leave out the other, too
      ...(this.about.isSum ? ["residual_stream"] : []),
    ]
  }

  /** The tokens of the text, and how the next one would be chosen. */
  answer(/** @type {How} */ how) {
    const { now, plain, base, from } = this
    if (!now || !plain || !base) throw new Error("no text is read")
    const all = this.candidates(how),
      left = all.filter(one => one.left),
      before = now === plain ? null : this.candidates(how, plain.scores),
      shareBefore = new Map(before?.map(({ id, share }) => [id, share])),
      best = before?.[0]
    return {
      tokens: this.ids.map(id => this.token(id)),
      likely: all
        .slice(0, SHOWN)
        .map(one => ({ ...one, text: this.token(one.id).text, before: shareBefore.get(one.id) ?? null })),
      // The first without the changes, and what became of it.
      first: best
        ? { ...this.token(best.id), share: best.share, place: all.findIndex(({ id }) => id === best.id) + 1 }
        : null,
      other: from ? from.ids.map(id => this.token(id)) : null,
      answers: from ? [base, from].map(run => this.token(likeliest(run.scores))) : null,
      left: left.length,
      kept: left.reduce((sum, { share }) => sum + share, 0),
      vocabulary: all.length,
      heads: now.layers.map(layer => (now.isWhole(layer) ? layer.maps[0].dims[0] : 0)),
      feedForwards: now.layers.map(layer => layer.feedForward.length > 0),
      cached: py
        .entries(now.cache.kept)
        .reduce((n, [, a]) => n + a.dims.reduce((/** @type {number} */ x, /** @type {number} */ y) => x * y, 1), 0),
      isFull: this.ids.length >= this.about.longest,
      designs: this.designs,
      without: now.without,
      hasLens: hasLens(now),
    }
  }
  candidates(/** @type {How} */ how, scores = this.scores) {
    return candidates(scores, { ...how, topK: how.topK || scores.length })
  }
  drawn(/** @type {How} */ how, /** @type {number} */ chance) {
    return drawn(this.candidates(how), chance)
  }

  /**
   * The attention weights of one head: a row for each token, NaN where it cannot look.
   * @param {number} layer
   * @param {number} head
   */
  head(layer, head) {
    return this.now?.map(layer, head) ?? new Float32Array()
  }
  /**
   * The keys of one head in the cache, a row for each of its last tokens; null where a layer keeps something else.
   * @param {number} layer
   * @param {number} head
   * @returns {number[][] | null}
   */
  keys(layer, head) {
    const keys = this.keysOf(layer),
      heads = this.now?.layers[layer].maps[0]?.dims[0] ?? 0
    if (!keys || heads % keys.dims[1]) return null
    const one = Math.floor(head / (heads / keys.dims[1]))
    return keys.lists().map((/** @type {number[][]} */ heads) => heads[one])
  }
  // [S K H], of as many tokens as the layer still sees.
  keysOf(/** @type {number} */ layer, run = this.now) {
    const at = /** @type {any} */ ([BigInt(layer), HOLDS.KEYS, 0n]),
      keys = this.about.hasSource || !run?.cache.kept.has(at) ? null : run.cache.kept.read(at)
    return keys?.dims.length === 3 && keys.dims[0] <= this.ids.length ? keys : null
  }
  /** All heads of a layer, a byte for each weight. */
  small(/** @type {number} */ layer) {
    const n = this.ids.length,
      heads = this.now?.layers[layer].maps[0].dims[0] ?? 0,
      bytes = new Uint8ClampedArray(heads * n * n)
    for (let head = 0; head < heads; head++)
      this.head(layer, head).forEach((x, i) => (bytes[head * n * n + i] = Number.isNaN(x) ? 0 : 255 * x))
    return bytes
  }

  /** The likeliest words if the model ended before its first layer, or after each. */
  lens(most = 3) {
    if (!this.now || !hasLens(this.now)) return []
    return endings(this.now).map(scores =>
      candidates(scores, { temperature: 1, topK: most, topP: 1 })
        .slice(0, most)
        .map(({ id, share }) => ({ ...this.token(id), share })),
    )
  }

  /** What each part adds to the score of a token, or why that cannot be said. */
  parts(/** @type {number} */ token) {
    return this.now?.parts(token) ?? ""
  }

  /**
   * How far each patch moves the answer towards that of the other text: of each part of a layer at a token, and of the
   * residual stream into it at every token.
   * @param {number} layer
   * @param {number} at
   * @param {(progress: Progress) => void} came
   */
  moved(layer, at, came) {
    const { base, from } = this
    if (!base || !from) return null
    const [ours, theirs] = [base, from].map(run => likeliest(run.scores)),
      apart = (/** @type {number[]} */ scores) => scores[theirs] - scores[ours],
      heads = base.layers[layer].mixed[0]?.length ?? 0,
      parts = [...Array(heads).keys(), "mlp", "stream"].map(part => `${layer}.${part}@${at}`),
      stream = base.ids.map((_, t) => `${layer}.stream@${t}`),
      all = [...new Set([...parts, ...stream])]
    let done = 0
    const how = new Map(
      all.map(patch => {
        const { off, without } = base,
          run = new Seen(this.model, { off, without, from, patches: new Set([patch]) }, this.source)
        run.add(base.ids)
        came({ done: ++done, of: all.length })
        return [patch, (apart(run.scores) - apart(base.scores)) / (apart(from.scores) - apart(base.scores))]
      }),
    )
    const of = (/** @type {string[]} */ patches) => patches.map(patch => how.get(patch) ?? 0)
    return { parts: of(parts), stream: of(stream) }
  }

  /**
   * What a number was made of; null if there is none at this place. The text is computed again, to keep each number.
   * @param {string} place
   * @param {How} how
   * @param {(progress: Progress) => void} came
   * @returns {import("../capitals/origin.mjs").Origin | null}
   */
  origin(place, how, came) {
    const { now } = this
    if (!now) return null
    const [kind, ...names] = place.split("/"),
      [a, b, c, d] = names.map(Number),
      all = this.candidates(how)
    if (names.length > 4 || !names.every(name => /^\w{1,12}$/.test(name))) return null
    const wordOf = (/** @type {number} */ id) => this.token(id).text,
      known = (/** @type {number} */ id) => all.find(one => one.id === id)
    const part = (/** @type {string} */ of) => {
      const [kind, id] = of.split("/"),
        one = known(Number(id))
      return { of, value: (kind === "logit" ? one?.score : kind === "left" ? one?.left : one?.share) ?? NaN }
    }
    if (kind === "chance" || kind === "left") {
      const one = known(a)
      if (!one || (kind === "left" && !one.left)) return null
      return ofChance(kind, a, { all, temperature: how.temperature, wordOf, part })
    }
    if (kind === "part") return known(c) ? this.partOf(now, a, names[1], c) : null
    if (!names.every(name => /^\d+$/.test(name))) return null
    if (kind === "ended" || kind === "lens") return this.ending(kind, a, b, came)
    const origins = (this.origins ??= this.taped(now, came)),
      run = origins.run,
      share = run.layers[a]?.maps[0],
      keys = kind === "key" && run.layers[a] ? this.keysOf(a, run) : null
    if (kind === "logit") {
      if (!known(a)) return null
      const of = origins.of(placeIn(run.logits, [0, a]))
      return { ...of, next: [["its probability", `chance/${a}`]] }
    }
    if (kind === "share")
      return share && b < share.dims[0] && c < share.dims[1] && d < share.dims[2]
        ? origins.of(placeIn(share, [b, c, d]))
        : null
    if (kind === "key") {
      const head = keys && share ? Math.floor(b / (share.dims[0] / keys.dims[1])) : NaN
      if (!keys || !(c < keys.dims[0] && head < keys.dims[1] && d < keys.dims[2])) return null
      const of = origins.of(placeIn(keys, [c, head, d]))
      return { ...of, how: `${of.how} Computed once, when its token came in; since then it has been in the cache.` }
    }
    const of = place.startsWith(ENDING) && now.hasLens ? this.endingsOf(now, origins).origins : origins,
      at = of.placeOf(place)
    return at && of.of(at)
  }
  /**
   * A token's probability or logit if the model ended before its first layer, or after one.
   * @param {"ended" | "lens"} kind
   * @param {number} row
   * @param {number} id
   * @param {(progress: Progress) => void} came
   * @returns {import("../capitals/origin.mjs").Origin | null}
   */
  ending(kind, row, id, came) {
    const { now } = this
    if (!now || !hasLens(now) || row > now.layers.length || !(id < now.scores.length)) return null
    const { origins, scores } = this.endingsOf(now, (this.origins ??= this.taped(now, came))),
      all = candidates(scores.lists()[row], { temperature: 1, topK: now.scores.length, topP: 1 }),
      wordOf = (/** @type {number} */ id) => this.token(id).text,
      part = (/** @type {string} */ of) => {
        const id = Number(of.split("/")[1])
        return { value: all.find(one => one.id === id)?.score ?? NaN, of: `lens/${row}/${id}` }
      }
    const of =
        kind === "lens"
          ? origins.of(placeIn(scores, [row, id]))
          : ofChance("chance", id, { all, temperature: 1, wordOf, part: of => part(of) }),
      title = kind === "lens" ? `Logit of “${wordOf(id)}”` : of.title
    return {
      ...of,
      title: `${title}, if the model ended ${origins.text[row]}`,
      next: kind === "lens" ? [["its probability", `ended/${row}/${id}`]] : [],
    }
  }
  /**
   * The run from the residual stream after each layer to the logits, with each number.
   * @param {Seen} now
   * @param {Taped} main
   */
  endingsOf({ stream, without, layers }, main) {
    if (main.endings) return main.endings
    const tape = new Tape(),
      rows = arrayOfRows(stream),
      scores = lens(this.model, rows, { without, others: layers[0].others, tape }),
      steps = main.tape.steps.filter(({ frame }) => frame.role === ROLES.LAYER),
      width = rows.dims[1]
    const place = (/** @type {number} */ at) => {
      const [row, i] = [Math.floor(at / width), at % width],
        x = row ? steps[row - 1].result : steps[0].frame.args[0],
        there = main.source(placeIn(x, [x.dims[0] - 1, i]))
      return main.value(there) === stream[row][i] ? main.name(there) : undefined
    }
    const text = stream.map((_, n) => (n ? `after layer ${n - 1}` : "before the first layer")),
      begun = { prefix: ENDING, store: placeIn(rows, [0, 0]).store, place }
    return (main.endings = { scores, origins: new Origins(tape, main.stored, text, main.wordOf, begun) })
  }
  /**
   * What a part of a layer adds to the score of a token, element by element.
   * @param {Seen} run
   * @param {number} layer
   * @param {string} what
   * @param {number} token
   * @returns {import("../capitals/origin.mjs").Origin | null}
   */
  partOf(run, layer, what, token) {
    const direction = run.direction(token)
    if (typeof direction === "string") return null
    const { along, isCentred, isNormed, factor } = direction,
      added = run.part(layer, what)
    if (what === "shift" && layer === 0) return this.shiftOf(direction, token)
    if (!added) return null
    const inLayer = !["embedding", "between"].includes(what),
      mean = isCentred ? added.reduce((sum, x) => sum + x, 0) / added.length : 0,
      products = added.map((x, i) => (x - mean) * along[i]),
      name = {
        whole: "All",
        bias: "The bias of the output projection",
        mlp: "The feed-forward network",
        embedding: "The embedding of the last token",
        between: "What comes between layers",
      }[what]
    return {
      title:
        `${name ?? `Head ${what}`}${inLayer ? ` of layer ${layer}` : ""}, ` +
        `in the logit of “${this.token(token).text}”`,
      how:
        `What it adds to the residual stream${isCentred ? ", without its mean," : ""} times a direction: the row of ` +
        `the token${factor === 1 ? "" : ", times the factor of all logits"}` +
        (isNormed
          ? ", times the scale of the last norm, over the size of the last vector, which is held as it is."
          : "."),
      ...largest(
        ["Element", "Added", "Direction", "Product"],
        added.map((x, i) => [`${i + 1}`, { value: x - mean }, { value: along[i] }, { value: products[i] }]),
      ),
      then: [],
      value: products.reduce((sum, x) => sum + x, 0),
      next: [],
    }
  }
  /**
   * What the shift of the last norm and the bias of the head add to the score of a token.
   * @param {Exclude<ReturnType<Seen["direction"]>, string>} direction
   * @param {number} token
   * @returns {import("../capitals/origin.mjs").Origin}
   */
  shiftOf({ shift, shifts, bias }, token) {
    return {
      title: `The shift of the last norm and the bias, in the logit of “${this.token(token).text}”`,
      how: "The shift times the row of the token, element by element, added up, plus the bias.",
      ...largest(
        ["Element", "Product"],
        shifts.map((value, i) => [`${i + 1}`, { value }]),
      ),
      then: [["Bias", { value: bias }]],
      value: shift,
      next: [],
    }
  }
  /** The steps of a layer, and those outside of the layers. */
  steps(/** @type {number} */ layer, /** @type {(progress: Progress) => void} */ came) {
    return this.now ? (this.origins ??= this.taped(this.now, came)).steps(layer) : []
  }
  /** A corner of what a step made. */
  corner(/** @type {number} */ step, /** @type {number} */ head, /** @type {(progress: Progress) => void} */ came) {
    return this.now ? (this.origins ??= this.taped(this.now, came)).corner(step, head) : null
  }
  /** @returns {Taped} */
  taped(/** @type {Seen} */ now, /** @type {(progress: Progress) => void} */ came) {
    let done = 0
    const layer = (/** @type {number} */ n) => came({ done: (done += n), of: this.about.layers }),
      tape = new Tape(),
      changes = { off: now.off, without: now.without, from: now.from, patches: now.patches },
      run = new Seen(this.model, changes, this.source, layer, tape)
    run.add(now.ids)
    const stored = new Map(/** @type {any} */ (this.model.weights).stored()),
      text = now.ids.map(id => this.token(id).text)
    return Object.assign(new Origins(tape, stored, text, id => this.token(id).text), { run, endings: null })
  }
}

// Whether the vectors that layers give are all that the logits are made of.
function hasLens(/** @type {Seen} */ run) {
  if (!run.hasLens || !run.layers[0].others.length) return run.hasLens
  try {
    return (
      endings(run)
        .at(-1)
        ?.every((x, i) => Math.abs(x - run.scores[i]) < 1e-4) ?? false
    )
  } catch {
    return false // what else they give is of another shape
  }
}
/** @type {Changes} */
const UNCHANGED = { off: [], without: [], patches: [], other: null }
const layersOf = (/** @type {any} */ trace) =>
  [...trace.root.walk()].filter((/** @type {any} */ { role }) => role === ROLES.LAYER)
const likeliest = (/** @type {number[]} */ scores) => scores.reduce((best, x, i) => (x > scores[best] ? i : best), 0)
const gb = (/** @type {number} */ bytes) => `${(bytes / 1e9).toFixed(1)} GB`
/** @returns {Engine.Keys} */
function keysOf(/** @type {Engine.Json} */ value) {
  if (value instanceof py.Dict) return value
  throw Problem("is not a JSON object", "give a whole config.json")
}
