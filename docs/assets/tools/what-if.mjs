// What if: a model with changed hyperparameters under any conditions; also for a config.json of the reader's own.

import { machine, madeFor, pause } from "../model.mjs"
import { about, conditionRules, data, modelOf, modelsByFamily, one, oneListed } from "./kit.mjs"
import { loadRuns } from "./runs.mjs"
import { Begun, finder } from "./tool.mjs"
import { html } from "./view.mjs"
import * as choosing from "./what-if/answer.mjs"
import { view } from "./what-if/view.mjs"

const drawing = () => import("./map.mjs")

export async function mount(/** @type {HTMLElement} */ place) {
  const site = await data()
  await pause()
  const { atlas, models, tool: which } = place.dataset,
    own = which === "config" ? await import("./what-if/own.mjs") : null,
    source = own ? new own.OwnConfig(() => tool) : listedModels(modelsByFamily(site.models)),
    defaults = choosing.defaultsOf(models, site)
  if (!own) drawing() // at once; otherwise with the first config
  const tool = new Begun(place, {
    defaults,
    drafts: ["name"],
    rules: {
      ...conditionRules(site.accelerators),
      ...(own ? {} : { model: (/** @type {string} */ text) => oneListed("model", text, site.models) }),
    },
    recalled: (given, values, wrong) =>
      choosing.recalled(given, location.hash, /** @type {choosing.Values} */ (values), wrong, own?.keysIn),
    address: values => choosing.address(values, !!own),
    answer: (values, wrong) => answered(values, wrong, source, site, !!own),
    leave: (values, said, isLast) => choosing.leave(values, defaults, said, isLast),
    invalid: (said, shown) => choosing.invalid(said, shown.values, shown.invalid),
    view: shown => view(shown, { ...doing, site, given: source.fields(shown) }),
  })
  const doing = doingOf(tool, atlas)
  await tool.recall()
  await pause()
  tool.show()
}

/**
 * @param {choosing.Values} values
 * @param {string[]} wrong
 * @param {ReturnType<typeof listedModels> | import("./what-if/own.mjs").OwnConfig} source
 * @param {import("./figures.mjs").Data} site
 * @param {boolean} isOwn
 */
async function answered(values, wrong, source, { models, accelerators }, isOwn) {
  const { keys, ...known } = await source.keysOf(values)
  if (!keys) return null
  const { AreaMap } = await drawing()
  const before = await modelOf(keys, known.stored),
    now = await modelOf(await choosing.changedKeys(before, values, wrong, known.stored), known.stored),
    on = machine(values.on, accelerators),
    name = isOwn ? values.title || "This model" : (models.get(values.model)?.read("name") ?? values.model),
    where = one(values.on, on.name, accelerators),
    choice = choosing.choiceOf(values),
    asked = { before, now, choice, on, where, name, context: isOwn ? madeFor(now) : known.context }
  await loadRuns(on.accelerator)
  const answer = choosing.answer(asked)
  if (answer.lacking) answer.said[3] += await (await import("../fitting.mjs")).instead(now, answer.lacking, on)
  return { AreaMap, now, before, name, known, ...source.file, ...answer }
}

/**
 * What can be done with the tool.
 * @param {Begun} tool
 * @param {string | undefined} atlas its address
 * @returns {Omit<import("./what-if/view.mjs").Doing, "site" | "given">}
 */
const doingOf = (tool, atlas) => ({
  typed(field) {
    if (tool.typed(field)) tool.change(field.name === "model" ? { set: new Map() } : {}, field)
  },
  set(key, field) {
    const text = field.type === "checkbox" ? `${field.checked}` : field.value.trim(),
      set = new Map(tool.shown.values.set)
    Object.assign(tool.shown, { typed: { ...tool.shown.typed, [`set.${key}`]: text }, at: `set.${key}` })
    if (text === "") set.delete(key)
    else set.set(key, text)
    tool.change({ set }, field)
  },
  take: name => void tool.change({ way: tool.shown.values.way === name ? null : name, set: new Map() }),
  atlas: atlas
    ? ({ name, now }) => `${atlas}?mark=${encodeURIComponent(name)}${choosing.hashOf({ own: now.raw })}`
    : null,
  reset: () => void tool.change({ set: new Map(), way: null }),
  left: () => tool.left(),
  copyLink,
})

/**
 * A model of the site.
 * @param {import("./view.mjs").Groups} groups
 */
const listedModels = groups => ({
  file: { listed: null },
  /** @returns {Promise<Partial<import("./figures.mjs").Listed>>} */
  keysOf: (/** @type {any} */ values) => about(values.model),
  fields: (/** @type {import("./tool.mjs").Shown} */ { values }) =>
    html`<div class="ep-row">${finder("Model", "model", groups, values.model)}</div>`,
})
async function copyLink(/** @type {{ target: HTMLElement }} */ { target }) {
  try {
    await navigator.clipboard.writeText(location.href)
    target.textContent = "Copied"
  } catch {
    target.textContent = "Copy it from the address bar"
  }
  setTimeout(() => {
    target.textContent = "Copy link"
  }, 1500)
}
