// Where each word looks, drawn: the chosen head large, all heads small, and the form.

import { percent, small as thumb, two } from "../capitals/matrices.mjs"
import { notKnown } from "../own_words.mjs"
import { alert, html, labelled, select, stay } from "../view.mjs"
import { answer, LONGEST } from "./answer.mjs"

/**
 * @typedef {import("./answer.mjs").Chosen} Chosen
 * @typedef {object} Shown
 * @property {import("./answer.mjs").Looks} looks
 * @property {Chosen} chosen
 * @property {string} problem
 * @property {{ word: string, others: string[], end: string } | null} strange
 * @typedef {object} Doing what is there, and what can be done
 * @property {string[]} names of the heads
 * @property {string[]} habits of each
 * @property {string} caption
 * @property {string} [choose] the page that explains a number
 * @property {Chosen} defaults
 * @property {import("../choices.mjs").Set} set
 */

/** @param {Shown} shown @param {Doing} doing */
export const view = (shown, doing) => {
  const { looks, chosen } = shown,
    { words } = looks,
    said = answer(looks, chosen, doing.names),
    { row, most, share } = said
  return html`<figure class="ep-figure">
    <div class="ep-looks">
      <div>
        ${large(looks, said, chosen, doing)}
        <p class="ep-looks-at">
          <output aria-live="polite">
            ${`“${words[row]}” looks most at “${words[most]}”: ${percent(share)} of its attention.`}
          </output>
        </p>
      </div>
      <ol class="ep-small-heads" aria-label="All heads">
        ${doing.names.map((name, i) => small(looks.heads[i], name, i, i === said.n, doing))}
      </ol>
    </div>
    <div class="ep-controls">${form(shown, row, doing)}</div>
    <figcaption>${doing.caption}</figcaption>
  </figure>`
}

/**
 * The chosen head, each number of which leads to what it is made of.
 * @param {import("./answer.mjs").Looks} looks
 * @param {ReturnType<typeof answer>} said
 * @param {Chosen} chosen
 * @param {Doing} doing
 */
function large({ words, heads }, { n, row, name }, { head }, { choose, set }) {
  const there = (/** @type {number} */ i, /** @type {number} */ j) =>
    `${choose}?${new URLSearchParams({ text: words.join(" "), number: `share/${head.replace(".", "/")}/${i}/${j}` })}`
  const cell = (/** @type {number | null} */ x, /** @type {number} */ i, /** @type {number} */ j) => {
    if (x === null) return html`<td class="num masked"></td>`
    const steps = Math.ceil(4 * x - 1e-9)
    return html`<td class=${`num ${steps ? `plus-${steps}` : ""}`}>
      ${choose ? html`<a href=${there(i, j)} tabindex=${i || j ? -1 : 0}>${two(x)}</a>` : two(x)}
    </td>`
  }
  return html`<div class="ep-scroll" tabindex="0" role="group" aria-label=${`${name}: where each word looks`}>
    <table class="ep-table ep-matrix">
      <caption>${name}</caption>
      <thead><tr><td></td>${words.map(word => html`<th scope="col" class="num">${word}</th>`)}</tr></thead>
      <tbody>
        ${words.map(
          (word, i) => html`<tr class=${i === row ? "lit" : undefined} onclick=${() => set({ word: `${i + 1}` })}>
            <th scope="row">${word}</th>${heads[n][i].map((x, j) => cell(x, i, j))}
          </tr>`,
        )}
      </tbody>
    </table>
  </div>`
}
/**
 * @param {import("./answer.mjs").Shares} shares
 * @param {string} name
 * @param {number} i
 * @param {boolean} isChosen
 * @param {Doing} doing
 */
const small = (shares, name, i, isChosen, { habits, set }) =>
  html`<li class=${isChosen ? "lit" : undefined}>
    <button type="button" class="ep-small-head" aria-pressed=${`${isChosen}`} onclick=${() => set({ head: name })}>
      ${thumb(shares.map(row => row.map(x => x ?? 0)))}
      <b>${name}</b><small>${habits[i] || "no single habit"}</small>
    </button>
  </li>`

/** @param {Shown} shown @param {number} row @param {Doing} doing */
function form({ looks: { words }, chosen, strange, problem }, row, { names, habits, defaults, set }) {
  const choice = (/** @type {"word" | "head"} */ name, /** @type {[string, string][]} */ options, value = "") =>
    select(name, options, value, { onchange: (/** @type {any} */ { target }) => set({ [name]: target.value }) })
  const text = html`<input type="text" name="text" maxlength=${LONGEST} value=${chosen.text} autocomplete="off"
    spellcheck=${false} oninput=${(/** @type {any} */ { target }) => set({ text: target.value, word: "" }, target)} />`
  return html`<form class="ep-whatif" onsubmit=${stay}>
    <div class="ep-row">
      ${labelled(
        "Word",
        choice(
          "word",
          words.map((word, i) => [`${i + 1}`, word]),
          `${row + 1}`,
        ),
      )}
      ${labelled(
        "Head",
        choice(
          "head",
          names.map((name, i) => [name, habits[i] ? `${name}, ${habits[i]}` : name]),
          chosen.head,
        ),
      )}
      ${labelled("Sentence", text)}
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
}
