// Choose a country: any sentence of the small model's, word after word, with its attention, its cache, and the scores
// after each layer. The facts come with the page, the weights with the first thing that a reader does.

import { GPT2, softmax, tensors } from "../gpt2.mjs"
import { labelled, make, remember, replace, select, table } from "./elements.mjs"

const FOLDER = new URL("../capitals/", import.meta.url),
  SHOWN = 8,
  COMPARED = 5
/**
 * @typedef {Record<"country" | "sentence" | "added" | "temperature" | "layer" | "head", string>} State
 * @typedef {{ words: string[], steps: ReturnType<GPT2["step"]>[], cache: import("../gpt2.mjs").Cache }} Run so far
 * @typedef {object} Now the text so far, and what the model makes of it
 * @property {GPT2} model
 * @property {Map<string, number>} ids
 * @property {string[]} words
 * @property {import("../gpt2.mjs").Config} config
 * @property {string[]} text
 * @property {number} begun how many words of it the sentence has
 * @property {Run["steps"]} steps
 * @property {number[][]} stream of the last word
 * @property {Run["cache"]} cache
 * @property {number[]} scores
 * @property {number[]} order
 */

const FIRST = { country: "France", sentence: "0", added: "", temperature: "1" }
const fetched = async (/** @type {string} */ name) => {
  const answer = await fetch(new URL(name, FOLDER))
  if (!answer.ok) throw new Error(`${name} cannot be read: ${answer.status}`)
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
  const { countries, sentences } = await facts(),
    given = new URLSearchParams(location.search)
  const { layer = "0", head = "0" } = place.dataset // of the example that stands there
  /** @type {State} */
  const DEFAULTS = { ...FIRST, layer, head }
  const state = { ...DEFAULTS, ...Object.fromEntries([...given].filter(([name]) => Object.hasOwn(DEFAULTS, name))) }
  if (!countries.some(c => c.country === state.country)) state.country = DEFAULTS.country
  for (const name of /** @type {const} */ (["sentence", "layer", "head"]))
    state[name] = /^\d+$/.test(state[name]) ? `${Number(state[name])}` : DEFAULTS[name]
  if (!sentences[Number(state.sentence)]) state.sentence = DEFAULTS.sentence
  if (!(Number(state.temperature) > 0)) state.temperature = DEFAULTS.temperature

  const results = make("div", {}, ...place.childNodes),
    said = make("p", { class: "ep-answer", role: "status" }),
    looks = make("div", { class: "ep-row" })
  const next = make("button", { type: "button", onclick: () => add() }, "Next word"),
    back = make("button", { type: "button", onclick: remove }, "One word back")
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
  replace(place, form, said, results)
  form.addEventListener("input", event => {
    const { name, value } = /** @type {HTMLInputElement | HTMLSelectElement} */ (event.target)
    if (name === "country" || name === "sentence") state.added = ""
    Object.assign(state, { [name]: value })
    warmth.textContent = state.temperature
    show()
  })

  const added = () => state.added.split("|").filter(Boolean)
  async function add(/** @type {string | undefined} */ word = undefined) {
    if (word === undefined) {
      const { words, order } = await run()
      word = words[order[0]]
    }
    state.added = [...added(), word].join("|")
    show()
  }
  function remove() {
    state.added = added().slice(0, -1).join("|")
    show()
  }

  // The text so far, token by token, as a text grows: only the new token is computed, the others are in the cache.
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
      if (id === undefined) throw new Error(`the model has no word “${word}”`)
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
    if (!loaded) said.textContent = "The model is on its way."
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
    state.layer = `${Math.min(Number(state.layer), config.n_layer - 1)}`
    state.head = `${Math.min(Number(state.head), config.n_head - 1)}`
    next.disabled = isFull
    back.disabled = text.length === now.begun
    if (!looks.firstChild)
      replace(
        looks,
        labelled("Layer", select("layer", numbered(config.n_layer), state.layer)),
        labelled("Head", select("head", numbered(config.n_head), state.head)),
      )
    replace(
      said,
      text.slice(0, now.begun).join(" "),
      text.slice(now.begun).flatMap(word => [" ", make("strong", {}, word)]),
      isFull ? "" : " …",
    )
    replace(results, words(now, isFull), layers(now), attention(now), cache(now))
    const names = /** @type {(keyof State)[]} */ (Object.keys(DEFAULTS))
    remember(Object.fromEntries(names.filter(name => state[name] !== DEFAULTS[name]).map(name => [name, state[name]])))
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
              { type: "button", class: "ep-word", onclick: () => add(words[i]), title: `Go on with ${words[i]}` },
              words[i],
            ),
        two(scores[i]),
        percent(shares[i]),
        bar(shares[i]),
      ])
    const all = isFull
      ? `The text is as long as it can be: the model has ${config.n_positions} places.`
      : `What comes next, of ${config.vocab_size} words`
    return table(
      `${all}${state.temperature === "1" ? "" : `, at temperature ${state.temperature}`}`,
      ["Word", "#Score", "#Share", ""],
      rows,
    )
  }

  function layers(/** @type {Now} */ { model, stream, order, words }) {
    const shown = order.slice(0, COMPARED)
    const rows = stream.map((x, i) => {
      const scores = model.scores(x)
      return [i ? `After layer ${i - 1}` : "Before the first layer", ...shown.map(id => two(scores[id]))]
    })
    return table(
      "The scores of these words, if the model ended there",
      ["Where", ...shown.map(id => `#${words[id]}`)],
      rows,
    )
  }

  function attention(/** @type {Now} */ { text, steps }) {
    const rows = steps.map(step => step.shares[Number(state.layer)][Number(state.head)])
    return matrix(
      `Whom each word looks at, layer ${state.layer}, head ${state.head}`,
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
        `The cache: a key for each word, layer ${state.layer}, head ${state.head}`,
        text,
        rows[0].map((_, i) => `${i + 1}`),
        rows,
        text.length - 1,
      ),
      make(
        "p",
        { class: "ep-conventions" },
        `Each word leaves a key and a value in every head of every layer: ${numbers} numbers. For ${text.length} `,
        `words the cache holds ${(numbers * text.length).toLocaleString("en")}. The last row is new; the others were `,
        "there before.",
      ),
    ]
  }

  if ([...given.keys()].some(name => Object.hasOwn(DEFAULTS, name))) show()
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
 * Numbers in shades of their size; `null` is hidden.
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
