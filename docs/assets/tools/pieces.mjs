// A reader's own text, cut by published tokenizers. Their merges load when a button is pressed that says their size.

import { choices } from "./choices.mjs"
import { answer, mergesOf } from "./pieces/answer.mjs"
import { alert, html, labelled, render, stay } from "./view.mjs"

const FOLDER = new URL("../vocabularies/", import.meta.url),
  LONGEST = 400 // characters
/** @typedef {import("./pieces/answer.mjs").Merges} Merges */

/** @param {DOMStringMap} vocabulary @returns {Promise<Merges>} */
async function loaded({ vocabulary = "", pattern = "" }) {
  const answer = await fetch(new URL(`${vocabulary}.bin`, FOLDER))
  if (!answer.ok || !answer.body) throw new Error(`The vocabulary could not be loaded: ${answer.status}`)
  const planes = await new Response(answer.body.pipeThrough(new DecompressionStream("deflate"))).arrayBuffer()
  return mergesOf(new Uint8Array(planes), pattern)
}
const RULES = {
  text(/** @type {string} */ given) {
    if (given.length <= LONGEST) return given
    throw new Error(`text: longer than ${LONGEST} characters`)
  },
}

/** @param {HTMLElement} place */
export function mount(place) {
  const usual = { text: place.dataset.text ?? "" },
    rows = /** @type {HTMLElement[]} */ ([...place.querySelectorAll("[data-vocabulary]")]),
    controls = /** @type {HTMLElement} */ (place.querySelector(".ep-controls")),
    caption = /** @type {HTMLElement} */ (place.querySelector("figcaption")),
    [, after] = (caption.textContent ?? "").split(`“${usual.text}”`)
  for (const row of rows) row.append(Object.assign(document.createElement("div"), { className: "own" }))
  /** @type {Shown} */
  const shown = { text: usual.text, problem: "", isBusy: false, known: new Map() }
  const { recall, set } = choices(place, RULES, usual, ({ text }, problem) => {
    Object.assign(shown, { text, problem })
    if (text !== usual.text && !shown.known.size) void load(rows[0])
    else draw()
  })
  async function load(/** @type {HTMLElement} */ row) {
    shown.isBusy = true
    draw()
    try {
      shown.known.set(row, await loaded(row.dataset))
      shown.problem = ""
    } catch (error) {
      shown.problem = error instanceof Error ? error.message : String(error)
    }
    shown.isBusy = false
    draw()
    controls.querySelector("input")?.focus({ preventScroll: true })
  }
  function draw() {
    for (const row of rows) fill(row, shown, usual.text)
    caption.textContent = `“${shown.text}”${after}`
    const next = rows.find(row => !shown.known.has(row))
    render(
      form(shown, next, load, set, () => set(usual)),
      controls,
    )
  }
  recall()
}

// The view

/**
 * @typedef {object} Shown
 * @property {string} text
 * @property {string} problem
 * @property {boolean} isBusy
 * @property {Map<HTMLElement, Merges>} known what is loaded, by its row
 */

/** Shows the pieces in a row, or what it was served with. */
function fill(/** @type {HTMLElement} */ row, /** @type {Shown} */ { text, known }, /** @type {string} */ usual) {
  const mine = known.get(row),
    isStill = !mine && text === usual,
    [own] = row.querySelectorAll(":scope > .own"),
    { title, pieces } = answer(row.dataset, mine, text)
  for (const one of /** @type {NodeListOf<HTMLElement>} */ (row.querySelectorAll(":scope > :not(.own)")))
    one.hidden = !isStill
  render(
    !isStill &&
      html`<p class="ep-panel-title">${title}</p>
        <ol class="ep-tokens" aria-label=${`Tokens of ${row.dataset.of}`}>
          ${pieces.map(({ id, said }) => html`<li><span>${said}</span>${" "}<small>${id}</small></li>`)}
        </ol>`,
    own,
  )
}
/**
 * @param {Shown} shown
 * @param {HTMLElement | undefined} next that may be loaded
 * @param {(row: HTMLElement) => void} load
 * @param {import("./choices.mjs").Set} set
 * @param {() => void} reset
 */
function form({ text, problem, isBusy, known }, next, load, set, reset) {
  const typed = (/** @type {any} */ { target }) => set({ text: target.value }, target),
    { of, bytes } = next?.dataset ?? {},
    words = known.size ? `Cut it by ${of}’s, too` : "Try a text of your own"
  return html`<form class="ep-whatif" onsubmit=${stay}>
    ${
      known.size > 0 &&
      html`<div class="ep-own">
        ${labelled(
          "Text",
          html`<input type="text" name="text" maxlength=${LONGEST} value=${text} autocomplete="off"
            spellcheck=${false} oninput=${typed} />`,
        )}
      </div>`
    }
    <div class="ep-row">
      ${
        next &&
        html`<button type="button" disabled=${isBusy} onclick=${() => load(next)}>
          ${words} (${`${Math.round(Number(bytes) / 1000)} kB`})
        </button>`
      }
      ${known.size > 0 && html`<button type="button" onclick=${reset}>Reset</button>`}
    </div>
    ${alert(problem)}
  </form>`
}
