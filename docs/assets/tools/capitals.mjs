// Choose a country: any sentence of the small model, word by word, with its attention, its cache, and the logits after
// each layer. The facts load with the page, the weights with the reader's first action.

import { GPT2, softmax, tensors } from "../gpt2.mjs"
import { accepted, labelled, make, refusals, replace, select, steps, table } from "./elements.mjs"

const FOLDER = new URL("../capitals/", import.meta.url),
  SHOWN = 8,
  COMPARED = 5
/**
 * @typedef {Record<"country" | "sentence" | "added" | "temperature" | "layer" | "head", string>} State
 * @typedef {{ words: string[], steps: ReturnType<GPT2["step"]>[], cache: import("../gpt2.mjs").Cache }} Run so far
 * @typedef {object} Now the text so far, and the model's outputs for it
 * @property {GPT2} model
 * @property {Map<string, number>} ids
 * @property {string[]} words
 * @property {import("../gpt2.mjs").Config} config
 * @property {string[]} text
 * @property {number} begun number of its words that come from the sentence
 * @property {Run["steps"]} steps
 * @property {number[][]} stream of the last word
 * @property {Run["cache"]} cache
 * @property {number[]} scores
 * @property {number[]} order
 */

const FIRST = { country: "France", sentence: "0", added: "", temperature: "1" }
const fetched = async (/** @type {string} */ name) => {
  const answer = await fetch(new URL(name, FOLDER))
  if (!answer.ok) throw new Error(`${name} could not be loaded: ${answer.status}`)
  return answer
}
const text = async (/** @type {string} */ name) => (await fetched(name)).text()
const json = async (/** @type {string} */ name) => (await fetched(name)).json()
const bytes = async (/** @type {string} */ name) => (await fetched(name)).arrayBuffer()
const two = (/** @type {number} */ x) => x.toFixed(2).replace("-", "−")
const percent = (/** @type {number} */ x) => `${(100 * x).toFixed(1)}%`

/** @type {Promise<{ countries: Record<string, string>[], sentences: string[] }> | undefined} */
let known
/** @type {Promise<Pick<Now, "model" | "ids" | "words" | "config">> | undefined} */
let loaded
// The countries with their facts, and the sentences.
const facts = () =>
  (known ??= Promise.all([text("countries.csv"), text("sentences.txt")]).then(([rows, sentences]) => {
    const [head, ...lines] = rows
      .trim()
      .split("\n")
      .map(line => line.trim().split(","))
    return {
      countries: lines.map(line => Object.fromEntries(head.map((name, i) => [name, line[i]]))),
      sentences: sentences
        .trim()
        .split("\n")
        .map(line => line.trim()),
    }
  }))
// The model and its words.
const theModel = () =>
  (loaded ??= Promise.all([json("config.json"), json("tokenizer.json"), bytes("model.safetensors")]).then(all => {
    const [config, tokenizer, weights] = all
    /** @type {Map<string, number>} */
    const ids = new Map(Object.entries(tokenizer.model.vocab))
    /** @type {string[]} */
    const words = []
    for (const [word, id] of ids) words[id] = word
    return { model: new GPT2(config, tensors(weights)), ids, words, config }
  }))

const start = (/** @type {string} */ sentence) => sentence.slice(0, sentence.lastIndexOf("{")).trim()
const filled = (/** @type {string} */ sentence, /** @type {Record<string, string>} */ country) =>
  start(sentence)
    .split(" ")
    .map(word => word.replace(/\{(\w+)\}/, (_, name) => country[name]))

export async function mount(/** @type {HTMLElement} */ place) {
  const { countries, sentences } = await facts()
  const { layer = "0", head = "0" } = place.dataset // of the static example
  /** @type {State} */
  const DEFAULTS = { ...FIRST, layer, head }
  const names = /** @type {(keyof State)[]} */ (Object.keys(DEFAULTS))
  const state = { ...DEFAULTS }
  const remember = steps(
    place,
    () => ({
      values: Object.fromEntries(names.map(name => [name, state[name] === DEFAULTS[name] ? null : state[name]])),
    }),
    recall,
  )

  const results = make("div", {}, ...place.childNodes),
    said = make("p", { class: "ep-answer", role: "status" }),
    refused = refusals(),
    looks = make("div", { class: "ep-row" })
  const next = make("button", { type: "button", onclick: () => add() }, "Next word"),
    back = make("button", { type: "button", onclick: remove }, "Remove last word")
  const warmth = make("span", {}, state.temperature)
  const form = make(
    "form",
    { class: "ep-whatif", onsubmit: (/** @type {Event} */ event) => event.preventDefault() },
    make(
      "div",
      { class: "ep-row" },
      labelled(
        "Country",
        select(
          "country",
          countries.map(c => [c.country, c.country.replace(/^the /, "The ")]),
          state.country,
        ),
      ),
      labelled(
        "Sentence",
        select(
          "sentence",
          sentences.map((s, i) => [`${i}`, `${start(s).replace(/\{\w+\}/, "…")} …`]),
          state.sentence,
        ),
      ),
    ),
    make(
      "div",
      { class: "ep-row" },
      next,
      back,
      labelled(
        make("span", {}, "Temperature ", warmth),
        make("input", { type: "range", name: "temperature", min: 0.1, max: 3, step: 0.1, value: state.temperature }),
      ),
    ),
    looks,
  )
  replace(place, form, refused.line, said, results)
  form.addEventListener("input", event => {
    const { name, value } = /** @type {HTMLInputElement | HTMLSelectElement} */ (event.target)
    if (name === "country" || name === "sentence") state.added = ""
    Object.assign(state, { [name]: value })
    warmth.textContent = state.temperature
    changed(event.target)
  })
  function changed(/** @type {EventTarget?} */ field = null) {
    refused.show([])
    show()
    remember(field)
  }

  // Reads the address; invalid parts are dropped.
  async function recall() {
    const given = new URLSearchParams(location.search)
    if (!loaded && !names.some(name => given.has(name))) return
    const { config, ids } = await theModel().catch(() => ({ config: null, ids: null }))
    const upTo = (/** @type {number | undefined} */ n) => Array.from({ length: n ?? 0 }, (_, i) => `${i}`)
    const [values, wrong] = accepted(
      given,
      {
        country: text =>
          oneOf(
            "country",
            text,
            countries.map(c => c.country),
          ),
        sentence: text => oneOf("sentence", text, upTo(sentences.length)),
        layer: text => oneOf("layer", text, upTo(config?.n_layer)),
        head: text => oneOf("head", text, upTo(config?.n_head)),
        temperature: text => {
          if (Number(text) >= 0.1 && Number(text) <= 3) return `${Number(text)}`
          throw new Error(`temperature = ${quoted(text)}: expected a number from 0.1 to 3`)
        },
        added: text => {
          const strange = text.split("|").find(word => word && !ids?.has(word))
          if (strange === undefined) return text
          throw new Error(`added = ${quoted(strange)}: not in the model’s vocabulary`)
        },
      },
      DEFAULTS,
    )
    Object.assign(state, values)
    show()
    refused.show(config ? wrong : [])
  }

  const added = () => state.added.split("|").filter(Boolean)
  async function add(/** @type {string | undefined} */ word = undefined) {
    if (word === undefined) {
      const { words, order } = await run()
      word = words[order[0]]
    }
    state.added = [...added(), word].join("|")
    changed()
  }
  function remove() {
    state.added = added().slice(0, -1).join("|")
    changed()
  }

  // The text so far: only new tokens are computed, the others are in the cache.
  /** @type {Run} */
  let before = { words: [], steps: [], cache: [] }
  /** @returns {Promise<Now>} */
  async function run() {
    const known = await theModel(),
      { model, ids, config } = known
    const country = countries.find(c => c.country === state.country) ?? countries[0],
      begun = filled(sentences[Number(state.sentence)], country)
    const text = [...begun, ...added().filter(word => ids.has(word))].slice(0, config.n_positions)
    const goesOn = before.words.length && before.words.every((word, i) => word === text[i])
    if (!goesOn) before = { words: [], steps: [], cache: model.empty() }
    for (const word of text.slice(before.words.length)) {
      const id = ids.get(word)
      if (id === undefined) throw new Error(`the model’s vocabulary has no “${word}”`)
      before.steps.push(model.step(id, before.cache))
    }
    before.words = text
    const { steps, cache } = before,
      { stream } = steps[steps.length - 1],
      scores = model.scores(stream[stream.length - 1]),
      order = scores.map((_, i) => i).sort((a, b) => scores[b] - scores[a])
    return { ...known, text, begun: begun.length, steps, stream, cache, scores, order }
  }

  async function show() {
    if (!loaded) said.textContent = "Loading the model …"
    let now
    try {
      now = await run()
    } catch (error) {
      loaded = undefined
      said.textContent = error instanceof Error ? error.message : String(error)
      return
    }
    const { config, text } = now,
      isFull = text.length >= config.n_positions
    next.disabled = isFull
    back.disabled = text.length === now.begun
    if (!looks.firstChild)
      replace(
        looks,
        labelled("Layer", select("layer", numbered(config.n_layer), state.layer)),
        labelled("Head", select("head", numbered(config.n_head), state.head)),
      )
    for (const field of form.querySelectorAll("select, input"))
      if (field instanceof HTMLSelectElement || field instanceof HTMLInputElement)
        field.value = state[/** @type {keyof State} */ (field.name)]
    warmth.textContent = state.temperature
    replace(
      said,
      text.slice(0, now.begun).join(" "),
      text.slice(now.begun).flatMap(word => [" ", make("strong", {}, word)]),
      isFull ? "" : " …",
    )
    replace(results, words(now, isFull), layers(now), attention(now), cache(now))
  }

  function words(/** @type {Now} */ { scores, order, words, config }, /** @type {boolean} */ isFull) {
    const shares = softmax(scores, Number(state.temperature))
    const rows = order
      .slice(0, SHOWN)
      .map(i => [
        isFull
          ? words[i]
          : make(
              "button",
              { type: "button", class: "ep-word", onclick: () => add(words[i]), title: `Append ${words[i]}` },
              words[i],
            ),
        two(scores[i]),
        percent(shares[i]),
        bar(shares[i]),
      ])
    const all = isFull
      ? `The text has its maximum length: the model has ${config.n_positions} positions.`
      : `Most likely next words, out of ${config.vocab_size}`
    return table(
      `${all}${state.temperature === "1" ? "" : `, at temperature ${state.temperature}`}`,
      ["Word", "#Logit", "#Probability", ""],
      rows,
    )
  }

  function layers(/** @type {Now} */ { model, stream, order, words }) {
    const shown = order.slice(0, COMPARED)
    const rows = stream.map((x, i) => {
      const scores = model.scores(x)
      return [i ? `After layer ${i - 1}` : "Before the first layer", ...shown.map(id => two(scores[id]))]
    })
    return table("Logits of these words if the model ended there", ["Where", ...shown.map(id => `#${words[id]}`)], rows)
  }

  function attention(/** @type {Now} */ { text, steps }) {
    const rows = steps.map(step => step.shares[Number(state.layer)][Number(state.head)])
    return matrix(
      `Attention weights, layer ${state.layer}, head ${state.head}`,
      text,
      text,
      rows.map(row => text.map((_, i) => row[i] ?? null)),
    )
  }

  function cache(/** @type {Now} */ { text, cache, model, config }) {
    const from = Number(state.head) * model.width,
      rows = cache[Number(state.layer)].keys.map(key => key.slice(from, from + model.width))
    const numbers = 2 * config.n_layer * config.n_embd
    return [
      matrix(
        `KV cache: the key of each word, layer ${state.layer}, head ${state.head}`,
        text,
        rows[0].map((_, i) => `${i + 1}`),
        rows,
        text.length - 1,
      ),
      make(
        "p",
        { class: "ep-conventions" },
        `Each word adds a key and a value in every head of every layer: ${numbers} numbers. For ${text.length} words, `,
        `the cache holds ${(numbers * text.length).toLocaleString("en")}. Only the last row is new; the others were `,
        "already cached.",
      ),
    ]
  }

  recall()
}

// A text for a message, with every character visible.
const quoted = (/** @type {string} */ text) =>
  JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text).replace(/[\p{C}\p{Z}]/gu, c =>
    c === " " ? c : `\\u{${c.codePointAt(0)?.toString(16)}}`,
  )
/**
 * @param {string} name
 * @param {string} text
 * @param {string[]} known
 */
function oneOf(name, text, known) {
  if (known.includes(text)) return text
  throw new Error(`${name} = ${quoted(text)}: not in the list`)
}

/** @returns {import("./elements.mjs").Option[]} */
const numbered = (/** @type {number} */ n) => Array.from({ length: n }, (_, i) => [`${i}`, `${i}`])

const SVG = "http://www.w3.org/2000/svg"
function bar(/** @type {number} */ share) {
  const svg = document.createElementNS(SVG, "svg"),
    rect = document.createElementNS(SVG, "rect")
  for (const [name, value] of Object.entries({
    viewBox: "0 0 100 8",
    preserveAspectRatio: "none",
    class: "ep-share",
    "aria-hidden": "true",
  }))
    svg.setAttribute(name, value)
  rect.setAttribute("width", `${100 * share}`)
  rect.setAttribute("height", "8")
  svg.append(rect)
  return svg
}

/**
 * A matrix with cells shaded by magnitude; `null` is masked.
 * @param {string} name
 * @param {string[]} heads
 * @param {string[]} columns
 * @param {(number | null)[][]} rows
 * @param {number} [newest]
 */
function matrix(name, heads, columns, rows, newest) {
  const largest = Math.max(...rows.flat().map(x => Math.abs(x ?? 0))) || 1
  const shade = (/** @type {number?} */ x) => {
    if (x === null) return "masked"
    const steps = Math.ceil((4 * Math.abs(x)) / largest - 1e-9)
    return steps ? `${x < 0 ? "minus" : "plus"}-${steps}` : ""
  }
  return make(
    "div",
    { class: "ep-scroll", tabindex: 0, role: "group", "aria-label": name },
    make(
      "table",
      { class: "ep-table ep-matrix" },
      make("caption", {}, name),
      make(
        "thead",
        {},
        make(
          "tr",
          {},
          make("td"),
          columns.map(title => make("th", { scope: "col", class: "num" }, title)),
        ),
      ),
      make(
        "tbody",
        {},
        rows.map((row, i) =>
          make(
            "tr",
            { class: i === newest ? "newest" : null },
            make("th", { scope: "row" }, heads[i]),
            row.map(x => make("td", { class: `num ${shade(x)}` }, x === null ? "–" : two(x))),
          ),
        ),
      ),
    ),
  )
}
