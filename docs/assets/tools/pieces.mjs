// A reader's own text, cut by published tokenizers. Their merges load when a button is pressed that says their size.

import { accepted, steps } from "./address.mjs"
import { alert, html, labelled, render } from "./view.mjs"

const FOLDER = new URL("../vocabularies/", import.meta.url),
  LONGEST = 400, // characters
  BYTES = 256,
  SHIFT = 2 ** 20 // above every id: two of them make one key
/**
 * @typedef {{ id: number, content: Uint8Array }} Piece
 * @typedef {{ joins: Map<number, number>, contents: Uint8Array[], pattern: RegExp }} Merges
 */

// The bytes by their token ids, the printable ones first.
const byId = Array.from({ length: BYTES }, (_, byte) => byte),
  isPrintable = (/** @type {number} */ byte) =>
    (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte < 0x100 && byte !== 0xad)
byId.sort((a, b) => Number(isPrintable(b)) - Number(isPrintable(a)) || a - b)
const idOf = byId.map((_, byte) => byId.indexOf(byte))

/**
 * The merges of a file: `macros/catalogue/merges.py` says how it is written.
 * @param {Uint8Array} planes
 * @param {string} pattern of what is never joined with its neighbors
 * @returns {Merges}
 */
export function mergesOf(planes, pattern) {
  const n = planes.length / 6,
    id = (/** @type {number} */ i, /** @type {number} */ from) =>
      planes[from + i] + planes[from + n + i] * BYTES + planes[from + 2 * n + i] * BYTES ** 2
  const contents = byId.map(byte => Uint8Array.of(byte)),
    joins = new Map()
  for (let i = 0; i < n; i++) {
    const left = id(i, 0),
      right = id(i, 3 * n)
    joins.set(left * SHIFT + right, BYTES + i)
    const whole = new Uint8Array(contents[left].length + contents[right].length)
    whole.set(contents[left])
    whole.set(contents[right], contents[left].length)
    contents.push(whole)
  }
  const unicode = pattern.replaceAll("\\s", "\\p{White_Space}").replaceAll("\\S", "\\P{White_Space}")
  return { joins, contents, pattern: new RegExp(unicode, "gu") }
}

/** The tokens of a text. @param {Merges} merges @param {string} text @returns {Piece[]} */
export function cut({ joins, contents, pattern }, text) {
  const ids = [...text.matchAll(pattern)].flatMap(([piece]) => joined(joins, new TextEncoder().encode(piece)))
  return ids.map(id => ({ id, content: contents[id] }))
}
/** @param {Map<number, number>} joins @param {Uint8Array} piece */
function joined(joins, piece) {
  const ids = Array.from(piece, byte => idOf[byte]),
    made = (/** @type {number} */ i) => joins.get(ids[i] * SHIFT + ids[i + 1]) ?? Infinity
  for (;;) {
    let first = 0
    for (let i = 1; i < ids.length - 1; i++) if (made(i) < made(first)) first = i
    if (made(first) === Infinity) return ids
    ids.splice(first, 2, made(first))
  }
}

const whole = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
/** @param {Uint8Array} content */
function said(content) {
  try {
    return whole.decode(content).replaceAll(" ", "·").replaceAll("\n", "↵").replaceAll("\t", "⇥")
  } catch {
    return Array.from(content, byte => byte.toString(16).padStart(2, "0").toUpperCase()).join(" ")
  }
}
const drawn = (/** @type {Piece[]} */ pieces) =>
  pieces.map(({ id, content }) => html`<li><span>${said(content)}</span>${" "}<small>${id}</small></li>`)

/** @param {HTMLElement} row of a vocabulary @returns {Promise<Merges>} */
async function loaded({ dataset: { vocabulary = "", pattern = "" } }) {
  const answer = await fetch(new URL(`${vocabulary}.bin`, FOLDER))
  if (!answer.ok || !answer.body) throw new Error(`The vocabulary could not be loaded: ${answer.status}`)
  const planes = await new Response(answer.body.pipeThrough(new DecompressionStream("deflate"))).arrayBuffer()
  return mergesOf(new Uint8Array(planes), pattern)
}

/** @param {HTMLElement} place */
export function mount(place) {
  const usual = { text: place.dataset.text ?? "" },
    rows = /** @type {HTMLElement[]} */ ([...place.querySelectorAll("[data-vocabulary]")]),
    controls = /** @type {HTMLElement} */ (place.querySelector(".ep-controls")),
    caption = /** @type {HTMLElement} */ (place.querySelector("figcaption")),
    [, after] = (caption.textContent ?? "").split(`“${usual.text}”`)
  /** @type {Map<HTMLElement, Merges>} */
  const known = new Map(),
    own = new Map(rows.map(row => [row, row.appendChild(document.createElement("div"))]))
  for (const one of own.values()) one.className = "own"
  let text = usual.text,
    problem = "",
    isBusy = false
  const remember = steps(place, () => ({ values: { text: text === usual.text ? "" : text } }), recall)
  function recall() {
    const rule = (/** @type {string} */ given) => {
        if (given.length <= LONGEST) return given
        throw new Error(`text: longer than ${LONGEST} characters`)
      },
      [given, wrong] = accepted(new URL(location.href).searchParams, { text: rule }, usual)
    text = given.text
    problem = wrong.join(". ")
    if (text !== usual.text && !known.size) void load(rows[0])
    else draw()
  }
  async function load(/** @type {HTMLElement} */ row) {
    isBusy = true
    draw()
    try {
      known.set(row, await loaded(row))
      problem = ""
    } catch (error) {
      problem = error instanceof Error ? error.message : String(error)
    }
    isBusy = false
    draw()
    controls.querySelector("input")?.focus({ preventScroll: true })
  }
  function set(/** @type {string} */ given, /** @type {EventTarget | null} */ field = null) {
    text = given
    remember(field)
    draw()
  }
  function fill(/** @type {HTMLElement} */ row) {
    const { of: model = "", merges = "" } = row.dataset,
      mine = known.get(row),
      isStill = !mine && text === usual.text, // as it was served
      pieces = mine ? cut(mine, text) : [],
      count = mine ? `${pieces.length} token${pieces.length === 1 ? "" : "s"}` : "not loaded"
    for (const one of /** @type {NodeListOf<HTMLElement>} */ (row.querySelectorAll(":scope > :not(.own)")))
      one.hidden = !isStill
    render(
      !isStill &&
        html`<p class="ep-panel-title">${`${model}, ${Number(merges).toLocaleString("en")} merges: ${count}`}</p>
          <ol class="ep-tokens" aria-label=${`Tokens of ${model}`}>${drawn(pieces)}</ol>`,
      own.get(row) ?? row,
    )
  }
  const kilobytes = (/** @type {HTMLElement} */ { dataset: { bytes } }) => `${Math.round(Number(bytes) / 1000)} kB`
  const button = (/** @type {HTMLElement} */ row) =>
    html`<button type="button" disabled=${isBusy} onclick=${() => load(row)}>
      ${known.size ? `Cut it by ${row.dataset.of}’s, too` : "Try a text of your own"} (${kilobytes(row)})
    </button>`
  function draw() {
    for (const row of rows) fill(row)
    caption.textContent = `“${text}”${after}`
    const next = rows.find(row => !known.has(row)),
      typed = (/** @type {any} */ { target }) => set(target.value, target)
    render(
      html`<form class="ep-whatif" onsubmit=${(/** @type {Event} */ event) => event.preventDefault()}>
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
          ${next && button(next)}
          ${known.size > 0 && html`<button type="button" onclick=${() => set(usual.text)}>Reset</button>`}
        </div>
        ${alert(problem)}
      </form>`,
      controls,
    )
  }
  recall()
}
