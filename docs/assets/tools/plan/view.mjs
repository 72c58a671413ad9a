// A plan, drawn: the tasks, the fields that all share and those of one, and its answer.

import { rowsOf } from "../cells.mjs"
import { conditionFields, finder, held, MachineFields } from "../tool.mjs"
import { alert, html, labelled, optionsOf, refusals, show, stay } from "../view.mjs"

/**
 * @typedef {object} Doing what can be done
 * @property {import("../view.mjs").Groups} groups of models
 * @property {Map<string, Engine.Accelerator>} accelerators
 * @property {[name: string, task: { title: string }][]} tasks
 * @property {string} task that is chosen
 * @property {string[]} shared its fields that others have too
 * @property {import("./fields.mjs").Field[]} fields of its own
 * @property {string[]} idle of these, what does nothing
 * @property {(field: HTMLInputElement) => void} typed
 * @property {(task: string) => void} turn to another task
 * @property {import("../cells.mjs").Link} link
 */

/** @param {import("../tool.mjs").Shown} shown @param {Doing} doing */
export const view = (shown, doing) => {
  const { tasks, task, fields, idle, turn, link } = doing,
    /** @type {import("../plan.mjs").Answer | null} */
    answer = shown.answer
  return html`
    <form class="ep-whatif" onsubmit=${stay} oninput=${(/** @type {any} */ { target }) => doing.typed(target)}>
      <div class="ep-ways" role="group" aria-label="Task">
        ${tasks.map(
          ([name, { title }]) =>
            html`<button type="button" data-task=${name} aria-pressed=${name === task}
              onclick=${() => turn(name)}>${title}</button>`,
        )}
      </div>
      <fieldset class="ep-row">
        <legend>Model, machine and conditions</legend>
        ${sharedFields(shown, doing)}
      </fieldset>
      <fieldset class="ep-row" key=${task}>
        <legend>${tasks.find(([name]) => name === task)?.[1].title}</legend>
        ${fields.map(one => one.label && fieldOf(one, shown, idle))}
      </fieldset>
      ${refusals(shown.refused)}${alert(shown.problem)}
    </form>
    <p class="ep-answer" role="status">${answer && html`<strong>${answer.said[0]}</strong>`}${answer?.said[1]}</p>
    <div class="ep-stacks">
      ${answer?.tables.map(({ caption, head, rows }) => show(caption, head, rowsOf(rows, link)))}
    </div>
    <p class="ep-conventions">${answer?.notes.join(" ")}</p>`
}

/** @param {import("../tool.mjs").Shown} shown @param {Doing} doing */
function sharedFields(shown, { groups, accelerators, shared }) {
  const conditions = Object.entries(conditionFields(shown, accelerators))
  return [
    finder("Model", "model", groups, shown.values.model),
    html`<${MachineFields} fields=${shown} accelerators=${accelerators} />`,
    conditions.map(([name, field]) => shared.includes(name) && field),
  ]
}
/**
 * @param {import("./fields.mjs").Field} field
 * @param {import("../tool.mjs").Shown} shown
 * @param {string[]} idle
 */
function fieldOf({ label, name, groups, isFound, attributes }, shown, idle) {
  if (groups && isFound) return finder(label, name, groups, shown.values[name])
  const field = groups
    ? html`<select ...${held(shown, name)}>${optionsOf(groups)}</select>`
    : html`<input spellcheck=${false} autocomplete="off" size="8" ...${attributes} ...${held(shown, name)} />`
  return labelled(label, field, idle.includes(name))
}
