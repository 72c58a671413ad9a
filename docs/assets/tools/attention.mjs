// Where each word looks: all heads of the small model over a text. What the page serves is drawn again from its own
// numbers; the model is loaded when a reader changes the sentence.

import { accepted, steps } from "./address.mjs"
import { percent, small as thumb, two } from "./capitals/matrices.mjs"
import { notKnown, offered, unknown } from "./own_words.mjs"
import { alert, html, labelled, render, select } from "./view.mjs"

const LONGEST = 400 // characters of a text
/**
 * @typedef {(number | null)[][]} Shares of one head: a row for each word; null for a later word, which it cannot see
 * @typedef {{ words: string[], heads: Shares[] }} Looks of all heads over a text, layer by layer
 * @typedef {import("./capitals/small.mjs").Small} Small
 */

/** @type {Promise<Small> | undefined} */
let loaded
const theModel = () => (loaded ??= import("./capitals/small.mjs").then(({ smallModel }) => smallModel()))

const square = (/** @type {number} */ n, /** @type {(i: number, j: number) => number} */ of) =>
  Array.from({ length: n }, (_, i) => Array.from({ length: n }, (_, j) => (j > i ? null : of(i, j))))

/** The numbers that the page was served with. @param {DOMStringMap} of @returns {Looks} */
function served({ words = "", shares = "" }) {
  const all = words.split("|"),
    heads = shares.split(",").map(one => {
      const numbers = one.split(" ").map(Number)
      return square(all.length, (i, j) => numbers[(i * (i + 1)) / 2 + j])
    })
  return { words: all, heads }
}

/** @param {Small} small @param {string[]} words @param {number[]} ids @returns {Looks} */
function computed({ session, config }, words, ids) {
  session.run(ids)
  const head = (/** @type {number} */ n) => `${Math.floor(n / config.n_head)}/${n % config.n_head}`,
    heads = Array.from({ length: config.n_layer * config.n_head }, (_, n) =>
      square(words.length, (i, j) => session.number(`share/${head(n)}/${i}/${j}`)),
    )
  return { words, heads }
}

/** @param {HTMLElement} place */
export function mount(place) {
  const of = place.dataset,
    first = served(of),
    caption = place.querySelector("figcaption")?.textContent ?? "",
    habits = (of.habits ?? "").split("|"),
    perLayer = habits.length / Number(of.layers),
    names = habits.map((_, n) => `${Math.floor(n / perLayer)}.${n % perLayer}`),
    defaults = { text: first.words.join(" "), word: "", head: of.head ?? "" }
  /** @type {Record<string, import("./address.mjs").Rule>} */
  const rules = {
    text: text => text.slice(0, LONGEST),
    word: text => `${Math.max(1, Math.floor(Number(text)) || 1)}`,
    head(text) {
      if (!names.includes(text)) throw new Error(`head = ${text.slice(0, 20)}: there is none; choose one of ${names}`)
      return text
    },
  }
  let chosen = { ...defaults },
    looks = first,
    turn = 0,
    problem = ""
  /** @type {{ word: string, others: string[], end: string } | null} */
  let strange = null
  const values = () => ({
    text: chosen.text === defaults.text ? "" : chosen.text,
    word: chosen.word,
    head: chosen.head === defaults.head ? "" : chosen.head,
  })
  const remember = steps(place, () => ({ values: values() }), recall)

  async function look() {
    const mine = ++turn
    if (chosen.text === defaults.text) {
      looks = first
      strange = null
    } else
      try {
        const small = await theModel()
        if (mine !== turn) return
        const known = unknown(small, chosen.text)
        strange = known.strange && { ...known.strange, others: offered(small, known, first.words[0]) }
        if (known.words.length) looks = computed(small, known.words, known.ids)
      } catch (error) {
        loaded = undefined
        problem = error instanceof Error ? error.message : String(error)
      }
    draw()
  }
  /** @param {Partial<typeof chosen>} given @param {EventTarget | null} [field] */
  function set(given, field = null) {
    chosen = { ...chosen, ...given }
    problem = ""
    remember(field)
    if ("text" in given) look()
    else draw()
  }
  function recall() {
    const [given, wrong] = accepted(new URL(location.href).searchParams, rules, defaults)
    chosen = given
    problem = wrong.join(". ")
    look()
  }
  const there = (/** @type {number} */ i, /** @type {number} */ j) => {
    const [layer, head] = chosen.head.split("."),
      query = new URLSearchParams({ text: looks.words.join(" "), number: `share/${layer}/${head}/${i}/${j}` })
    return `${of.choose}?${query}`
  }

  function draw() {
    const { words, heads } = looks,
      n = names.indexOf(chosen.head),
      row = Math.min(Number(chosen.word) || words.length, words.length) - 1,
      shares = heads[n],
      own = /** @type {number[]} */ (shares[row].slice(0, row + 1)),
      most = own.indexOf(Math.max(...own))
    const said = `“${words[row]}” looks most at “${words[most]}”: ${percent(own[most])} of its attention.`
    const cell = (/** @type {number | null} */ x, /** @type {number} */ i, /** @type {number} */ j) => {
      if (x === null) return html`<td class="num masked"></td>`
      const steps = Math.ceil(4 * x - 1e-9)
      return html`<td class=${`num ${steps ? `plus-${steps}` : ""}`}>
        ${of.choose ? html`<a href=${there(i, j)} tabindex=${i || j ? -1 : 0}>${two(x)}</a>` : two(x)}
      </td>`
    }
    const [layer, head] = chosen.head.split("."),
      name = `Layer ${layer}, head ${head}`
    const large = html`<div class="ep-scroll" tabindex="0" role="group" aria-label=${`${name}: where each word looks`}>
      <table class="ep-table ep-matrix">
        <caption>${name}</caption>
        <thead><tr><td></td>${words.map(word => html`<th scope="col" class="num">${word}</th>`)}</tr></thead>
        <tbody>
          ${words.map(
            (word, i) => html`<tr class=${i === row ? "lit" : undefined} onclick=${() => set({ word: `${i + 1}` })}>
              <th scope="row">${word}</th>${shares[i].map((x, j) => cell(x, i, j))}
            </tr>`,
          )}
        </tbody>
      </table>
    </div>`
    const one = (/** @type {string} */ name, /** @type {number} */ i) =>
      html`<li class=${i === n ? "lit" : undefined}>
        <button type="button" class="ep-small-head" aria-pressed=${`${i === n}`} onclick=${() => set({ head: name })}>
          ${thumb(/** @type {number[][]} */ (heads[i].map(row => row.map(x => x ?? 0))))}
          <b>${name}</b><small>${habits[i] || "no single habit"}</small>
        </button>
      </li>`
    const form = html`<form class="ep-whatif" onsubmit=${(/** @type {Event} */ event) => event.preventDefault()}>
      <div class="ep-row">
        ${labelled(
          "Word",
          select(
            "word",
            words.map((word, i) => [`${i + 1}`, word]),
            `${row + 1}`,
            {
              onchange: (/** @type {any} */ { target }) => set({ word: target.value }),
            },
          ),
        )}
        ${labelled(
          "Head",
          select(
            "head",
            names.map((name, i) => [name, habits[i] ? `${name}, ${habits[i]}` : name]),
            chosen.head,
            {
              onchange: (/** @type {any} */ { target }) => set({ head: target.value }),
            },
          ),
        )}
        ${labelled(
          "Sentence",
          html`<input type="text" name="text" maxlength=${LONGEST} value=${chosen.text} autocomplete="off"
            spellcheck=${false}
            oninput=${(/** @type {any} */ { target }) => set({ text: target.value, word: "" }, target)} />`,
        )}
        <button type="button" onclick=${() => set(defaults)}>Reset</button>
      </div>
      ${
        strange &&
        html`<p class="ep-own-note" role="status">
        ${notKnown(strange, strange.others, text => set({ text, word: "" }))}
      </p>`
      }
      ${alert(problem)}
    </form>`
    render(
      html`<figure class="ep-figure">
          <div class="ep-looks">
            <div>${large}<p class="ep-looks-at"><output aria-live="polite">${said}</output></p></div>
            <ol class="ep-small-heads" aria-label="All heads">${names.map(one)}</ol>
          </div>
          <div class="ep-controls">${form}</div>
          <figcaption>${caption}</figcaption>
        </figure>`,
      place,
    )
  }
  place.replaceChildren()
  recall()
}
