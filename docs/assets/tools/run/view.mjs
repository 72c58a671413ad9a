// A checkpoint that runs: where its files and its text are given.

import { choosing } from "../capitals/choosing.mjs"
import { alert, html, labelled, refusals, stay } from "../view.mjs"
import { addedOf, LONGEST } from "./answer.mjs"

/**
 * @typedef {import("../view.mjs").Child} Child
 * @typedef {import("./answer.mjs").State} State
 * @typedef {import("./answer.mjs").Answer} Answer
 * @typedef {import("./answer.mjs").Tasks} Tasks
 * @typedef {object} Shown what the view is drawn of
 * @property {typeof import("./results.mjs").results | null} results which come with the files
 * @property {State} state
 * @property {Partial<State>} typed texts that stand in their fields, and do not run yet
 * @property {import("./answer.mjs").About?} about
 * @property {Answer?} answer
 * @property {{ keyed: string, pictures: Map<string, string> } | null} maps
 * @property {ReturnType<typeof import("./answer.mjs").attentionOf> | null} large
 * @property {{ id: number, parts: any } | null} parts
 * @property {{ of: string, tables: NonNullable<Awaited<ReturnType<Tasks["moved"]>>> } | null} moved
 * @property {{ layer: number, all: Awaited<ReturnType<Tasks["steps"]>>, corner: Awaited<ReturnType<Tasks["corner"]>> |
 *   null } | null} steps
 * @property {Awaited<ReturnType<Tasks["lens"]>> | null} lens
 * @property {boolean} isLens whether it is open
 * @property {boolean} isBusy
 * @property {boolean} isStopped whether the worker has ended since
 * @property {boolean} isDrawn whether the steps and the logit lens can be opened
 * @property {string} said
 * @property {number | null} progress
 * @property {string} problem
 * @property {string[]} refused
 * @typedef {object} Doing what can be done
 * @property {(chosen: Partial<State>) => void} set
 * @property {(chosen: Partial<State>) => void} run the same, and the text again
 * @property {(id: number) => void} append
 * @property {() => void} next
 * @property {() => void} draw
 * @property {() => void} begin
 * @property {() => void} stop
 * @property {() => void} patch each part of a layer
 * @property {(isOpen: boolean) => void} lens
 * @property {(field: HTMLInputElement) => void} typed
 * @property {(files: import("./folder.mjs").Given[]) => void} take
 * @property {(event: DragEvent) => void} drop
 * @property {() => void} small runs the model of this site
 * @property {{ open(place: string): void }} ask
 */

/** @param {Shown} shown @param {Doing} doing */
export function view(shown, doing) {
  const { about } = shown
  return html`
    ${target(doing)}${refusals(shown.refused)}${alert(shown.problem)}
    <div class="ep-row">
      <p class="ep-answer" role="status">${shown.said}</p>
      <progress max="1" value=${shown.progress ?? 0} aria-label="Progress" hidden=${shown.progress === null} />
      <button type="button" hidden=${!shown.isBusy} onclick=${doing.stop}>Stop</button>
    </div>
    <div>${about && summary(about)}</div>
    ${asking(shown, doing)}
    ${shown.results?.(shown, doing)}`
}

const ACCEPTED = ".json,.safetensors,.gguf"

/** Where files are given. @param {Doing} doing */
function target({ take, drop, small }) {
  const onchange = (/** @type {any} */ { target: { files } }) =>
    take([...files].map(file => ({ path: file.webkitRelativePath || file.name, file })))
  return html`<div class="ep-whatif ep-drop ep-target" ondrop=${drop} ondragover=${stay}>
    <p>Drop the folder of a checkpoint or a GGUF file here, or choose it:</p>
    <div class="ep-row">
      <button type="button" onclick=${small}>Run this site’s small model</button>
      ${labelled("Folder", html`<input type="file" multiple webkitdirectory onchange=${onchange} />`)}
      ${labelled("Or files", html`<input type="file" multiple accept=${ACCEPTED} onchange=${onchange} />`)}
    </div>
  </div>`
}
/** @param {import("./answer.mjs").About} about */
const summary = ({ architecture, parameters, bytes, unpacked, types, longest, warnings }) => html`
  <p>
    <strong>${`${architecture}, ${parameters} parameters. `}</strong>
    ${
      `${mb(bytes)} of weights (${types.join(", ")}) are in memory${unpacked ? `, as ${mb(unpacked)}` : ""}. ` +
      `A text may have up to ${longest} tokens.`
    }
  </p>
  ${warnings.map(line => html`<p class="ep-conventions">${line}.</p>`)}`

const mb = (/** @type {number} */ bytes) => `${(bytes / 1e6).toLocaleString("en", { maximumFractionDigits: 1 })} MB`

/** The form. @param {Shown} shown @param {Doing} doing */
function asking({ state, typed, about, answer, isBusy, isStopped }, { begin, next, draw, run, typed: take }) {
  const isOfIds = about !== null && !about.hasTokenizer,
    text = (/** @type {"text" | "source" | "other"} */ name, /** @type {object} */ more = {}) =>
      html`<input type="text" name=${name} autocomplete="off" spellcheck=${false} maxlength=${LONGEST}
        value=${typed[name] ?? state[name]} ...${more} />`
  const submitted = (/** @type {Event} */ event) => {
    event.preventDefault()
    begin()
  }
  const other = { class: "ep-own-text", "aria-describedby": "ep-other", "aria-invalid": Boolean(answer?.problem) }
  return html`<form class="ep-whatif" hidden=${!about} onsubmit=${submitted}
    oninput=${(/** @type {any} */ { target }) => take(target)}>
    <div class="ep-own">
      ${labelled(isOfIds ? "Token ids, separated by commas: there is no tokenizer" : "Text", text("text"))}
    </div>
    ${labelled("Text for the encoder", text("source"), !about?.hasSource)}
    <div class="ep-row">
      <button type="submit" disabled=${isBusy}>Run</button>
      ${choosing(
        {
          one: "token",
          isAtEnd: isBusy || isStopped || !answer || answer.isFull,
          isWhole: isBusy || !state.added,
          temperature: state.temperature,
          valueOf: name => typed[name] ?? state[name],
        },
        { next, draw, remove: () => run({ added: addedOf(state).slice(0, -1).join(",") }) },
      )}
    </div>
    <details class="ep-more" hidden=${about?.hasSource} open=${state.other !== ""}>
      <summary>Patch from another text</summary>
      <p class="ep-conventions">
        A patch takes what the other text made in one place, and puts it where your text made something else.
      </p>
      <div class="ep-row">
        ${labelled(isOfIds ? "As many others" : "Another text, of as many tokens", text("other", other))}
        <button>Read it</button>
      </div>
      <p id="ep-other" class="ep-own-note">${answer?.problem}</p>
    </details>
  </form>`
}
