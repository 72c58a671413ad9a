// What a number of a run was made of: the numbers that were multiplied or added, each of which can be asked in turn,
// back to the row of the token, and where the number goes. A number is named by its place: `score/0/3/4/2`.

/**
 * @typedef {import("./inside.mjs").Run} Run
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
const KINDS = { logit: 1, norm: 3, stream: 3, map: 4, active: 3, score: 4, share: 4, mixed: 4, token: 2, position: 2 }
const MAPS = ["c_attn", "out", "c_fc", "down"]

const sum = (/** @type {number[]} */ numbers) => numbers.reduce((all, x) => all + x, 0)
const average = (/** @type {number[]} */ numbers) => sum(numbers) / numbers.length

export class Origins {
  /**
   * @param {Run} run
   * @param {string[]} text its words
   * @param {string[]} words of the vocabulary
   */
  constructor(run, text, words) {
    this.run = run
    this.text = text
    this.words = words
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
      kind === "map" && i === 1 ? MAPS.includes(part) : /^\d{1,4}$/.test(part)
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
    return (this.made(this.tensor((n - 1) / 2, "out"))[t] ?? []).map((x, i) => layer.before[t][i] + x)
  }

  /** @returns {number} NaN or undefined if there is none */
  value(/** @type {string} */ place) {
    const [kind, ...parts] = place.split("/"),
      [a, b, c, d] = parts.map(Number),
      layer = this.run.layers[a]
    switch (kind) {
      case "logit":
        return this.run.scores[a]
      case "norm":
        return this.made(this.norm(a))[b]?.[c]
      case "stream":
        return this.stream(a, b)[c]
      case "map":
        return this.made(this.tensor(a, parts[1]))[c]?.[d]
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
    const [kind, ...parts] = place.split("/"),
      [a, b, c, d] = parts.map(Number),
      value = this.value(place),
      numbers = (/** @type {number} */ n) => [...Array(n).keys()],
      element = (/** @type {number} */ i) => `${i + 1}`,
      word = (/** @type {number} */ t) => `“${this.text[t]}”`
    /** @type {Pick<Origin, "then" | "next" | "head" | "rows" | "value">} */
    const rest = { head: [], rows: [], then: [], next: [], value }
    switch (kind) {
      case "logit": {
        const inputs = numbers(this.width).map(i => this.part(`norm/${2 * this.layers}/${this.last}/${i}`)),
          answer = this.stored("wte.weight")[a].map((/** @type {number} */ x) => ({ value: x }))
        return {
          ...rest,
          title: `Logit of “${this.words[a]}”`,
          how: `The last vector, times the row of “${this.words[a]}” in the table of words, added up.`,
          head: ["Element", "Last vector", "Row of the word", "Product"],
          rows: this.products(numbers(this.width).map(element), inputs, answer),
        }
      }
      case "norm": {
        const x = this.stream(a, b),
          mean = average(x),
          size = Math.sqrt(average(x.map(v => (v - mean) ** 2)) + this.eps),
          name = this.norm(a)
        return {
          ...rest,
          title: `Norm of ${word(b)}, element ${c + 1}`,
          how: "The element minus the mean of its vector, divided by its size, times a scale, plus a shift.",
          then: [
            ["Element", this.part(`stream/${a}/${b}/${c}`)],
            ["Mean of the vector", { value: mean }],
            ["Size of the vector: its standard deviation", { value: size }],
            ["Scale", { value: this.stored(`${name}.weight`)[c] }],
            ["Shift", { value: this.stored(`${name}.bias`)[c] }],
          ],
          next: this.afterNorm(a, b),
        }
      }
      case "stream": {
        const title = `Residual stream of ${word(b)}, element ${c + 1}`,
          next = /** @type {Origin["next"]} */ ([["the next norm", `norm/${a}/${b}/${c}`]])
        if (a < 2 * this.layers) next.push(["the next sum of the residual stream", `stream/${a + 1}/${b}/${c}`])
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
          isOff = isSkipped || (!isAttention && this.isOff(`${layer}.mlp`))
        return {
          ...rest,
          title: `${title}, after ${isAttention ? "attention" : "feed-forward"} of layer ${layer}`,
          how: isOff
            ? `What it was before: this ${isSkipped ? "layer" : "part"} is off.`
            : "What it was before, plus what this part adds.",
          then: [
            ["Before", this.part(`stream/${isSkipped ? a - 2 : a - 1}/${b}/${c}`)],
            ["Added", isOff ? { value: 0 } : this.part(`map/${layer}/${isAttention ? "out" : "down"}/${b}/${c}`)],
          ],
          next,
        }
      }
      case "map":
        return this.ofMap(a, parts[1], c, d, rest)
      case "active":
        return {
          ...rest,
          title: `After GELU: ${word(b)}, layer ${a}, element ${c + 1}`,
          how: "GELU of one number: a positive one stays nearly as it is, a negative one nearly vanishes.",
          then: [["Before", this.part(`map/${a}/c_fc/${b}/${c}`)]],
          next: [["the down projection", `map/${a}/down/${b}/0`]],
        }
      case "score": {
        const at = numbers(this.head).map(k => b * this.head + k)
        return {
          ...rest,
          title: `Score: ${word(c)} looks at ${word(d)}, layer ${a}, head ${b}`,
          how: `The query of ${word(c)} times the key of ${word(d)}, added up, then scaled.`,
          head: ["Element", "Query", "Key", "Product"],
          rows: this.products(
            numbers(this.head).map(element),
            at.map(j => this.part(`map/${a}/c_attn/${c}/${j}`)),
            at.map(j => this.part(`map/${a}/c_attn/${d}/${this.width + j}`)),
          ),
          then: [["Times 1 / √d_head", { value: this.head ** -0.5 }]],
          next: [["the attention weights of its row", `share/${a}/${b}/${c}/${d}`]],
        }
      }
      case "share": {
        const all = numbers(c + 1).map(s => this.part(`score/${a}/${b}/${c}/${s}`)),
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
        const seen = numbers(c + 1),
          isOff = this.isOff(`${a}.${b}`)
        return {
          ...rest,
          title: `What head ${b} of layer ${a} found for ${word(c)}, element ${d + 1}`,
          how: isOff
            ? "Nothing: this head is off."
            : "The values of the words that it looks at, times their attention weights, added up.",
          head: ["Word", "Attention weight", "Value", "Product"],
          rows: isOff
            ? []
            : this.products(
                seen.map(s => this.text[s]),
                seen.map(s => this.part(`share/${a}/${b}/${c}/${s}`)),
                seen.map(s => this.part(`map/${a}/c_attn/${s}/${2 * this.width + b * this.head + d}`)),
              ),
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
