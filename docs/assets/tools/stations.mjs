// A station of the guide, tried by the reader: a sentence of the small model's words, or two vectors that RoPE turns.
// Until the button is pressed, the page shows its static figure and loads nothing more.

import { labelled, make, replace, select, table } from "./elements.mjs"
import { bar, matrix, percent, reach, two } from "./capitals/matrices.mjs"

const TEXT = "The capital of France is",
  SHOWN = 6, // words, neurons
  LONGEST = 400 // characters of a text
/**
 * @typedef {typeof import("./capitals/inside.mjs")} Inside
 * @typedef {import("./capitals/vocabulary.mjs").Piece} Piece
 * @typedef {import("./capitals/small.mjs").Small & { inside: Inside }} Small
 * @typedef {object} Now
 * @property {Piece[]} pieces of the text
 * @property {string[]} words that the model knows, as far as the first that it does not
 * @property {Small} small
 * @property {(place: string) => number} number by the name of its place
 * @property {Record<string, number>} chosen
 * @property {(place: string) => string} there the address where a number says what it was made of; empty for none
 */

/** @type {Promise<Small> | undefined} */
let loaded
const theModel = () =>
  (loaded ??= (async () => {
    const [{ smallModel }, inside] = await Promise.all([
      import("./capitals/small.mjs"),
      import("./capitals/inside.mjs"),
    ])
    return { ...(await smallModel()), inside }
  })())

/**
 * What a station asks for besides the text, and what it shows.
 * @typedef {[name: string, label: string, values: number]} Field
 * @typedef {{ text?: string, fields?: (small: Small) => Field[], show: (now: Now) => Node[] }} Station
 */
const layerAndHead = (/** @type {Small} */ { config }) =>
  /** @type {[string, string, number][]} */ ([
    ["layer", "Layer", config.n_layer],
    ["head", "Head", config.n_head],
  ])
/**
 * A number as a link to where it says what it was made of.
 * @param {Now} now
 * @param {string} place
 * @param {string} said
 */
const linked = ({ there }, place, said) => (there(place) ? make("a", { href: there(place) }, said) : said)
/** @type {Record<string, Station>} */
const STATIONS = {
  tokens: {
    show: ({ pieces }) => [
      make(
        "ol",
        { class: "ep-tokens", "aria-label": "Tokens" },
        pieces.map(({ text, id }) =>
          make("li", {}, make("span", {}, text), make("small", {}, id === undefined ? "unknown" : `${id}`)),
        ),
      ),
    ],
  },
  embedding: {
    text: "France",
    show({ small: { session, config }, words, number, there }) {
      const rows = words.map((_, t) => [...Array(config.n_embd).keys()].map(i => number(`token/${t}/${i}`)))
      return [
        matrix(
          `The row of each token in the table of ${config.vocab_size} rows of ${config.n_embd} numbers`,
          words.map((word, i) => `${word}, row ${session.ids[i]}`.replaceAll(" ", "\u00a0")),
          rows[0].map((_, i) => `${i + 1}`),
          rows,
          there("")
            ? { place: (t, i) => `token/${t}/${i}`, ask: { chosen: "", open: place => location.assign(there(place)) } }
            : {},
        ),
      ]
    },
  },
  scores: {
    fields: layerAndHead,
    show(now) {
      const { words, number } = now,
        { layer, head } = now.chosen,
        last = words.length - 1
      return [
        table(
          `“${words[last]}” looks at each word, layer ${layer}, head ${head}`,
          ["Word", "#Score", "#Attention weight", ""],
          words.map((word, i) => {
            const [score, share] = ["score", "share"].map(kind => `${kind}/${layer}/${head}/${last}/${i}`)
            return [
              word,
              linked(now, score, two(number(score))),
              linked(now, share, percent(number(share))),
              bar(number(share)),
            ]
          }),
        ),
      ]
    },
  },
  neurons: {
    fields: ({ config }) => [["layer", "Layer", config.n_layer]],
    show(now) {
      const { small, words, number } = now,
        { layer } = now.chosen,
        last = words.length - 1
      const all = [...Array(4 * small.config.n_embd).keys()],
        before = all.map(i => number(`map/${layer}/c_fc/${last}/${i}`)),
        after = all.map(i => number(`active/${layer}/${last}/${i}`)),
        first = [...after.keys()].sort((a, b) => after[b] - after[a]).slice(0, SHOWN)
      return [
        table(
          `The largest of ${after.length} elements for “${words.at(-1)}”, layer ${layer}`,
          ["Element", "#Before GELU", "#After GELU"],
          first.map(i => [
            `${i + 1}`,
            linked(now, `map/${layer}/c_fc/${last}/${i}`, two(before[i])),
            linked(now, `active/${layer}/${last}/${i}`, two(after[i])),
          ]),
        ),
        make("p", { class: "ep-conventions" }, `${before.filter(x => x > 0).length} of ${before.length} are above 0.`),
      ]
    },
  },
  next: {
    show(now) {
      const { small } = now,
        { scores } = small.session,
        { temperature } = now.chosen
      return [
        table(
          `Most likely next words at temperature ${temperature}`,
          ["Word", "#Logit", "#Probability", ""],
          small.inside
            .candidates(scores, { temperature, topK: scores.length, topP: 1 })
            .slice(0, SHOWN)
            .map(({ id, score, share }) => [
              small.vocabulary.words[id],
              linked(now, `logit/${id}`, two(score)),
              linked(now, `chance/${id}`, percent(share)),
              bar(share),
            ]),
        ),
      ]
    },
  },
  cache: {
    show({ words, small: { config } }) {
      const each = 2 * config.n_layer * config.n_embd,
        said = (/** @type {number} */ n) => n.toLocaleString("en")
      return [
        table(
          "Numbers of keys and values at each step, if the words come one at a time",
          ["New word", "#Read from the cache", "#Written to it", "#In it afterwards"],
          words.map((word, i) => [word, said(i * each), said(each), said((i + 1) * each)]),
        ),
      ]
    },
  },
}

const BUTTONS = { rope: "Turn them yourself", embedding: "Look up words of your own" }

export function mount(/** @type {HTMLElement} */ place) {
  const name = place.dataset.station ?? "",
    still = make("div", {}, ...place.childNodes),
    problem = make("p", { class: "ep-problem", role: "alert", hidden: true })
  const begin = make(
    "button",
    {
      type: "button",
      async onclick() {
        begin.disabled = true
        try {
          replace(place, name === "rope" ? turned() : ofText(STATIONS[name], await theModel(), place.dataset))
          place.querySelector("input")?.focus()
        } catch (error) {
          loaded = undefined
          begin.disabled = problem.hidden = false
          problem.textContent = error instanceof Error ? error.message : String(error)
        }
      },
    },
    BUTTONS[/** @type {keyof typeof BUTTONS} */ (name)] ?? "Try a sentence of your own",
  )
  replace(place, still, make("div", { class: "ep-whatif" }, make("div", { class: "ep-row" }, begin), problem))
}

/**
 * @param {Station} station
 * @param {Small} small
 * @param {DOMStringMap} of the layer and the head of the static figure, and the page where its numbers answer
 */
function ofText(station, small, of) {
  const text = make("input", {
      type: "text",
      maxlength: LONGEST,
      value: station.text ?? TEXT,
      autocomplete: "off",
      spellcheck: "false",
    }),
    note = make("p", { class: "ep-own-note", role: "status" }),
    results = make("div")
  /** @type {Record<string, number>} */
  const chosen = { layer: Number(of.layer ?? 0), head: Number(of.head ?? 0), temperature: 1 }
  const fields = (station.fields?.(small) ?? []).map(([name, label, values]) =>
    labelled(
      label,
      select(
        name,
        Array.from({ length: values }, (_, i) => [`${i}`, `${i}`]),
        `${chosen[name]}`,
      ),
    ),
  )
  if (station === STATIONS.next)
    fields.push(
      labelled(
        "Temperature",
        make("input", { type: "range", name: "temperature", min: 0.1, max: 3, step: 0.1, value: 1 }),
      ),
    )
  const form = make(
    "form",
    { class: "ep-whatif", onsubmit: (/** @type {Event} */ event) => event.preventDefault() },
    make("div", { class: "ep-own" }, labelled("Sentence", text), note),
    fields.length ? make("div", { class: "ep-row" }, fields) : null,
  )
  form.addEventListener("input", ({ target }) => {
    if (target !== text) {
      const { name, value } = /** @type {HTMLInputElement} */ (target)
      chosen[name] = Number(value)
    }
    show()
  })
  function show() {
    const pieces = small.vocabulary.cut(text.value),
      strange = pieces.findIndex(({ id }) => id === undefined),
      known = pieces.slice(0, strange < 0 ? pieces.length : strange).slice(0, small.config.n_positions)
    replace(
      note,
      strange < 0
        ? `Any of the ${small.vocabulary.words.length} words that the small model knows.`
        : `“${pieces[strange].text}” is not one of the ${small.vocabulary.words.length} words that the model knows.`,
    )
    if (!known.length) return replace(results)
    small.session.run(known.map(({ id }) => /** @type {number} */ (id)))
    const words = known.map(({ text }) => text)
    const there = (/** @type {string} */ number) => {
      if (!of.choose) return ""
      const given = { text: words.join(" "), temperature: `${chosen.temperature}`, number }
      return `${of.choose}${new URLSearchParams(given)}`
    }
    const number = (/** @type {string} */ place) => small.session.number(place)
    replace(results, station.show({ pieces, words, number, small, chosen, there }))
    for (const grid of results.querySelectorAll("table[role=grid]")) reach(grid)
  }
  show()
  return [form, results]
}

const FAR = 12 // positions
// Two vectors of two numbers, each turned by its position, and their product.
function turned() {
  const results = make("div")
  const slider = (/** @type {string} */ name, /** @type {string} */ label, /** @type {number} */ value) =>
    labelled(label, make("input", { type: "range", name, min: 0, max: FAR, step: 1, value }))
  const form = make(
    "form",
    { class: "ep-whatif", onsubmit: (/** @type {Event} */ event) => event.preventDefault(), oninput: show },
    make(
      "div",
      { class: "ep-row" },
      slider("query", "Position of the query", 5),
      slider("key", "Position of the key", 3),
      labelled(
        "Angle per position",
        make("input", { type: "range", name: "angle", min: 0, max: 1, step: 0.05, value: 0.25 }),
      ),
    ),
  )
  function show() {
    const value = (/** @type {string} */ name) =>
      Number(/** @type {HTMLInputElement} */ (form.elements.namedItem(name)).value)
    const [q, k, angle] = ["query", "key", "angle"].map(value),
      at = (/** @type {number} */ position) => [Math.cos(position * angle), Math.sin(position * angle)],
      [a, b] = [at(q), at(k)],
      said = (/** @type {number[]} */ [x, y]) => `(${two(x)}, ${two(y)})`
    replace(
      results,
      table(
        "The vector (1, 0) as query and as key",
        ["", "#Position", "#Angle", "#Turned"],
        [
          ["Query", `${q}`, two(q * angle), said(a)],
          ["Key", `${k}`, two(k * angle), said(b)],
        ],
      ),
      make(
        "p",
        { role: "status" },
        `Their score: ${two(a[0] * b[0] + a[1] * b[1])}, the cosine of ${two((q - k) * angle)}. `,
        `Move both by the same amount: the distance stays ${q - k}, and so does the score.`,
      ),
    )
  }
  show()
  return [form, results]
}
