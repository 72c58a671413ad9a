// A model with changed hyperparameters: its fields, what it comes to, and where its parameters are.

import { fieldsOf, py } from "../../model.mjs"
import { difference, grouped, json } from "../kit.mjs"
import { conditionFields, exact, MachineFields } from "../tool.mjs"
import { alert, Folded, html, Kept, refusals, show, stay } from "../view.mjs"
import { VARIATIONS } from "./answer.mjs"

/**
 * @typedef {import("../view.mjs").Child} Child
 * @typedef {import("./answer.mjs").Choice & { values: Record<string, string> }} Choice
 * @typedef {import("../tensors.mjs").Tensors} Tensors of a file
 * @typedef {object} Of what an answer is of
 * @property {typeof import("../map.mjs").AreaMap} AreaMap
 * @property {Engine.Model} now
 * @property {Engine.Model} before
 * @property {string} name
 * @property {Pick<import("../figures.mjs").Listed, "page" | "caveat">} known
 * @property {Tensors?} listed
 * @property {((model: Engine.Model, listed: Tensors) => Child) | undefined} reconciled
 * @typedef {import("./answer.mjs").Answer & Of} Answer
 * @typedef {object} Doing what can be done
 * @property {Child} given where a model is chosen, or written
 * @property {import("../figures.mjs").Data} site
 * @property {(field: HTMLInputElement) => void} typed
 * @property {(key: string, field: HTMLInputElement) => void} set
 * @property {(way: string) => void} take
 * @property {() => void} left
 * @property {() => void} reset
 * @property {((answer: Answer) => string) | null} atlas its address with this model marked
 * @property {(event: any) => void} copyLink
 */

/** @param {import("../tool.mjs").Shown} shown @param {Doing} doing */
export const view = (shown, doing) => {
  /** @type {Answer} */
  const answer = shown.answer,
    { context, batch, weights, cache, devices } = conditionFields(shown, doing.site.accelerators),
    [uncounted, head, fits, rest] = answer?.said ?? []
  return html`
    <form class="ep-whatif" onsubmit=${stay}
      oninput=${(/** @type {any} */ { target }) => doing.typed(target)} onfocusout=${doing.left}>
      ${doing.given}
      <div class="ep-ways" role="group" aria-label="Example changes">${answer && ways(answer, shown, doing)}</div>
      <fieldset class="ep-row">
        <legend>Conditions</legend>
        ${context}${batch}${weights}${cache}
        <${MachineFields} fields=${shown} accelerators=${doing.site.accelerators} />${devices}
      </fieldset>
      ${refusals(shown.refused)}${alert(shown.problem)}
      <p class="ep-answer" role="status">
        ${uncounted && html`<strong class="ep-unknown">${uncounted}</strong>`}
        ${head}${fits && html`<strong>${fits}</strong>`}${rest}
      </p>
      <details class="ep-hyper" open>
        <summary>Hyperparameters</summary>
        <div class="ep-fields">${answer && fields(answer, shown, doing)}</div>
      </details>
      <div class="ep-row">
        <button type="button" onclick=${doing.reset}>Reset</button>
        <button type="button" onclick=${doing.copyLink}>Copy link</button>
        ${answer && doing.atlas && html`<a href=${doing.atlas(answer)}>Mark in the atlas</a>`}
      </div>
    </form>
    <div class="ep-results" hidden=${!answer}>${answer && results(answer, doing.site)}</div>`
}

/** @param {Answer} answer @param {import("../tool.mjs").Shown} shown @param {Doing} doing */
const ways = ({ before }, { values }, { take }) =>
  (before.ways ??= [...VARIATIONS.map.values()]
    .map(([, way]) => way)
    .filter(way => way.change(before.raw, before.config))).map(
    ({ name, says, title }) =>
      html`<button type="button" key=${name} aria-pressed=${values.way === name} data-way=${name} title=${says}
          onclick=${() => take(name)}>${title}</button>`,
  )

/**
 * The fields of the hyperparameters: sizes first, what else there is folded.
 * @param {Answer} answer
 * @param {import("../tool.mjs").Shown} shown
 * @param {Doing} doing
 */
function fields({ now, name }, shown, { set }) {
  const all = [...fieldsOf(py.type(now.config))],
    keyed = all.filter(f => f.key && !(now.config[f.field] instanceof py.Dict)),
    others = keyed.filter(f => !f.is_size),
    field = (/** @type {Engine.Field} */ f) => fieldOf(f, now.config[f.field], shown, set),
    kind = `${name} ${now.architecture} ${all.map(f => f.key)}`
  return [
    keyed.filter(f => f.is_size).map(field),
    others.length > 0 &&
      html`<details key=${kind}>
        <summary>Flags, intervals and lists by layer</summary>
        <div class="ep-fields">${others.map(field)}</div>
      </details>`,
  ]
}
/**
 * @param {Engine.Field} f
 * @param {any} value of the model that is shown
 * @param {import("../tool.mjs").Shown} shown
 * @param {Doing["set"]} set
 */
function fieldOf({ key, field, is_size: isSize }, value, { values, typed, invalid }, set) {
  const isWhole = isSize || typeof value === "bigint",
    text = typed[`set.${key}`] ?? textOf(value, isSize)
  const kinds =
    typeof value === "boolean"
      ? { type: "checkbox", checked: text === "true" }
      : isWhole
        ? { type: "number", step: "1", min: isSize ? "1" : "0", inputmode: "numeric", value: text }
        : typeof value === "number"
          ? { type: "number", step: "any", value: text }
          : { type: "text", spellcheck: false, value: text }
  return html`<label key=${key} class=${values.set.has(key) ? "ep-changed" : undefined}>
    <span>${field}</span>
    <input name=${key} data-field=${field} title=${`${key} in config.json`} ...${kinds}
      aria-invalid=${invalid.has(`set.${key}`) ? "true" : undefined}
      oninput=${(/** @type {any} */ { target }) => set(key, target)} />
  </label>`
}
/** @param {any} value */
const textOf = (value, isSize = false) =>
  value == null
    ? ""
    : typeof value === "boolean"
      ? `${value}`
      : Array.isArray(value)
        ? json(value)
        : isSize
          ? String(py.int(value))
          : py.str(value)

// Results

/** @typedef {typeof import("./tables.mjs")} Tables */
const tables = () => import("./tables.mjs") // once they are opened

/** @param {Answer} answer @param {import("../figures.mjs").Data} site */
const results = (answer, { titles, colours }) => {
  const { now, before, figures, memory, device, listed } = answer,
    isSame = now === before
  const rows = figures.map(({ title, unit, now, before }) =>
    isSame ? [title, exact(now, unit)] : [title, exact(before, unit), exact(now, unit), difference(now, before, unit)],
  )
  return html`
    <div><${answer.AreaMap} now=${now} before=${before} titles=${titles} colours=${colours} /></div>
    ${show(
      isSame ? "Figures" : "Published and changed",
      isSame ? ["", "#Value"] : ["", "#As published", "#Now", "#Difference"],
      rows,
    )}
    ${show(
      `Memory of ${device}`,
      ["", "#Bytes", "#Share"],
      memory.map(([title, n, share]) => [title, exact(n, "bytes"), share]),
    )}
    <${Kept} of=${[now, listed]}>${() => html`<div>${more(answer)}</div>`}<//>
    <${Folded} title="Parameters by part" load=${tables}>
      ${(/** @type {Tables} */ { parts }) => parts(now, before, titles)}
    <//>
    <${Folded} title="Every tensor, with its formula" load=${tables}>
      ${(/** @type {Tables} */ { tensors }) => tensors(now, before)}
    <//>`
}
// What depends only on the hyperparameters.
const more = (/** @type {Answer} */ { now, known: { page, caveat }, name, listed, reconciled }) => html`
  <p class="ep-formula">
    ${"Total: "}<code>${py.str(now.counts.total_poly)}</code>${" = "}
    <code>${now.counts.total_poly.text(name => grouped(py.int(now.counts.trace.symbols.read(name))))}</code>
    ${` = ${grouped(now.counts.total)}`}
  </p>
  ${listed && reconciled?.(now, listed)}${now.otherwise.map(line => html`<p>${line}.</p>`)}
  ${now.unknown.length > 0 && html`<p>Ignored keys: ${[...now.unknown].join(", ")}.</p>`}
  <p class="ep-conventions">
    ${`Times are lower bounds. ${caveat ? `${caveat} ` : ""}`}
    ${page && html`<a href=${new URL(page, new URL("../../../", import.meta.url))}>All about ${name}</a>`}
  </p>`
