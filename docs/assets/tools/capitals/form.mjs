// The small model, asked: the form with the sentence and how its next word is chosen.

import { combobox } from "../combobox.mjs"
import { Component, html, labelled, pairs, refusals, select, stay } from "../view.mjs"
import { list, start } from "./answer.mjs"
import { choosing } from "./choosing.mjs"
import { LONGEST } from "./rules.mjs"

/**
 * @typedef {import("./answer.mjs").State} State
 * @typedef {object} Shown what the form is drawn of
 * @property {import("./answer.mjs").Facts} facts
 * @property {State} state
 * @property {string | null} at the field that one is in
 * @property {import("./answer.mjs").Answer | null} answer
 * @property {import("./answer.mjs").Own | null} own
 * @property {import("./small.mjs").Small["config"] | null} config once there are results
 * @property {boolean} isPatching whether the other sentence's fields are open
 * @property {string} message instead of the text
 * @property {string[]} refused
 * @typedef {object} Doing what can be done
 * @property {(field: HTMLInputElement | HTMLSelectElement) => void} changed
 * @property {(text: string) => void} typed
 * @property {() => void} next
 * @property {() => void} draw
 * @property {() => void} remove
 * @property {() => void} touched
 * @property {(isPatching: boolean) => void} patching
 */

/** @param {Shown} shown @param {Doing} doing */
export function form(shown, doing) {
  const { answer, message, refused } = shown,
    made = answer?.made
  return html`
    <form class="ep-whatif" onsubmit=${stay}
      oninput=${(/** @type {any} */ { target }) => doing.changed(target)} onfocusin=${doing.touched}
      onpointerover=${doing.touched}>
      <div class="ep-row">${sentence(shown)}</div>
      <${OwnText} own=${shown.own} typed=${doing.typed} />
      <div class="ep-row">${chosenBy(shown, doing)}</div>
      <div class="ep-row">${looks(shown)}</div>
      ${patching(shown, doing)}
    </form>
    ${refusals(refused)}
    <p class="ep-answer" role="status">
      ${
        message ||
        (made
          ? [
              made.text.slice(0, made.begun).join(" "),
              made.text.slice(made.begun).map(word => [" ", html`<strong>${word}</strong>`]),
              made.isFull ? "" : " …",
            ]
          : answer && shown.state.text && "Write a word that the model knows.")
      }
    </p>`
}

/**
 * The value of a field, but for the one that somebody is in: there stands what was typed.
 * @param {Shown} shown
 * @param {keyof State} name
 */
const valueOf = ({ state, at }, name) => (at === name ? undefined : state[name])
/** @param {Shown} shown @param {keyof State} name @param {import("../view.mjs").Groups} groups */
const choice = (shown, name, groups) => select(name, groups, /** @type {any} */ (valueOf(shown, name)))

/** @param {Shown} shown */
function sentence(shown) {
  const { countries, sentences } = shown.facts
  return [
    labelled(
      "Country",
      choice(
        shown,
        "country",
        countries.map(c => [c.country, c.country.replace(/^the /, "The ")]),
      ),
    ),
    labelled(
      "Sentence",
      choice(
        shown,
        "sentence",
        sentences.map((s, i) => [`${i}`, `${start(s).replace(/\{\w+\}/, "…")} …`]),
      ),
    ),
  ]
}
/** How the next word is chosen. @param {Shown} shown @param {Doing} doing */
const chosenBy = (shown, doing) => {
  const { answer, state } = shown
  return choosing(
    {
      one: "word",
      isAtEnd: answer !== null && (!answer.made || answer.unknown !== null || answer.made.isFull),
      isWhole: answer !== null && !list(state.added).length,
      temperature: state.temperature,
      valueOf: name => valueOf(shown, name),
    },
    doing,
  )
}
/** The layer and the head that the tables are of. @param {Shown} shown */
function looks(shown) {
  const { config } = shown
  if (!config) return null
  return [
    labelled("Layer", choice(shown, "layer", pairs(Array(config.n_layer).keys()))),
    labelled("Head", choice(shown, "head", pairs(Array(config.n_head).keys()))),
  ]
}
/** The fields for another sentence: the same with another country, or any. @param {Shown} shown @param {Doing} doing */
function patching(shown, { patching }) {
  const { state, facts, answer, isPatching } = shown,
    problem = answer?.problem ?? ""
  const names = pairs(facts.countries.map(({ country }) => country))
  const field = html`<input type="text" name="other" class="ep-own-text" autocomplete="off" autocapitalize="off"
    spellcheck=${false} maxlength=${LONGEST} aria-describedby="ep-other" value=${valueOf(shown, "other")}
    aria-invalid=${problem !== "" && state.other !== "" ? "true" : "false"} />`
  return html`<details class="ep-more" open=${isPatching || state.with !== "" || state.other !== ""}
    ontoggle=${(/** @type {any} */ { target }) => patching(target.open)}>
    <summary>Patch from another sentence</summary>
    <div class="ep-row">
      ${labelled("The same, with", choice(shown, "with", [["", "none"], ...names]))}
      ${labelled("Or another sentence", field)}
    </div>
    <p id="ep-other" class="ep-own-note">${problem}</p>
  </details>`
}

/**
 * The field for a text of the reader's own, with a list of what may complete it.
 * @typedef {{ own: import("./answer.mjs").Own | null, typed: (text: string) => void }} Owned
 * @extends {Component<Owned, { isOpen: boolean }>}
 */
class OwnText extends Component {
  state = { isOpen: false }
  /** @type {Record<string, any>} */
  parts = {}
  /** @type {import("../combobox.mjs").Moves | undefined} */
  moves
  offered() {
    return (this.state.isOpen && this.props.own?.offered.words) || []
  }
  componentDidUpdate() {
    this.moves?.stop()
    if (this.offered().length) this.moves?.start()
  }
  async focused() {
    this.moves ??= await combobox(this.parts.field, this.parts.list, "none")
    if (this.offered().length) this.moves.start()
  }
  typed() {
    this.setState({ isOpen: true })
    this.props.typed(this.parts.field.value)
  }
  take(/** @type {string} */ word) {
    const { field } = this.parts
    field.value = `${field.value.slice(0, this.props.own?.offered.start)}${word} `
    this.typed()
  }
  /** @param {Owned} props */
  render({ own }) {
    const offered = this.offered(),
      ref = (/** @type {string} */ name) => (/** @type {Element} */ element) => void (this.parts[name] = element),
      close = () => this.setState({ isOpen: false })
    const field = html`<input ref=${ref("field")} type="text" name="text" class="ep-own-text" role="combobox"
      aria-controls="ep-completions" aria-expanded="false" aria-describedby="ep-own-text" autocomplete="off"
      autocapitalize="off" spellcheck=${false} maxlength=${LONGEST} value=${own?.value}
      aria-invalid=${own?.unknown ? "true" : "false"} oninput=${() => this.typed()} onfocus=${() => this.focused()}
      onblur=${close} onkeydown=${(/** @type {KeyboardEvent} */ { key }) => key === "Escape" && close()} />`
    return html`<div class="ep-own">
      ${labelled("Your own sentence", field)}
      <ul ref=${ref("list")} id="ep-completions" role="listbox" aria-label="Words of the model"
        hidden=${!offered.length}
        onmousedown=${(/** @type {Event} */ event) => event.preventDefault() /* the field keeps the focus */}
        oncombobox-commit=${(/** @type {any} */ { target }) => this.take(target.textContent ?? "")}>
        ${offered.map(word => html`<li key=${word} role="option">${word}</li>`)}
      </ul>
      <p id="ep-own-text" class="ep-own-note">${own && note(own)}</p>
    </div>`
  }
}
/** @param {import("./answer.mjs").Own} own */
const note = ({ unknown, near, words }) =>
  unknown
    ? [
        html`<span class="ep-wrong">${`“${unknown}” is unknown: `}</span>`,
        `the model has a token for each of its ${words} words, and none for a part of a word. `,
        near === null ? "" : `Did you mean “${near}”? `,
        "The numbers below are of the words before it.",
      ]
    : `Any words of the ${words} that the model knows, in any order.`
