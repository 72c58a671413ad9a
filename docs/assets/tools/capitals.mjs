// Choose a country: any sentence of the small model's, word after word, with its attention, its cache, and the scores after
// each layer. The facts come with the page, the weights with the first thing that a reader does.

import { GPT2, softmax, tensors } from "../gpt2.mjs"
import { labelled, make, remember, replace, select, table } from "./elements.mjs"

const FOLDER = new URL("../capitals/", import.meta.url), SHOWN = 8, COMPARED = 5
const FIRST = { country: "France", sentence: "0", added: "", temperature: "1" }
const read = async (name, as) => {
  const answer = await fetch(new URL(name, FOLDER))
  if (!answer.ok) throw new Error(`${name} cannot be read: ${answer.status}`)
  return answer[as]()
}
const two = x => x.toFixed(2).replace("-", "−")
const percent = x => `${(100 * x).toFixed(1)}%`

let known, loaded
// The countries with their facts, and the sentences.
const facts = () => known ??= Promise.all([read("countries.csv", "text"), read("sentences.txt", "text")]).then(([rows, sentences]) => {
  const [head, ...lines] = rows.trim().split("\n").map(line => line.trim().split(","))
  return { countries: lines.map(line => Object.fromEntries(head.map((name, i) => [name, line[i]]))), sentences: sentences.trim().split("\n").map(line => line.trim()) }
})
// The model and its words.
const theModel = () => loaded ??= Promise.all([read("config.json", "json"), read("tokenizer.json", "json"), read("model.safetensors", "arrayBuffer")]).then(([config, tokenizer, weights]) => {
  const ids = new Map(Object.entries(tokenizer.model.vocab)), words = []
  for (const [word, id] of ids) words[id] = word
  return { model: new GPT2(config, tensors(weights)), ids, words, config }
})

const start = sentence => sentence.slice(0, sentence.lastIndexOf("{")).trim()
const filled = (sentence, country) => start(sentence).split(" ").map(word => word.replace(/\{(\w+)\}/, (_, name) => country[name]))

export async function mount(place) {
  const { countries, sentences } = await facts(), given = new URLSearchParams(location.search)
  const DEFAULTS = { ...FIRST, layer: place.dataset.layer, head: place.dataset.head } // the head of the example that stands there
  const state = { ...DEFAULTS, ...Object.fromEntries([...given].filter(([name]) => Object.hasOwn(DEFAULTS, name))) }
  if (!countries.some(c => c.country === state.country)) state.country = DEFAULTS.country
  for (const name of ["sentence", "layer", "head"]) if (!/^\d+$/.test(state[name])) state[name] = DEFAULTS[name]
  if (!sentences[state.sentence]) state.sentence = DEFAULTS.sentence
  if (!(state.temperature > 0)) state.temperature = DEFAULTS.temperature

  const results = make("div", {}, ...place.childNodes), said = make("p", { class: "ep-answer", role: "status" }), looks = make("div", { class: "ep-row" })
  const next = make("button", { type: "button", onclick: () => add() }, "Next word"), back = make("button", { type: "button", onclick: remove }, "One word back")
  const warmth = make("span", {}, state.temperature)
  const form = make("form", { class: "ep-whatif", onsubmit: event => event.preventDefault() },
    make("div", { class: "ep-row" },
      labelled("Country", select("country", countries.map(c => [c.country, c.country.replace(/^the /, "The ")]), state.country)),
      labelled("Sentence", select("sentence", sentences.map((s, i) => [`${i}`, `${start(s).replace(/\{\w+\}/, "…")} …`]), state.sentence))),
    make("div", { class: "ep-row" }, next, back,
      labelled(make("span", {}, "Temperature ", warmth), make("input", { type: "range", name: "temperature", min: 0.1, max: 3, step: 0.1, value: state.temperature }))), looks)
  replace(place, form, said, results)
  form.addEventListener("input", event => {
    const { name, value } = event.target
    if (name === "country" || name === "sentence") state.added = ""
    state[name] = value
    warmth.textContent = state.temperature
    show()
  })

  const added = () => state.added.split("|").filter(Boolean)
  async function add(word) {
    state.added = [...added(), word ?? (await run()).likeliest].join("|")
    show()
  }
  function remove() {
    state.added = added().slice(0, -1).join("|")
    show()
  }

  // The text so far, token by token, as a text grows: only the new token is computed, the others are in the cache.
  let before = { words: [], steps: [], cache: null }
  async function run() {
    const { model, ids, words, config } = await theModel()
    const begun = filled(sentences[state.sentence], countries.find(c => c.country === state.country))
    const text = [...begun, ...added().filter(word => ids.has(word))].slice(0, config.n_positions)
    const goesOn = before.words.length && before.words.every((word, i) => word === text[i])
    if (!goesOn) before = { words: [], steps: [], cache: model.empty() }
    for (const word of text.slice(before.words.length)) before.steps.push(model.step(ids.get(word), before.cache))
    before.words = text
    const steps = before.steps, scores = model.scores(steps.at(-1).stream.at(-1)), order = scores.map((_, i) => i).sort((a, b) => scores[b] - scores[a])
    return { model, ids, words, config, text, begun: begun.length, steps, cache: before.cache, scores, order, likeliest: words[order[0]] }
  }

  async function show() {
    if (!loaded) said.textContent = "The model is on its way."
    let now
    try {
      now = await run()
    } catch (error) {
      loaded = undefined
      said.textContent = error.message
      return
    }
    const { config, text } = now, isFull = text.length >= config.n_positions
    state.layer = Math.min(state.layer, config.n_layer - 1)
    state.head = Math.min(state.head, config.n_head - 1)
    next.disabled = isFull
    back.disabled = text.length === now.begun
    if (!looks.firstChild) replace(looks, ...[["layer", config.n_layer], ["head", config.n_head]].map(([name, n]) => labelled(name === "layer" ? "Layer" : "Head", select(name, Array.from({ length: n }, (_, i) => [`${i}`, `${i}`]), `${state[name]}`))))
    replace(said, text.slice(0, now.begun).join(" "), ...text.slice(now.begun).map(word => [" ", make("strong", {}, word)]).flat(), isFull ? "" : " …")
    replace(results, words(now, isFull), layers(now), attention(now), cache(now))
    remember(Object.fromEntries(Object.entries(state).filter(([name, value]) => String(value) !== DEFAULTS[name])))
  }

  function words({ scores, order, words, config, text }, isFull) {
    const shares = softmax(scores, state.temperature)
    const rows = order.slice(0, SHOWN).map(i => [isFull ? words[i] : make("button", { type: "button", class: "ep-word", onclick: () => add(words[i]), title: `Go on with ${words[i]}` }, words[i]), two(scores[i]), percent(shares[i]), bar(shares[i])])
    const all = isFull ? `The text is as long as it can be: the model has ${config.n_positions} places.` : `What comes next, of ${config.vocab_size} words`
    return table(`${all}${state.temperature === "1" ? "" : `, at temperature ${state.temperature}`}`, ["Word", "#Score", "#Share", ""], rows)
  }

  function layers({ model, steps, order, words }) {
    const shown = order.slice(0, COMPARED)
    const rows = steps.at(-1).stream.map((x, i) => {
      const scores = model.scores(x)
      return [i ? `After layer ${i - 1}` : "Before the first layer", ...shown.map(id => two(scores[id]))]
    })
    return table("The scores of these words, if the model ended there", ["Where", ...shown.map(id => `#${words[id]}`)], rows)
  }

  function attention({ text, steps }) {
    const rows = steps.map(step => step.shares[state.layer][state.head])
    return matrix(`Whom each word looks at, layer ${state.layer}, head ${state.head}`, text, text, rows.map(row => text.map((_, i) => row[i] ?? null)))
  }

  function cache({ text, cache, model, config }) {
    const from = state.head * model.width, rows = cache[state.layer].keys.map(key => key.slice(from, from + model.width))
    const numbers = 2 * config.n_layer * config.n_embd
    return [
      matrix(`The cache: a key for each word, layer ${state.layer}, head ${state.head}`, text, rows[0].map((_, i) => `${i + 1}`), rows, text.length - 1),
      make("p", { class: "ep-conventions" }, `Each word leaves a key and a value in every head of every layer: ${numbers} numbers. For ${text.length} words the cache holds ${(numbers * text.length).toLocaleString("en")}. The last row is new; the others were there before.`),
    ]
  }

  if ([...given.keys()].some(name => Object.hasOwn(DEFAULTS, name))) show()
}

function bar(share) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg"), rect = document.createElementNS(svg.namespaceURI, "rect")
  for (const [name, value] of Object.entries({ viewBox: "0 0 100 8", preserveAspectRatio: "none", class: "ep-share", "aria-hidden": "true" })) svg.setAttribute(name, value)
  rect.setAttribute("width", 100 * share)
  rect.setAttribute("height", 8)
  svg.append(rect)
  return svg
}

// Numbers in shades of their size; `null` is hidden.
function matrix(name, heads, columns, rows, newest) {
  const largest = Math.max(...rows.flat().filter(x => x !== null).map(Math.abs)) || 1
  const shade = x => x === null ? "masked" : Math.ceil(4 * Math.abs(x) / largest - 1e-9) ? `${x < 0 ? "minus" : "plus"}-${Math.ceil(4 * Math.abs(x) / largest - 1e-9)}` : ""
  return make("div", { class: "ep-scroll", tabindex: 0, role: "group", "aria-label": name }, make("table", { class: "ep-table ep-matrix" },
    make("caption", {}, name),
    make("thead", {}, make("tr", {}, make("td"), columns.map(title => make("th", { scope: "col", class: "num" }, title)))),
    make("tbody", {}, rows.map((row, i) => make("tr", { class: i === newest ? "newest" : null }, make("th", { scope: "row" }, heads[i]), row.map(x => make("td", { class: `num ${shade(x)}` }, x === null ? "–" : two(x))))))))
}
