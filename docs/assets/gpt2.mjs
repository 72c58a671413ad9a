// GPT-2 on real numbers, one token at a time with its cache: what macros/engine/architectures/gpt2.py does, for a model
// that is small enough for a page. A test holds both equal. The engine that the build compiles from Python computes
// with shapes; real arrays would take a NumPy in the browser besides, many times as large as this file.

/**
 * @typedef {"n_layer" | "n_head" | "n_embd" | "n_positions" | "vocab_size" | "layer_norm_epsilon"} Key of a config
 * @typedef {Record<Key, number>} Config
 * @typedef {{ keys: number[][], values: number[][] }[]} Cache of each layer, for each of the tokens so far
 */

/**
 * The tensors of a safetensors file in bfloat16, as float32, each by its name.
 * @param {ArrayBuffer} buffer
 * @returns {Record<string, Float32Array>}
 */
export function tensors(buffer) {
  const length = Number(new DataView(buffer).getBigUint64(0, true))
  /** @type {Record<string, { dtype: string, data_offsets: [number, number] }>} */
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)))
  delete head.__metadata__
  return Object.fromEntries(
    Object.entries(head).map(
      ([
        name,
        {
          dtype,
          data_offsets: [start, end],
        },
      ]) => {
        if (dtype !== "BF16") throw new Error(`${name} is stored as ${dtype}`)
        const halves = new Uint16Array(buffer.slice(8 + length + start, 8 + length + end))
        return [name, new Float32Array(Uint32Array.from(halves, half => half << 16).buffer)]
      },
    ),
  )
}

/**
 * @param {Float32Array} table
 * @param {number} i
 * @param {number} width
 */
const row = (table, i, width) => table.subarray(i * width, (i + 1) * width)
const sum = (/** @type {number[]} */ numbers) => numbers.reduce((total, x) => total + x, 0)
/**
 * @param {number[]} a
 * @param {ArrayLike<number>} b
 */
const plus = (a, b) => a.map((x, i) => x + b[i])
/**
 * @param {number[]} a
 * @param {ArrayLike<number>} b
 */
const dot = (a, b) => sum(a.map((x, i) => x * b[i]))

/** @param {number[]} scores */
export function softmax(scores, temperature = 1) {
  const most = Math.max(...scores),
    powers = scores.map(x => Math.exp((x - most) / temperature)),
    total = sum(powers)
  return powers.map(x => x / total)
}

// Weak where negative: GELU in its tanh form.
const gelu = (/** @type {number} */ x) => x * 0.5 * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x * x * x)))

export class GPT2 {
  /**
   * @param {Config} config
   * @param {Record<string, Float32Array>} weights
   */
  constructor(config, weights) {
    this.c = config
    this.w = weights
    this.heads = config.n_head
    this.width = config.n_embd / config.n_head
  }

  /**
   * A cache without rows.
   * @returns {Cache}
   */
  empty() {
    return Array.from({ length: this.c.n_layer }, () => ({ keys: [], values: [] }))
  }

  /**
   * @param {number[]} x
   * @param {string} name
   */
  norm(x, name) {
    const mean = sum(x) / x.length,
      centred = x.map(v => v - mean)
    const size = Math.sqrt(dot(centred, centred) / x.length + this.c.layer_norm_epsilon)
    const scale = this.w[`${name}.weight`],
      shift = this.w[`${name}.bias`]
    return centred.map((v, i) => (v / size) * scale[i] + shift[i])
  }

  /**
   * A vector times a matrix stored [in, out], and a bias.
   * @param {number[]} x
   * @param {string} name
   */
  map(x, name) {
    const bias = this.w[`${name}.bias`],
      matrix = this.w[`${name}.weight`],
      y = Array.from(bias)
    x.forEach((v, i) => {
      for (let o = 0; o < y.length; o++) y[o] += v * matrix[i * y.length + o]
    })
    return y
  }

  /**
   * One token after those in the cache, which gets its row: the stream before the first layer and after each, and the
   * shares that each head of each layer gives to the tokens so far.
   * @param {number} id
   * @param {Cache} cache
   */
  step(id, cache) {
    const D = this.c.n_embd,
      place = cache[0].keys.length
    let x = plus(
      Array.from(row(this.w["transformer.wte.weight"], id, D)),
      row(this.w["transformer.wpe.weight"], place, D),
    )
    const stream = [x]
    /** @type {number[][][]} */
    const shares = []
    cache.forEach((kept, layer) => {
      const at = `transformer.h.${layer}`,
        qkv = this.map(this.norm(x, `${at}.ln_1`), `${at}.attn.c_attn`)
      kept.keys.push(qkv.slice(D, 2 * D))
      kept.values.push(qkv.slice(2 * D))
      /** @type {number[]} */
      const mixed = []
      /** @type {number[][]} */
      const given = []
      for (let head = 0; head < this.heads; head++) {
        const from = head * this.width,
          cut = (/** @type {number[]} */ vector) => vector.slice(from, from + this.width),
          query = cut(qkv)
        const share = softmax(kept.keys.map(key => dot(query, cut(key)) / Math.sqrt(this.width)))
        given.push(share)
        mixed.push(...share.map((s, i) => cut(kept.values[i]).map(v => s * v)).reduce(plus))
      }
      shares.push(given)
      x = plus(x, this.map(mixed, `${at}.attn.c_proj`))
      x = plus(x, this.map(this.map(this.norm(x, `${at}.ln_2`), `${at}.mlp.c_fc`).map(gelu), `${at}.mlp.c_proj`))
      stream.push(x)
    })
    return { stream, shares }
  }

  /**
   * A score for every word, from a vector of the stream.
   * @param {number[]} x
   */
  scores(x) {
    const last = this.norm(x, "transformer.ln_f"),
      table = this.w["transformer.wte.weight"]
    return Array.from({ length: this.c.vocab_size }, (_, i) => dot(last, row(table, i, this.c.n_embd)))
  }
}
