// What a number of a run was made of: the numbers that were multiplied or added, each of which can be asked in turn,
// back to the row of the token, and where the number goes. A number is named by its place: `score/0/3/4/2`.

import { ofChance } from "./chances.mjs"
import { direction, endings, parts } from "./inside.mjs"

/**
 * @typedef {import("./inside.mjs").Run} Run
 * @typedef {import("./inside.mjs").Candidate} Candidate
 * @typedef {{ value: number, of?: string }} Part a number, and its place if it was computed
 * @typedef {object} Origin
 * @property {string} title
 * @property {string} how it was made, in words
 * @property {string[]} head of the table of its terms; none if the number is stored
 * @property {[label: string, ...parts: Part[]][]} rows
 * @property {[label: string, part: Part][]} then what is done to the sum of the last column
 * @property {number} value
 * @property {[label: string, place: string][]} next where it goes
 */

// The number of a place's parts, after its name.
/** @type {Record<string, number>} */
const KINDS = {
  ...{ chance: 1, left: 1, logit: 1, lens: 2, ended: 2, part: 3, found: 3 },
  ...{ norm: 3, stream: 3, map: 4, active: 3, score: 4, share: 4, mixed: 4, token: 2, position: 2 },
}
const MAPS = ["c_attn", "out", "c_fc", "down"],
  PARTS = ["bias", "mlp", "token", "position", "taken", "shift"]
const TAKEN = "Taken from the same place in the other sentence."

const sum = (/** @type {number[]} */ numbers) => numbers.reduce((all, x) => all + x, 0)
const average = (/** @type {number[]} */ numbers) => sum(numbers) / numbers.length

const ended = (/** @type {number} */ n) => (n ? `after layer ${n - 1}` : "before the first layer")

export class Origins {
  /**
   * @param {Run} run
   * @param {string[]} text its words
   * @param {string[]} words of the vocabulary
   * @param {Candidate[]} all words, by their probability
   * @param {number} temperature
   */
  constructor(run, text, words, all, temperature) {
    this.run = run
    this.text = text
    this.words = words
    this.all = all
    this.temperature = temperature
    const [{ before, mixed }] = run.layers
    this.width = before[0].length
    this.head = mixed[0][0].length
    this.layers = run.layers.length
    this.eps = Number(run.model.config.norm_eps)
    this.last = text.length - 1
    /** @type {Map<string, any>} */
    this.read = new Map()
  }

  // A stored tensor as lists.
  stored(/** @type {string} */ name) {
    if (!this.read.has(name)) this.read.set(name, this.run.model.weights.read(`transformer.${name}`).lists())
    return this.read.get(name)
  }

  /** @returns {number[][]} */
  made(/** @type {string} */ name) {
    return this.run.made.get(`transformer.${name}`) ?? []
  }

  isOff(/** @type {string} */ part) {
    return this.run.off.has(part)
  }

  /** Whether a place is one of this run. */
  has(/** @type {string} */ place) {
    const [kind, ...parts] = place.split("/")
    if (!Object.hasOwn(KINDS, kind) || parts.length !== KINDS[kind]) return false
    const fits = (/** @type {string} */ part, /** @type {number} */ i) =>
      kind === "map" && i === 1
        ? MAPS.includes(part)
        : /^\d{1,4}$/.test(part) || (kind === "part" && i === 1 && PARTS.includes(part))
    if (!parts.every(fits)) return false
    return Number.isFinite(this.value(place))
  }

  // The name of a norm: two in each layer, and the last.
  norm(/** @type {number} */ n) {
    return n === 2 * this.layers ? "ln_f" : `h.${Math.floor(n / 2)}.ln_${(n % 2) + 1}`
  }

  tensor(/** @type {number} */ layer, /** @type {string} */ map) {
    const name = { c_attn: "attn.c_attn", out: "attn.c_proj", c_fc: "mlp.c_fc", down: "mlp.c_proj" }[map]
    return `h.${layer}.${name}`
  }

  /** The residual stream: before the first layer, then after each attention and each feed-forward network. */
  stream(/** @type {number} */ n, /** @type {number} */ t) {
    if (n > 2 * this.layers) return []
    const layer = this.run.layers[Math.floor(n / 2)]
    if (n === 2 * this.layers) return this.run.layers[this.layers - 1].after[t] ?? []
    if (n % 2 === 0) return layer.before[t] ?? []
    const added = this.made(this.tensor((n - 1) / 2, "out"))[t] ?? []
    return this.isAdded ? added.map((x, i) => layer.before[t][i] + x) : added
  }
  // Whether attention and the feed-forward network are added to what was there.
  get isAdded() {
    return !this.run.without.includes("residual_stream")
  }

  /** The last token's vector after a layer, normalized as after the last. */
  ended(/** @type {number} */ n) {
    if (n > this.layers) return []
    const x = this.stream(2 * n, this.last),
      { mean, size } = this.spread(x)
    if (this.run.isWithoutNorm("ln_f")) return x
    const [scale, shift] = [this.stored("ln_f.weight"), this.stored("ln_f.bias")]
    return x.map((one, i) => ((one - mean) / size) * scale[i] + shift[i])
  }
  spread(/** @type {number[]} */ x) {
    const mean = average(x)
    return { mean, size: Math.sqrt(average(x.map(v => (v - mean) ** 2)) + this.eps) }
  }

  /** What is kept of a computation that takes longer. */
  once(/** @type {string} */ name, /** @type {() => any} */ made) {
    if (!this.read.has(name)) this.read.set(name, made())
    return this.read.get(name)
  }

  /** What a part adds to the residual stream of the last token: its elements, with their places if they have one. */
  added(/** @type {number} */ layer, /** @type {string} */ what) {
    const { run, last } = this,
      all = [...Array(this.width).keys()],
      places = (/** @type {(i: number) => string} */ place) => all.map(i => this.part(place(i))),
      values = (/** @type {number[]} */ numbers) => numbers.map(value => ({ value }))
    if (what === "token" || what === "position") return places(i => `${what}/${last}/${i}`)
    if (what === "taken") {
      const sums = (/** @type {number} */ i) => sum(run.layers.map(({ taken }) => taken[last]?.[i] ?? 0))
      return values(all.map(sums))
    }
    if (what === "bias") return values(this.stored(`${this.tensor(layer, "out")}.bias`))
    if (what !== "mlp") return places(i => `found/${layer}/${what}/${i}`)
    const isOwn = !this.isOff(`${layer}.mlp`) && !this.isTaken(`${layer}.mlp`, last)
    return isOwn ? places(i => `map/${layer}/down/${last}/${i}`) : values(run.layers[layer].feedForward[last])
  }

  isTaken(/** @type {string} */ part, /** @type {number} */ t) {
    return this.run.from !== null && this.run.patches.has(`${part}@${t}`)
  }

  /** @returns {number} NaN or undefined if there is none */
  value(/** @type {string} */ place) {
    const [kind, ...names] = place.split("/"),
      [a, b, c, d] = names.map(Number),
      layer = this.run.layers[a]
    switch (kind) {
      case "chance":
        return this.all.find(({ id }) => id === a)?.share ?? NaN
      case "left":
        return this.all.find(({ id }) => id === a)?.left || NaN
      case "logit":
        return this.run.scores[a]
      case "lens":
        return this.once("lens", () => endings(this.run))[a]?.[b]
      case "ended":
        return this.ended(a)[b]
      case "part":
        return c < this.words.length ? this.addedTo(a, names[1], c) : NaN
      case "found":
        return layer?.mixed[this.last][b] === undefined ? NaN : this.found(a, b, c)
      case "norm":
        return this.made(this.norm(a))[b]?.[c]
      case "stream":
        return this.stream(a, b)[c]
      case "map":
        return this.made(this.tensor(a, names[1]))[c]?.[d]
      case "active":
        return this.made(`h.${a}.mlp.act`)[b]?.[c]
      case "score":
        return layer?.scores[c]?.[b]?.[d]
      case "share":
        return layer?.shares[c]?.[b]?.[d]
      case "mixed":
        return layer?.mixed[c]?.[b]?.[d]
      case "token":
        return this.text[a] === undefined ? NaN : this.stored("wte.weight")[this.run.ids[a]][b]
      default:
        return this.text[a] === undefined ? NaN : this.stored("wpe.weight")[a][b]
    }
  }

  // What a head writes into the residual stream of the last token.
  found(/** @type {number} */ layer, /** @type {number} */ head, /** @type {number} */ i) {
    const matrix = this.stored(`${this.tensor(layer, "out")}.weight`)
    return sum(this.run.layers[layer].mixed[this.last][head].map((v, k) => v * matrix[head * this.head + k][i]))
  }

  // What a part adds to the logit of a word.
  addedTo(/** @type {number} */ layer, /** @type {string} */ what, /** @type {number} */ word) {
    const { layers, ...rest } = /** @type {import("./inside.mjs").Parts} */ (
      this.once(`parts ${word}`, () => parts(this.run, word))
    )
    if (Object.hasOwn(rest, what)) return layer ? NaN : rest[/** @type {keyof typeof rest} */ (what)]
    const { heads, bias, feedForward } = layers[layer] ?? { heads: [], bias: NaN, feedForward: NaN }
    return what === "bias" ? bias : what === "mlp" ? feedForward : (heads[Number(what)] ?? NaN)
  }

  wordOf(/** @type {number} */ id) {
    return this.words[id]
  }

  part(/** @type {string} */ of) {
    return { value: this.value(of), of }
  }

  /**
   * The products of numbers that were computed and others, stored or computed.
   * @param {string[]} labels
   * @param {Part[]} left
   * @param {Part[]} right
   * @returns {Origin["rows"]}
   */
  products(labels, left, right) {
    return labels.map((label, i) => [label, left[i], right[i], { value: left[i].value * right[i].value }])
  }

  /** @returns {Origin} */
  of(/** @type {string} */ place) {
    const [kind, ...names] = place.split("/"),
      [a, b, c, d] = names.map(Number),
      value = this.value(place),
      numbers = (/** @type {number} */ n) => [...Array(n).keys()],
      element = (/** @type {number} */ i) => `${i + 1}`,
      word = (/** @type {number} */ t) => `“${this.text[t]}”`
    /** @type {Pick<Origin, "then" | "next" | "head" | "rows" | "value">} */
    const rest = { head: [], rows: [], then: [], next: [], value }
    switch (kind) {
      case "chance":
      case "left":
        return ofChance(kind, a, this)
      case "lens": {
        const inputs = numbers(this.width).map(i => this.part(`ended/${a}/${i}`)),
          answer = this.stored("wte.weight")[b].map((/** @type {number} */ x) => ({ value: x }))
        return {
          ...rest,
          title: `Logit of “${this.words[b]}”, if the model ended ${ended(a)}`,
          how: "The last word’s vector there, after the last norm, times the row of the word, added up.",
          head: ["Element", "Vector", "Row of the word", "Product"],
          rows: this.products(numbers(this.width).map(element), inputs, answer),
        }
      }
      case "ended":
        return {
          ...rest,
          title: `Last norm, if the model ended ${ended(a)}: ${word(this.last)}, element ${b + 1}`,
          ...this.ofNorm("ln_f", `stream/${2 * a}/${this.last}/${b}`, this.stream(2 * a, this.last), b),
        }
      case "part":
        return this.ofPart(a, names[1], c, rest)
      case "found": {
        const matrix = this.stored(`${this.tensor(a, "out")}.weight`)
        return {
          ...rest,
          title: `What head ${b} of layer ${a} adds to ${word(this.last)}, element ${c + 1}`,
          how: "What the head found, times its rows of the output projection, one column, added up.",
          head: ["Element", "Found", "Column of the matrix", "Product"],
          rows: this.products(
            numbers(this.head).map(element),
            numbers(this.head).map(k => this.part(`mixed/${a}/${b}/${this.last}/${k}`)),
            numbers(this.head).map(k => ({ value: matrix[b * this.head + k][c] })),
          ),
          next: [["the residual stream", `stream/${2 * a + 1}/${this.last}/${c}`]],
        }
      }
      case "logit": {
        const inputs = numbers(this.width).map(i => this.part(`norm/${2 * this.layers}/${this.last}/${i}`)),
          answer = this.stored("wte.weight")[a].map((/** @type {number} */ x) => ({ value: x }))
        return {
          ...rest,
          title: `Logit of “${this.words[a]}”`,
          how: `The last vector, times the row of “${this.words[a]}” in the table of words, added up.`,
          head: ["Element", "Last vector", "Row of the word", "Product"],
          rows: this.products(numbers(this.width).map(element), inputs, answer),
          next: [["its probability", `chance/${a}`]],
        }
      }
      case "norm":
        return {
          ...rest,
          title: `Norm of ${word(b)}, element ${c + 1}`,
          ...this.ofNorm(this.norm(a), `stream/${a}/${b}/${c}`, this.stream(a, b), c),
          next: this.afterNorm(a, b),
        }
      case "stream": {
        const title = `Residual stream of ${word(b)}, element ${c + 1}`,
          next = /** @type {Origin["next"]} */ ([["the next norm", `norm/${a}/${b}/${c}`]])
        if (a < 2 * this.layers) next.push(["the next sum of the residual stream", `stream/${a + 1}/${b}/${c}`])
        if (a % 2 === 0 && a < 2 * this.layers && this.run.layers[a / 2].taken[b])
          return { ...rest, title: `${title}, into layer ${a / 2}`, how: TAKEN, then: [["There", { value }]], next }
        if (!a)
          return {
            ...rest,
            title: `${title}, before the first layer`,
            how: "The embedding of the token plus that of its position.",
            then: [
              [`Row of ${word(b)}`, this.part(`token/${b}/${c}`)],
              ["Row of the position", this.part(`position/${b}/${c}`)],
            ],
            next,
          }
        const layer = Math.floor((a - 1) / 2),
          isAttention = a % 2 === 1,
          isSkipped = !isAttention && this.isOff(`${layer}.layer`),
          isOff = isSkipped || (!isAttention && this.isOff(`${layer}.mlp`)),
          isTaken = !isAttention && !isOff && this.isTaken(`${layer}.mlp`, b),
          own = this.part(`map/${layer}/${isAttention ? "out" : "down"}/${b}/${c}`),
          added = isTaken ? { value: this.run.layers[layer].feedForward[b][c] } : own
        if (!this.isAdded && !isSkipped)
          return {
            ...rest,
            title: `${title}, after ${isAttention ? "attention" : "feed-forward"} of layer ${layer}`,
            how: "Only what this part gives: the residual stream is left out.",
            then: [["Given", isOff ? { value: 0 } : added]],
            next,
          }
        return {
          ...rest,
          title: `${title}, after ${isAttention ? "attention" : "feed-forward"} of layer ${layer}`,
          how: isOff
            ? `What it was before: this ${isSkipped ? "layer" : "part"} is off.`
            : `What it was before, plus what this part adds.${isTaken ? ` That is ${TAKEN.toLowerCase()}` : ""}`,
          then: [
            ["Before", this.part(`stream/${isSkipped ? a - 2 : a - 1}/${b}/${c}`)],
            ["Added", isOff ? { value: 0 } : added],
          ],
          next,
        }
      }
      case "map":
        return this.ofMap(a, names[1], c, d, rest)
      case "active":
        return {
          ...rest,
          title: `After GELU: ${word(b)}, layer ${a}, element ${c + 1}`,
          how: "GELU of one number: a positive one stays nearly as it is, a negative one nearly vanishes.",
          then: [["Before", this.part(`map/${a}/c_fc/${b}/${c}`)]],
          next: [["the down projection", `map/${a}/down/${b}/0`]],
        }
      case "score": {
        const at = numbers(this.head).map(k => b * this.head + k),
          isScaled = !this.run.without.includes("scaling")
        return {
          ...rest,
          title: `Score: ${word(c)} looks at ${word(d)}, layer ${a}, head ${b}`,
          how: `The query of ${word(c)} times the key of ${word(d)}, added up${isScaled ? ", then scaled" : ""}.`,
          head: ["Element", "Query", "Key", "Product"],
          rows: this.products(
            numbers(this.head).map(element),
            at.map(j => this.part(`map/${a}/c_attn/${c}/${j}`)),
            at.map(j => this.part(`map/${a}/c_attn/${d}/${this.width + j}`)),
          ),
          then: isScaled ? [["Times 1 / √d_head", { value: this.head ** -0.5 }]] : [],
          next: [["the attention weights of its row", `share/${a}/${b}/${c}/${d}`]],
        }
      }
      case "share": {
        const all = this.seen(c).map(s => this.part(`score/${a}/${b}/${c}/${s}`)),
          most = Math.max(...all.map(one => one.value))
        return {
          ...rest,
          title: `Attention weight: ${word(c)} looks at ${word(d)}, layer ${a}, head ${b}`,
          how: `Softmax: e to the power of a score minus the largest, over the sum of them. This is of ${word(d)}.`,
          head: ["Word", "Score", "Exponential"],
          rows: all.map((one, s) => [this.text[s], one, { value: Math.exp(one.value - most) }]),
          then: [[`Of ${word(d)}`, { value: Math.exp(all[d].value - most) }]],
          next: [["what the head adds up", `mixed/${a}/${b}/${c}/0`]],
        }
      }
      case "mixed": {
        const seen = this.seen(c),
          isTaken = this.isTaken(`${a}.${b}`, c),
          isOff = this.isOff(`${a}.${b}`) && !isTaken
        return {
          ...rest,
          title: `What head ${b} of layer ${a} found for ${word(c)}, element ${d + 1}`,
          how: isTaken
            ? TAKEN
            : isOff
              ? "Nothing: this head is off."
              : "The values of the words that it looks at, times their attention weights, added up.",
          head: ["Word", "Attention weight", "Value", "Product"],
          rows:
            isOff || isTaken
              ? []
              : this.products(
                  seen.map(s => this.text[s]),
                  seen.map(s => this.part(`share/${a}/${b}/${c}/${s}`)),
                  seen.map(s => this.part(`map/${a}/c_attn/${s}/${2 * this.width + b * this.head + d}`)),
                ),
          then: isTaken ? [["There", { value }]] : [],
          next: [["the output projection", `map/${a}/out/${c}/0`]],
        }
      }
      case "token":
        return {
          ...rest,
          title: `Row of ${word(a)} in the table of words, element ${b + 1}`,
          how: `A trained number: row ${this.run.ids[a]} of the table. It is in the file.`,
          next: [["the residual stream", `stream/0/${a}/${b}`]],
        }
      default:
        return {
          ...rest,
          title: `Row of position ${a} in the table of positions, element ${b + 1}`,
          how: "A trained number. It is in the file.",
          next: [["the residual stream", `stream/0/${a}/${b}`]],
        }
    }
  }

  // The tokens that one looks at.
  seen(/** @type {number} */ t) {
    return [...Array(this.run.isMasked ? t + 1 : this.text.length).keys()]
  }

  /**
   * @param {string} name of the norm
   * @param {string} place of the element
   * @param {number[]} x the vector
   * @param {number} i
   * @returns {Pick<Origin, "how" | "then">}
   */
  ofNorm(name, place, x, i) {
    if (this.run.isWithoutNorm(name))
      return { how: "As it was: this norm is left out.", then: [["Element", this.part(place)]] }
    const { mean, size } = this.spread(x)
    return {
      how: "The element minus the mean of its vector, divided by its size, times a scale, plus a shift.",
      then: [
        ["Element", this.part(place)],
        ["Mean of the vector", { value: mean }],
        ["Size of the vector: its standard deviation", { value: size }],
        ["Scale", { value: this.stored(`${name}.weight`)[i] }],
        ["Shift", { value: this.stored(`${name}.bias`)[i] }],
      ],
    }
  }

  /**
   * @param {number} layer
   * @param {string} what
   * @param {number} word
   * @param {Pick<Origin, "then" | "next" | "head" | "rows" | "value">} rest
   * @returns {Origin}
   */
  ofPart(layer, what, word, rest) {
    const last = `“${this.text[this.last]}”`,
      name = {
        bias: `The bias of the output projection of layer ${layer}`,
        mlp: `The feed-forward network of layer ${layer}`,
        token: `The embedding of ${last}`,
        position: `The embedding of position ${this.last}`,
        taken: "What patches of the residual stream put in",
        shift: "The shift of the last norm",
      }[what]
    const title = `${name ?? `Head ${what} of layer ${layer}`}, in the logit of “${this.words[word]}”`,
      isInLayer = !["token", "position", "taken", "shift"].includes(what)
    if (what === "shift") {
      const isLeftOut = this.run.isWithoutNorm("ln_f"),
        values = (/** @type {number[]} */ numbers) => numbers.map(value => ({ value })),
        shift = values(isLeftOut ? [] : this.stored("ln_f.bias"))
      return {
        ...rest,
        title,
        how: isLeftOut ? "Nothing: this norm is left out." : "Its elements times those of the word’s row, added up.",
        head: ["Element", "Shift", "Row of the word", "Product"],
        rows: this.products(
          shift.map((_, i) => `${i + 1}`),
          shift,
          values(this.stored("wte.weight")[word]),
        ),
      }
    }
    const isReplaced = !this.isAdded && !(what === "mlp" && layer === this.layers - 1),
      isOff = isReplaced || (isInLayer && this.isOff(`${layer}.layer`)),
      { along, isCentred } = direction(this.run, word),
      added = isOff ? [] : this.added(layer, what),
      mean = isCentred && !isOff ? average(added.map(one => one.value)) : 0
    return {
      ...rest,
      title,
      how: isOff
        ? "Nothing: it does not reach the last vector."
        : "What it adds to the residual stream, without its mean, times a direction: the row of the word times the " +
          "scale of the last norm, over the size of the last vector, which is held as it is.",
      head: ["Element", "Added", "Without the mean", "Direction", "Product"],
      rows: added.map((one, i) => {
        const centred = one.value - mean
        return [`${i + 1}`, one, { value: centred }, { value: along[i] }, { value: centred * along[i] }]
      }),
    }
  }

  /** @returns {Origin["next"]} */
  afterNorm(/** @type {number} */ n, /** @type {number} */ t) {
    if (n === 2 * this.layers) return t === this.last ? [["the logits of all words", `logit/${this.best}`]] : []
    const layer = Math.floor(n / 2)
    return [
      n % 2
        ? ["the up projection", `map/${layer}/c_fc/${t}/0`]
        : ["queries, keys and values", `map/${layer}/c_attn/${t}/0`],
    ]
  }

  get best() {
    return this.run.scores.indexOf(Math.max(...this.run.scores))
  }

  /**
   * @param {number} layer
   * @param {string} map
   * @param {number} t
   * @param {number} j
   * @param {Pick<Origin, "then" | "next" | "head" | "rows" | "value">} rest
   * @returns {Origin}
   */
  ofMap(layer, map, t, j, rest) {
    const tensor = this.tensor(layer, map),
      matrix = this.stored(`${tensor}.weight`),
      part = Math.floor(j / this.width),
      head = Math.floor((j % this.width) / this.head),
      at = (j % this.head) + 1,
      word = `“${this.text[t]}”`
    const input = (/** @type {number} */ i) => {
      if (map === "c_attn") return `norm/${2 * layer}/${t}/${i}`
      if (map === "c_fc") return `norm/${2 * layer + 1}/${t}/${i}`
      if (map === "down") return `active/${layer}/${t}/${i}`
      return `mixed/${layer}/${Math.floor(i / this.head)}/${t}/${i % this.head}`
    }
    const isOfHead = map === "c_attn",
      projection = { out: "Output projection", c_fc: "Up projection", down: "Down projection" }[map],
      name = isOfHead
        ? `${["Query", "Key", "Value"][part]} of ${word}, head ${head}, element ${at}`
        : `${projection} of ${word}, element ${j + 1}`
    /** @type {Record<string, [string, string]>} */
    const next = {
      out: ["the residual stream", `stream/${2 * layer + 1}/${t}/${j}`],
      c_fc: ["GELU", `active/${layer}/${t}/${j}`],
      down: ["the residual stream", `stream/${2 * layer + 2}/${t}/${j}`],
    }
    const ofHead = /** @type {[string, string][]} */ ([
      ["the scores of this word", `score/${layer}/${head}/${t}/${t}`],
      ["the scores of the words that look at it", `score/${layer}/${head}/${this.last}/${t}`],
      ["what the head finds for the words that look at it", `mixed/${layer}/${head}/${this.last}/${at - 1}`],
    ])
    return {
      ...rest,
      title: `${name}, layer ${layer}`,
      how:
        "The vector that goes in, times one column of the matrix, added up, plus a bias." +
        (isOfHead && part ? ` Computed once, when ${word} came in; since then it has been in the cache.` : ""),
      head: ["Element", "Input", "Column of the matrix", "Product"],
      rows: this.products(
        matrix.map((/** @type {unknown} */ _, /** @type {number} */ i) => `${i + 1}`),
        matrix.map((/** @type {unknown} */ _, /** @type {number} */ i) => this.part(input(i))),
        matrix.map((/** @type {number[]} */ row) => ({ value: row[j] })),
      ),
      then: [["Bias", { value: this.stored(`${tensor}.bias`)[j] }]],
      next: [isOfHead ? ofHead[part] : next[map]],
    }
  }
}
