// What if: a model with changed hyperparameters under any conditions; also for a config.json of the reader's own.

import { machine, madeFor, pause, said, shorten } from "../model.mjs"
import { about, conditionRules, data, json, modelOf, modelsByFamily, one, oneListed } from "./kit.mjs"
import { Begun, finder, isAbout } from "./tool.mjs"
import { html } from "./view.mjs"
import { answer, changed, VARIATIONS } from "./what-if/answer.mjs"
import { view } from "./what-if/view.mjs"

/** @type {Record<string, string>} */
const DEFAULTS = {
  ...{ model: "llama3-8b", context: "8192", batch: "1", weights: "published", cache: "bfloat16", on: "h100" },
  devices: "1",
}
const NAMES = Object.keys(DEFAULTS),
  CONDITIONS = NAMES.slice(1)

/**
 * @typedef {Record<string, any> & {
 *   set: Map<string, string>, way: string?, own: Engine.Keys?, text: string, name: string, waiting: string,
 * }} Values what is chosen: the conditions, changes by hand, an example change, the reader's config and its text, the
 *   name of a model instead, and the repository of a hub that is not asked yet
 */

export async function mount(/** @type {HTMLElement} */ place) {
  const site = await data(),
    { models, accelerators } = site,
    groups = modelsByFamily(models)
  await pause()
  const { atlas, tool: which } = place.dataset,
    isOwn = which === "config",
    /** @type {Record<string, string>} */
    defaults = { ...DEFAULTS, model: place.dataset.models ?? DEFAULTS.model }
  if (!models.has(defaults.model)) defaults.model = [...models.keys()][0]
  if (!accelerators.has(defaults.on)) defaults.on = [...accelerators.keys()][0]
  const own = isOwn ? await import("./what-if/own.mjs") : null,
    source = own ? new own.OwnConfig(() => tool) : listedModels(groups)

  const drawing = () => import("./map.mjs")
  if (!isOwn) drawing() // at once; otherwise with the first config
  const tool = new Begun(place, {
    defaults,
    rules: {
      ...conditionRules(accelerators),
      ...(isOwn ? {} : { model: (/** @type {string} */ text) => oneListed("model", text, models) }),
    },
    recalled: (given, values, wrong) => recalled(given, /** @type {Values} */ (values), wrong, own),
    address: values => address(values, isOwn),
    async answer(values, wrong) {
      const { keys, ...known } = await source.keysOf(values)
      if (!keys) return null
      const { AreaMap } = await drawing()
      const before = await modelOf(keys, known.stored),
        now = await modelOf(await changedKeys(before, values, wrong, known.stored), known.stored),
        on = machine(values.on, accelerators),
        name = isOwn ? values.title || "This model" : (models.get(values.model)?.read("name") ?? values.model),
        conditions = Object.fromEntries(CONDITIONS.map(name => [name, values[name]])),
        choice = { set: values.set, way: values.way, values: conditions },
        where = one(values.on, on.name, accelerators),
        asked = { before, now, choice, on, where, name, context: isOwn ? madeFor(now) : known.context }
      return { AreaMap, now, before, name, known, ...source.file, ...answer(asked) }
    },
    leave: (values, said, isLast) => leave(values, defaults, said, isLast),
    invalid: (said, shown) => invalid(said, shown.values, shown.invalid),
    view: shown => view(shown, { ...doing, site, given: source.fields(shown) }),
  })

  /** @type {Omit<import("./what-if/view.mjs").Doing, "site" | "given">} */
  const doing = {
    typed(/** @type {HTMLInputElement} */ field) {
      if (tool.typed(field)) tool.change(field.name === "model" ? { set: new Map() } : {}, field)
    },
    set(/** @type {string} */ key, /** @type {HTMLInputElement} */ field) {
      const text = field.type === "checkbox" ? `${field.checked}` : field.value.trim(),
        set = new Map(tool.shown.values.set)
      Object.assign(tool.shown, { typed: { ...tool.shown.typed, [`set.${key}`]: text }, at: `set.${key}` })
      if (text === "") set.delete(key)
      else set.set(key, text)
      tool.change({ set }, field)
    },
    take: (/** @type {string} */ name) =>
      void tool.change({ way: tool.shown.values.way === name ? null : name, set: new Map() }),
    atlas: !atlas ? null : ({ name, now }) => `${atlas}?mark=${encodeURIComponent(name)}${hashOf({ own: now.raw })}`,
    reset: () => void tool.change({ set: new Map(), way: null }),
    left: () => tool.left(),
    copyLink,
  }

  await tool.recall()
  await pause()
  tool.show()
}

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

// The address

/**
 * @param {URLSearchParams} given
 * @param {Values} values
 * @param {string[]} wrong
 * @param {typeof import("./what-if/own.mjs")?} config of the reader's own
 * @returns {Values}
 */
function recalled(given, values, wrong, config) {
  const set = new Map([...given].flatMap(([name, text]) => (name.startsWith("set.") ? [[name.slice(4), text]] : [])))
  let way = given.get("way"),
    own = location.hash.includes("=") || !location.hash ? null : values.own // the others lead to a heading
  if (way !== null && !VARIATIONS.has(way)) {
    wrong.push(`way = ${shorten(way)}: no such example`)
    way = null
  }
  try {
    if (location.hash.startsWith("#config=")) own = config?.keysIn(decodeURIComponent(location.hash.slice(8))) ?? own
  } catch (error) {
    wrong.push(`config: ${said(error)}`)
  }
  const name = location.hash.startsWith("#name=") ? nameIn(location.hash.slice(6), wrong) : ""
  if (name && name === values.name) own = values.own
  const text = json(own) === json(values.own) ? (values.text ?? "") : own ? json(own) : ""
  return { ...values, ...{ set, way, own, text, name, title: own && name ? values.title : "", waiting: "", note: "" } }
}
/** @param {string} hash @param {string[]} wrong */
function nameIn(hash, wrong) {
  try {
    return decodeURIComponent(hash).slice(0, LONGEST_NAME)
  } catch (error) {
    wrong.push(`name: ${said(error)}`)
    return ""
  }
}
const LONGEST_NAME = 300
/** The address of a choice. @param {any} values @param {boolean} isOwn */
function address(values, isOwn) {
  const names = NAMES.filter(name => values[name] !== DEFAULTS[name] || (name === "model" && !isOwn))
  const said = {
    ...Object.fromEntries(names.map(name => [name, values[name]])),
    way: values.way,
    ...Object.fromEntries([...values.set].map(([key, text]) => [`set.${key}`, text])),
  }
  return isOwn ? { values: said, hash: hashOf(values) } : { values: said }
}

const hashOf = (/** @type {any} */ { name, own }) =>
  name ? `#name=${encodeURIComponent(name)}` : own ? `#config=${encodeURIComponent(json(own))}` : ""

// The rules

/**
 * An example change comes first, changes by hand on top of it.
 * @param {Engine.Model} before
 * @param {Values} values
 * @param {string[]} wrong
 * @param {import("../model.mjs").Stored} [stored]
 */
async function changedKeys(before, values, wrong, stored) {
  const keys = values.way ? VARIATIONS.read(values.way).change(before.raw, before.config) : before.raw
  if (keys) return changed(keys, (await modelOf(keys, stored)).config, values.set, wrong)
  wrong.push(`way = ${shorten(values.way)}: does not apply to this model`)
  values.way = null
  return changed(before.raw, before.config, values.set, wrong)
}
/**
 * Drops the parts of an address that a problem names, or all of them if it names none or problems go on.
 * @param {any} values
 * @param {Record<string, string>} defaults
 * @param {string} said
 * @param {boolean} isLast
 */
function leave(values, defaults, said, isLast) {
  const others = CONDITIONS.filter(name => values[name] !== defaults[name]),
    sets = [...values.set.keys()].filter(key => said.includes(key)),
    named = others.filter(isAbout(said)),
    isAll = isLast || !(sets.length || named.length),
    isAny = Boolean(others.length || values.set.size || values.way)
  for (const key of isAll ? [...values.set.keys()] : sets) values.set.delete(key)
  if (isAll) values.way = null
  for (const name of isAll ? others : named) values[name] = defaults[name]
  return isAny
}
/**
 * The fields that a problem is about: a condition, or hyperparameters that were changed.
 * @param {string} said
 * @param {Values} values
 * @param {Set<string>} known to be invalid
 */
function invalid(said, { set }, known) {
  const condition = CONDITIONS.find(isAbout(said))
  if (condition) return [condition]
  const given = [...set.keys()],
    named = given.filter(key => said.includes(key)),
    isKnown = [...known].some(name => name.startsWith("set."))
  return (named.length || isKnown ? named : given).map(key => `set.${key}`)
}
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
