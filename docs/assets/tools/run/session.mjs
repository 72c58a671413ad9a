// A checkpoint that runs: the text so far with its cache, what was seen on the way, and what each number was made of.
// Nothing of a page: that of the small model, a worker and a test of Node load it.

import { named, Problem, py } from "../../problems.mjs"
import { ACTIVATIONS, FEED_FORWARDS, HOLDS, NDArray, NORMS, ROLES } from "../../running.mjs"
import { candidates, drawn } from "../capitals/candidates.mjs"
import { ofChance } from "../capitals/chances.mjs"
import { arrayOf as arrayOfRows } from "../capitals/changes.mjs"
import { endings, lens } from "../capitals/inside.mjs"
import { Seen } from "./seen.mjs"
import { largest, Origins, placeIn, Tape } from "./tape.mjs"

const SHOWN = 10, // words
  MOST_ENDED = 3, // words that the logit lens shows
  ENDING = "e", // begins the names of numbers that the logit lens made
  MAPS = ["c_attn", "out", "c_fc", "down"], // of a layer
  LENGTH = 60n, // characters of a token that are shown
  MOST_SCORES = 2 ** 24 // of all tokens that are kept

/**
 * @typedef {import("../../running.mjs").Checkpoint} Checkpoint
 * @typedef {import("../capitals/asked.mjs").Origin} Origin
 * @typedef {{ done: number, of: number }} Progress bytes that were read, or layers that were computed
 * @typedef {(progress: Progress) => void} Came hears of it
 * @typedef {{ id: number, text: string }} Token
 * @typedef {{ temperature: number, topK: number, topP: number }} How a next token is chosen
 * @typedef {{ scores: NDArray, origins: Origins }} Endings
 * @typedef {Origins & { now: Seen, run: Seen, endings: Endings | null }} Taped of what is shown, the same once more
 *   with each number, and where it would end
 * @typedef {object} Bounds
 * @property {number} layers
 * @property {number} vocabulary
 * @property {number} longest tokens of a text
 * @property {boolean} hasSource whether an encoder reads another text
 * @property {boolean} isSum whether each part of a layer is added to the residual stream
 * @typedef {object} OfFiles
 * @property {string} architecture
 * @property {string} parameters
 * @property {number} bytes of the weights, as they are stored
 * @property {number} [unpacked] bytes of the same in memory, if they are others
 * @property {string[]} types
 * @property {boolean} hasTokenizer
 * @property {string[]} warnings
 * @typedef {Bounds & OfFiles} About
 */

/**
 * What is changed in a run: parts that are off, designs that are left out, and parts that are taken from another text,
 * of as many tokens.
 * @typedef {{ off: string[], without: string[], patches: string[], other: number[] | null }} Changes
 */

/** @template {Bounds} [A=Bounds] */
export class Session {
  /**
   * @param {Checkpoint} model
   * @param {import("./tokens.mjs").Tokenizer | null} tokenizer
   * @param {A} about
   */
  constructor(model, tokenizer, about) {
    this.model = model
    this.tokenizer = tokenizer
    this.about = about
    this.begin()
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
   * @param {Came} [came]
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
    this.source = this.about.hasSource ? source : null
    try {
      this.plain = this.ran("plain", ids, {}, layer)
      const known = this.designs,
        leftOut = without.filter(name => known.some(one => one === name || one.endsWith(`.${name}`))),
        isChanged = off.length + leftOut.length > 0
      this.base = isChanged ? this.ran("base", ids, { off: new Set(off), without: leftOut }, layer) : this.plain
      this.from = other && this.ran("from", other, { without: leftOut }, layer)
      const changes = { off: new Set(off), without: leftOut, from: this.from, patches: new Set(taken) }
      this.now = taken.length ? this.ran("now", ids, changes, layer) : this.base
      if (this.origins?.now !== this.now || this.origins.run.ids.length < ids.length) this.origins = null
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
  lens() {
    if (!this.now || !hasLens(this.now)) return []
    return endings(this.now).map(scores =>
      candidates(scores, { temperature: 1, topK: MOST_ENDED, topP: 1 })
        .slice(0, MOST_ENDED)
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
   * @param {Came} [came]
   */
  moved(layer, at, came = () => {}) {
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
   * @param {Came} [came]
   * @returns {Origin | null}
   */
  origin(place, how, came = () => {}) {
    const { now } = this
    if (!now) return null
    const [kind, ...names] = place.split("/"),
      [a, b, c] = names.map(Number),
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
    if (kind === "part") return known(c) ? this.partOf(this.originsOf(now, came), a, names[1], c) : null
    if (kind === "ended" || kind === "lens") return this.ending(kind, a, b, came)
    const origins = this.originsOf(now, came)
    if (kind === "logit") {
      const { logits } = origins.run
      if (!known(a) || !logits) return null
      const of = origins.of(placeIn(logits, [logits.dims[0] - 1, a]))
      return { ...of, next: [["its probability", `chance/${a}`]] }
    }
    if (kind === "found") return this.foundOf(origins, a, b, c)
    const named = this.placeOf(origins, kind, names)
    if (named === null) return null
    if (named) {
      const of = origins.of(named),
        kept = " Computed once, when its token came in; since then it has been in the cache."
      return kind === "key" ? { ...of, how: `${of.how}${kept}` } : of
    }
    const of = place.startsWith(ENDING) && now.hasLens ? this.endingsOf(now, origins).origins : origins,
      at = of.placeOf(place)
    return at && of.of(at)
  }
  /** The numbers of what is shown, each with what it was made of. */
  originsOf(/** @type {Seen} */ now, /** @type {Came} */ came = () => {}) {
    return (this.origins ??= this.taped(now, came))
  }
  /** A number by the name of its place; NaN if there is none. */
  number(/** @type {string} */ place) {
    if (!this.now) return NaN
    const origins = this.originsOf(this.now),
      [kind, ...names] = place.split("/"),
      at = this.placeOf(origins, kind, names)
    return at ? origins.value(at) : NaN
  }
  /**
   * The place of a number that is named after what it is, as `share/0/3/4/2`: layer, head, and two tokens.
   * @param {Taped} origins
   * @param {string} kind
   * @param {string[]} names
   * @returns {import("./tape.mjs").Place | null | undefined} undefined for other names, null where there is none
   */
  placeOf({ run, tape }, kind, names) {
    const numbers = names.map(Number),
      [a, b, c, d] = numbers
    const steps = (/** @type {(role: any) => boolean} */ is, /** @type {number} */ layer = NaN) =>
      tape.steps.filter(({ frame: { role, layer: its } }) => is(role) && (Number.isNaN(layer) || its === layer))
    const of = (/** @type {any} */ role, /** @type {number} */ layer) => steps(one => one === role, layer)[0]
    const norm = () => steps(role => NORMS.has(role))[a]
    /** @type {Record<string, () => [array: any, index: number[]]>} */
    const known = {
      share: () => [run.layers[a]?.maps[0], [b, c, d]],
      key: () => this.keyPlace(run, a, b, c, d),
      token: () => [of(ROLES.EMBED, NaN)?.result, numbers],
      position: () => [of(ROLES.EMBED_POSITIONS, NaN)?.result, numbers],
      stream: () => [norm()?.frame.args[0], [b, c]],
      norm: () => [norm()?.result, [b, c]],
      map: () => [steps(role => role === ROLES.CONV1D, a)[MAPS.indexOf(names[1])]?.result, [c, d]],
      active: () => [steps(role => ACTIVATIONS.has(role), a)[0]?.result, [b, c]],
      score: () => [of(ROLES.SOFTMAX, a)?.frame.args[0], [b, c, d]],
      product: () => [of(ROLES.SCORES, a)?.result, [b, c, d]], // a score before the mask
      mixed: () => [of(ROLES.WEIGHTED_SUM, a)?.result, [c, b, d]],
    }
    if (!Object.hasOwn(known, kind)) return
    const [array, index] = known[kind](),
      isIn = array && index.length === array.dims.length && index.every((n, axis) => n < array.dims[axis]),
      place = isIn ? placeIn(array, index) : null
    return place && Number.isFinite(place.store[place.at]) ? place : null
  }
  /** @returns {[array: any, index: number[]]} a number of a key in the cache */
  keyPlace(/** @type {Seen} */ run, /** @type {number[]} */ ...[layer, head, token, element]) {
    const share = run.layers[layer]?.maps[0],
      keys = share ? this.keysOf(layer, run) : null
    return [keys, keys && share ? [token, Math.floor(head / (share.dims[0] / keys.dims[1])), element] : []]
  }
  /**
   * A token's probability or logit if the model ended before its first layer, or after one.
   * @param {"ended" | "lens"} kind
   * @param {number} row
   * @param {number} id
   * @param {Came} came
   * @returns {Origin | null}
   */
  ending(kind, row, id, came) {
    const { now } = this
    if (!now || !hasLens(now) || row > now.layers.length || !(id < now.scores.length)) return null
    const { origins, scores } = this.endingsOf(now, this.originsOf(now, came)),
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
   * @param {Taped} origins
   * @param {number} layer
   * @param {string} what
   * @param {number} token
   * @returns {Origin | null}
   */
  partOf(origins, layer, what, token) {
    const { now: run } = origins,
      direction = run.direction(token)
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
        ["Element", "Added", ...(isCentred ? ["Without the mean"] : []), "Direction", "Product"],
        added.map((x, i) => [
          `${i + 1}`,
          this.addedPart(origins, layer, what, i, x),
          ...(isCentred ? [{ value: x - mean }] : []),
          { value: along[i] },
          { value: products[i] },
        ]),
      ),
      then: [],
      value: products.reduce((sum, x) => sum + x, 0),
      next: [],
    }
  }
  /** An element of what a part adds, with its place where that has it as it is. */
  addedPart(
    /** @type {Taped} */ origins,
    /** @type {number} */ layer,
    /** @type {string} */ what,
    /** @type {number} */ i,
    /** @type {number} */ value,
  ) {
    if (/^\d+$/.test(what)) return { value, of: this.outOf(origins, layer) ? `found/${layer}/${what}/${i}` : undefined }
    const role = what === "mlp" ? FEED_FORWARDS : what === "embedding" ? new Set([ROLES.LAYER]) : new Set(),
      step = origins.tape.steps.find(({ frame }) => role.has(frame.role) && frame.layer === layer),
      array = what === "mlp" ? step?.result : step?.frame.args[0],
      place = array?.dims.length === 2 ? placeIn(array, [array.dims[0] - 1, i]) : null
    return place && origins.value(place) === value ? origins.part(place) : { value }
  }
  /** The products of a layer's output projection, if nothing more is done to what the heads add. */
  outOf(/** @type {Taped} */ { run, tape }, /** @type {number} */ layer) {
    const { out, ofHeads } = run.layers[layer] ?? { out: null, ofHeads: [] }
    if (!out || ofHeads.length > 1) return null
    const made = (/** @type {any} */ a) =>
        a instanceof NDArray
          ? tape.made.get(
              placeIn(
                a,
                a.dims.map(() => 0),
              ).store,
            )
          : null,
      last = made(out.result)
    return [last, ...(last?.args ?? []).map(made)].find(one => one?.name === "einsum") ?? null
  }
  /**
   * What a head writes into the residual stream of the last token.
   * @param {Taped} origins
   * @param {number} layer
   * @param {number} head
   * @param {number} i
   * @returns {Origin | null}
   */
  foundOf(origins, layer, head, i) {
    const out = this.outOf(origins, layer),
      [found] = origins.run.layers[layer]?.mixed.at(-1) ?? []
    if (!out || !(i < out.result.dims[1]) || !(head < origins.run.layers[layer].mixed[0].length)) return null
    const all = origins.products(out, [out.result.dims[0] - 1, i]),
      rows = all.rows.slice(head * found.length, (head + 1) * found.length)
    return {
      title: `What head ${head} of layer ${layer} adds to “${origins.text.at(-1)}”, element ${i + 1}`,
      how: "What the head found, times its rows of the output projection, one column, added up.",
      ...largest(all.head, rows),
      then: [],
      value:
        origins.now.part(layer, `${head}`)?.[i] ??
        rows.reduce((sum, row) => sum + /** @type {import("../capitals/asked.mjs").Part} */ (row[3]).value, 0),
      next: [],
    }
  }
  /**
   * What the shift of the last norm and the bias of the head add to the score of a token.
   * @param {Exclude<ReturnType<Seen["direction"]>, string>} direction
   * @param {number} token
   * @returns {Origin}
   */
  shiftOf({ shift, shifts, bias }, token) {
    return {
      title: `The shift of the last norm and the bias, in the logit of “${this.token(token).text}”`,
      how: "The shift times the row of the token, element by element, added up, plus the bias.",
      ...largest(
        ["Element", "Product"],
        shifts.map((value, i) => [`${i + 1}`, { value }]),
      ),
      then: [["Plus the bias", { value: bias }]],
      value: shift,
      next: [],
    }
  }
  /** The steps of a layer, and those outside of the layers. */
  steps(/** @type {number} */ layer, /** @type {Came} */ came = () => {}) {
    return this.now ? this.originsOf(this.now, came).steps(layer) : []
  }
  /** A corner of what a step made. */
  corner(/** @type {number} */ step, /** @type {number} */ head, /** @type {Came} */ came = () => {}) {
    return this.now ? this.originsOf(this.now, came).corner(step, head) : null
  }
  /** @returns {Taped} */
  taped(/** @type {Seen} */ now, /** @type {Came} */ came) {
    let done = 0
    const layer = (/** @type {number} */ n) => came({ done: (done += n), of: this.about.layers }),
      tape = new Tape(),
      changes = { off: now.off, without: now.without, from: now.from, patches: now.patches },
      run = new Seen(this.model, changes, this.source, layer, tape)
    run.add(now.ids, now.ids.length * now.scores.length > MOST_SCORES)
    const stored = new Map(storedIn(this.model.weights)),
      text = now.ids.map(id => this.token(id).text)
    return Object.assign(new Origins(tape, stored, text, id => this.token(id).text), {
      ...{ now, run, endings: null },
    })
  }
}

/** @returns {Iterable<[store: any, { name: string, array: NDArray }]>} what holds each tensor */
function* storedIn(/** @type {any} */ weights) {
  for (const [name, array] of weights.arrays ? weights.arrays() : py.entries(weights))
    yield [array.halves ?? array.data, { name, array }]
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
const likeliest = (/** @type {number[]} */ scores) => scores.reduce((best, x, i) => (x > scores[best] ? i : best), 0)
