// A station of the guide, tried by the reader: a sentence of the small model's words, or two vectors that RoPE turns.
// Until the button is pressed, the page shows its static figure and loads nothing more.

import { candidates } from "./capitals/candidates.mjs"
import { bar, matrix, percent, two } from "./capitals/matrices.mjs"
import { notKnown, offered, theModel, unknown } from "./own_words.mjs"
import { alert, html, labelled, pairs, render, select, stay, table } from "./view.mjs"

const TEXT = "The capital of France is",
  SHOWN = 6, // words, neurons
  LONGEST = 400 // characters of a text
/**
 * @typedef {import("./capitals/vocabulary.mjs").Piece} Piece
 * @typedef {import("./capitals/small.mjs").Small} Small
 * @typedef {object} Now
 * @property {Piece[]} pieces of the text
 * @property {string[]} words that the model knows, as far as the first that it does not
 * @property {Small} small
 * @property {(place: string) => number} number by the name of its place
 * @property {Record<string, number>} chosen
 * @property {(place: string) => string} there the address where a number says what it was made of; empty for none
 */

/**
 * What a station asks for besides the text, and what it shows.
 * @typedef {[name: string, label: string, values: number]} Field
 * @typedef {{ text?: string, fields?: (small: Small) => Field[], show: (now: Now) => Child }} Station
 * @typedef {import("./view.mjs").Child} Child
 */
/**
 * A number as a link to where it says what it was made of.
 * @param {Now} now
 * @param {string} place
 * @param {string} said
 */
const linked = ({ there }, place, said) => (there(place) ? html`<a href=${there(place)}>${said}</a>` : said)
/** @type {Record<string, Station>} */
const STATIONS = {
  tokens: {
    show: ({ pieces }) =>
      html`<ol class="ep-tokens" aria-label="Tokens">
        ${pieces.map(({ text, id }) => html`<li><span>${text}</span><small>${id ?? "unknown"}</small></li>`)}
      </ol>`,
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
        html`<p class="ep-conventions">
          ${`${before.filter(x => x > 0).length} of ${before.length} are above 0.`}
        </p>`,
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
          candidates(scores, { temperature, topK: scores.length, topP: 1 })
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

/** @param {HTMLElement} place */
export function mount(place) {
  const name = place.dataset.station ?? "",
    box = document.createElement("div")
  const draw = (isBusy = false, problem = "") =>
    render(
      html`<div class="ep-whatif">
        <div class="ep-row">
          <button type="button" disabled=${isBusy} onclick=${begin}>
            ${BUTTONS[/** @type {keyof typeof BUTTONS} */ (name)] ?? "Try a sentence of your own"}
          </button>
        </div>
        ${alert(problem)}
      </div>`,
      box,
    )
  async function begin() {
    draw(true)
    try {
      const of = place.dataset,
        small = name === "rope" ? null : await theModel()
      place.replaceChildren()
      if (small) ofText(place, STATIONS[name], small, of)
      else turned(place)
      place.querySelector("input")?.focus()
    } catch (error) {
      draw(false, error instanceof Error ? error.message : String(error))
    }
  }
  const still = document.createElement("div")
  still.append(...place.childNodes)
  draw()
  place.append(still, ...box.childNodes)
}

/**
 * A field that moves along a line.
 * @param {string} name
 * @param {string} label
 * @param {Record<string, number>} of its least, most and step
 * @param {number} value
 */
const slider = (name, label, { min, max, step }, value) =>
  labelled(
    label,
    html`<input type="range" name=${name} min=${`${min}`} max=${`${max}`} step=${`${step}`} value=${value} />`,
  )

/**
 * @param {HTMLElement} place
 * @param {Station} station
 * @param {Small} small
 * @param {DOMStringMap} of the layer and the head of the static figure, and the page where its numbers answer
 */
function ofText(place, station, small, of) {
  let text = station.text ?? TEXT
  /** @type {Record<string, number>} */
  const chosen = { layer: Number(of.layer ?? 0), head: Number(of.head ?? 0), temperature: 1 }
  const there = (/** @type {string[]} */ words, /** @type {string} */ number) => {
    if (!of.choose) return ""
    const given = { text: words.join(" "), temperature: `${chosen.temperature}`, number }
    return `${of.choose}${new URLSearchParams(given)}`
  }
  /**
   * What the station shows of the words that the model knows.
   * @param {Piece[]} pieces
   * @param {string[]} words
   * @param {number[]} ids
   */
  function shown(pieces, words, ids) {
    if (!words.length) return null
    small.session.run(ids)
    const number = (/** @type {string} */ place) => small.session.number(place)
    return station.show({ pieces, words, number, small, chosen, there: number => there(words, number) })
  }
  const take = (/** @type {string} */ given) => {
    text = given
    draw()
  }
  function typed(/** @type {{ target: HTMLInputElement }} */ { target: { name, value } }) {
    if (name === "text") text = value
    else chosen[name] = Number(value)
    draw()
  }
  const fields = () => [
    ...(station.fields?.(small) ?? []).map(([name, label, values]) =>
      labelled(label, select(name, pairs(Array(values).keys()), `${chosen[name]}`)),
    ),
    station === STATIONS.next &&
      slider("temperature", "Temperature", { min: 0.1, max: 3, step: 0.1 }, chosen.temperature),
  ]
  function draw() {
    const { vocabulary } = small,
      pieces = vocabulary.cut(text),
      own = html`<input type="text" name="text" maxlength=${LONGEST} value=${text} autocomplete="off"
        spellcheck=${false} />`
    const known = unknown(small, text)
    const note = known.strange
      ? notKnown(known.strange, offered(small, known, TEXT.split(" ")[0]), take)
      : `Any of the ${vocabulary.words.length} words that the small model knows.`
    render(
      html`<form class="ep-whatif" onsubmit=${stay} oninput=${typed}>
          <div class="ep-own">${labelled("Sentence", own)}<p class="ep-own-note" role="status">${note}</p></div>
          ${fields().some(Boolean) && html`<div class="ep-row">${fields()}</div>`}
        </form>
        <div>${shown(pieces, known.words, known.ids)}</div>`,
      place,
    )
  }
  draw()
}

const FAR = 12 // positions
/** Two vectors of two numbers, each turned by its position, and their product. @param {HTMLElement} place */
function turned(place) {
  /** @type {Record<string, number>} */
  const chosen = { query: 5, key: 3, angle: 0.25 }
  function typed(/** @type {{ target: HTMLInputElement }} */ { target: { name, value } }) {
    chosen[name] = Number(value)
    draw()
  }
  function draw() {
    const { query: q, key: k, angle } = chosen,
      at = (/** @type {number} */ position) => [Math.cos(position * angle), Math.sin(position * angle)],
      [a, b] = [at(q), at(k)],
      said = (/** @type {number[]} */ [x, y]) => `(${two(x)}, ${two(y)})`,
      position = { min: 0, max: FAR, step: 1 }
    const rows = [
      ["Query", `${q}`, two(q * angle), said(a)],
      ["Key", `${k}`, two(k * angle), said(b)],
    ]
    render(
      html`<form class="ep-whatif" onsubmit=${stay} oninput=${typed}>
          <div class="ep-row">
            ${slider("query", "Position of the query", position, q)}${slider("key", "Position of the key", position, k)}
            ${slider("angle", "Angle per position", { min: 0, max: 1, step: 0.05 }, angle)}
          </div>
        </form>
        <div>
          ${table("The vector (1, 0) as query and as key", ["", "#Position", "#Angle", "#Turned"], rows)}
          <p role="status">
            ${
              `Their score: ${two(a[0] * b[0] + a[1] * b[1])}, the cosine of ${two((q - k) * angle)}. ` +
              `Move both by the same amount: the distance stays ${q - k}, and so does the score.`
            }
          </p>
        </div>`,
      place,
    )
  }
  draw()
}
