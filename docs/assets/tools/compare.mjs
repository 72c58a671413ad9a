// Two to four models of the site side by side: what is chosen, by which rules, and how its answer is shown.

import { machine, pause } from "../model.mjs"
import * as choosing from "./compare/answer.mjs"
import { about, conditionRules, data, isAbout, modelOf, modelsByFamily } from "./kit.mjs"
import { Begun, conditionFields, exact, finder, MachineFields } from "./tool.mjs"
import { alert, Folded, html, refusals, show, stay } from "./view.mjs"

export async function mount(/** @type {HTMLElement} */ place) {
  const { models, accelerators } = await data()
  await pause()
  const first = (place.dataset.models ?? "").split(",").filter(slug => models.has(slug)),
    slugs = [...new Set([...first, ...models.keys()])],
    defaults = choosing.defaultsOf(accelerators),
    { context, weights, cache, on } = conditionRules(accelerators),
    groups = modelsByFamily(models)
  const tool = new Begun(place, {
    defaults,
    rules: { context, weights, cache, on },
    recalled: (given, values, wrong) => ({ ...values, models: choosing.recalled(given.get("models"), slugs, wrong) }),
    address: values => ({ values: choosing.address(values) }),
    async answer(values) {
      const slugs = [...values.models],
        files = await Promise.all(slugs.map(about)),
        all = await Promise.all(files.map(({ keys }) => modelOf(keys))),
        names = slugs.map(slug => models.get(slug)?.read("name") ?? slug),
        on = machine(values.on, accelerators),
        asked = { models: all, names, files, values, on, accelerators }
      return { slugs, names, files, ...(await choosing.answer(asked)) }
    },
    leave: values => choosing.leave(values, defaults),
    invalid: said => Object.keys(defaults).filter(isAbout(said)),
    view: shown => view(shown, { groups, accelerators, typed, ...others(shown.values.models) }),
  })
  /** @param {HTMLInputElement} field */
  function typed(field) {
    if (tool.typed(field)) return tool.change({}, field)
    const { models } = tool.shown.values
    return tool.change({ models: models.with(Number(field.name.slice(5)), field.value) }, field)
  }
  const others = (/** @type {string[]} */ chosen) => {
    const [more, less] = choosing.others(chosen, slugs),
      to = (/** @type {string[] | null} */ models) => models && (() => tool.change({ models }))
    return { more: to(more), less: to(less) }
  }
  await tool.recall()
  tool.show()
}

// The view

/**
 * @typedef {import("./compare/answer.mjs").Line} Line
 * @typedef {import("./view.mjs").Child} Child
 * @typedef {{ slugs: string[], names: string[], files: import("./figures.mjs").Listed[] }} Of
 * @typedef {import("./compare/answer.mjs").Answer & Of} Answer
 * @typedef {object} Doing what can be done
 * @property {import("./view.mjs").Groups} groups of models
 * @property {Map<string, Engine.Accelerator>} accelerators
 * @property {(field: HTMLInputElement) => void} typed
 * @property {(() => void) | null} more adds a model, if there may be another
 * @property {(() => void) | null} less
 */
const root = new URL("../../", import.meta.url)

/** @param {import("./tool.mjs").Shown} shown @param {Doing} doing */
const view = (shown, { groups, accelerators, typed, more, less }) => {
  /** @type {Answer} */
  const answer = shown.answer,
    button = (/** @type {string} */ title, /** @type {(() => void) | null} */ does) =>
      does && html`<button type="button" onclick=${does}>${title}</button>`
  return html`
    <form class="ep-whatif" onsubmit=${stay} oninput=${(/** @type {any} */ { target }) => typed(target)}>
      <div class="ep-row">
        ${shown.values.models.map((/** @type {string} */ slug, /** @type {number} */ i) =>
          finder(`Model ${i + 1}`, `model${i}`, groups, slug),
        )}
        ${button("Add model", more)}${button("Remove model", less)}
      </div>
      <div class="ep-row">
        ${conditionFields(shown, accelerators).context}<${MachineFields} fields=${shown} accelerators=${accelerators} />
      </div>
      ${refusals(shown.refused)}${alert(shown.problem)}
    </form>
    <p class="ep-answer" role="status">
      ${answer && html`<strong>${answer.said[0]}</strong>`}${answer?.said[1]}
    </p>
    ${answer && results(answer)}`
}

/** @param {Answer} answer */
const results = ({ figures, parts, sizes, slugs, names, files }) => {
  const head = ["", ...names.map(name => `#${name}`)],
    hasPages = files.every(file => file.page),
    caveats = files.flatMap(file => [file.caveat, file.defaults]).filter(Boolean)
  return html`
    ${show("Figures, with the ratio to the first model", head, figures.map(row))}
    ${show("Where the parameters are", head, parts.map(row))}
    ${show("Hyperparameters; differences that have an effect are marked", head, sizes.map(row))}
    <${Folded} title="Diagrams side by side" hidden=${!hasPages} load=${() => import("./compare/drawings.mjs")}>
      ${(/** @type {typeof import("./compare/drawings.mjs")} */ { Diagrams }) =>
        html`<${Diagrams} key=${slugs.join()} pages=${files.map(({ page }) => new URL(page ?? "", root))} />`}
    <//>
    <div>
      ${caveats.map(caveat => html`<p class="ep-conventions">${caveat}</p>`)}
      <p>
        ${"All about "}
        ${files.map(({ page }, i) => [
          i ? ", " : "",
          page ? html`<a href=${new URL(page, root)}>${names[i]}</a>` : names[i],
        ])}.
      </p>
    </div>`
}
/** @param {Line} line @returns {import("./view.mjs").Row} */
const row = ({ title, unit, cells, isMarked }) =>
  Object.assign(
    [
      title,
      ...cells.map(({ value, ratio, isDefault, split }) => [
        typeof value === "string" ? value : exact(value, unit),
        ratio && html`${" "}<span class="ep-range">${ratio}</span>`,
        isDefault && html`${" "}<span class="ep-mark" title="from a class default in transformers">§</span>`,
        split && html`<span class="ep-range">${` ${split}`}</span>`,
      ]),
    ],
    isMarked ? { cls: "ep-differs" } : {},
  )
