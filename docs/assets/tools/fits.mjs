// What fits: the models that fit on a machine, the largest first; or the formats of a model, and the machines that it
// fits on.

import { machine, Problem, shorten } from "../conditions.mjs"
import { BEST, capacitiesIn } from "../fitting.mjs"
import { differing } from "./address.mjs"
import { linkTo, takenBack } from "./cells.mjs"
import { answer, conditionsOf } from "./fits/answer.mjs"
import { COLUMNS, view } from "./fits/view.mjs"
import { conditionRules, data, isAbout, modelsByFamily, oneListed, pause } from "./kit.mjs"
import { Begun } from "./tool.mjs"

/** @type {Record<string, string>} */
const DEFAULTS = {
  ...{ model: "", on: "24GB", context: "32768", batch: "1", weights: BEST, cache: "bfloat16", devices: "1" },
  ...{ family: "", kind: "", licence: "", least: "", most: "", sort: "", order: "" },
}
const SIZES = ["100M", "1B", "3B", "10B", "30B", "100B", "300B"]
/** @typedef {Record<string, string[]>} Filters what there is to choose from, by the names of the fields */

export async function mount(/** @type {HTMLElement} */ place) {
  const { models, accelerators } = await data(),
    filters = filtersOf([...(await capacitiesIn(BEST)).values()], models)
  await pause()
  /** @type {(value?: unknown) => void} */
  let isDrawn
  const drawn = new Promise(resolve => {
    isDrawn = resolve
  })
  const tool = new Begun(place, {
    defaults: DEFAULTS,
    rules: rulesOf(models, accelerators, filters),
    readsFormats: true,
    recalled: (_, values) => ({
      ...values,
      isFiltered: values.isFiltered || Object.keys(filters).some(name => values[name]),
    }),
    address: values => ({ values: differing(values, DEFAULTS, ["on", "context"]) }),
    answer(values, _, going) {
      if (values.model) place.removeAttribute("aria-busy")
      const on = machine(values.on, accelerators),
        asked = { values: { ...values }, models, accelerators, given: conditionsOf(values), on }
      return answer(asked, part => {
        const goesOn = place.isConnected && going(part)
        if (part) isDrawn()
        return goesOn
      })
    },
    // What a model does not allow, and then the model.
    leave: values => takenBack(values, { weights: BEST, devices: "1" }, { model: "" }),
    invalid: said => Object.keys(DEFAULTS).filter(isAbout(said)),
    view: shown => view(shown, doing),
  })
  const shows = () => tool.box.querySelector(".ep-answer")?.scrollIntoView({ block: "nearest" })
  /** @type {import("./fits/view.mjs").Doing} */
  const doing = {
    ...{ groups: [["", "All models"], ...modelsByFamily(models)], filters, accelerators },
    typed: field => void (tool.typed(field) && tool.change({}, field)),
    take: values => void tool.take(values),
    sorted(sort, order) {
      Object.assign(tool.shown.values, { sort, order })
      tool.remember()
    },
    link: (text, to, sort) => linkTo(tool, text, { sort: "", order: "", ...to }, sort, shows),
    busy: isBusy => place.setAttribute("aria-busy", `${isBusy}`),
  }
  await Promise.race([tool.recall(), drawn]) // models over several devices come one by one
  await pause()
  tool.show()
}

/**
 * @param {import("../fitting.mjs").Able[]} all
 * @param {import("./figures.mjs").Models} models
 * @returns {Filters}
 */
const filtersOf = (all, models) => ({
  family: [...new Set([...models.values()].map(one => one.read("family")))].sort(),
  kind: [...new Set(all.map(one => one.kind))],
  licence: [...new Set(all.map(one => one.licence))].sort(),
  ...{ least: SIZES, most: SIZES },
})
/**
 * What is valid in an address.
 * @param {import("./figures.mjs").Models} models
 * @param {Map<string, Engine.Accelerator>} accelerators
 * @param {Filters} filters
 * @returns {Record<string, import("./address.mjs").Rule>}
 */
function rulesOf(models, accelerators, filters) {
  const known = conditionRules(accelerators)
  const among = (/** @type {string} */ name, /** @type {string[]} */ texts) => (/** @type {string} */ text) => {
    if (text === "" || texts.includes(text)) return text
    throw Problem(`${name} = ${shorten(text)}: no such choice`, "choose one from the list")
  }
  const lists = { ...filters, sort: Object.values(COLUMNS), order: ["ascending", "descending"] }
  return {
    ...known,
    weights: text => (text.toLowerCase() === BEST ? BEST : known.weights(text)),
    model: text => (text === "" ? "" : oneListed("model", text, models)),
    ...Object.fromEntries(Object.entries(lists).map(([name, texts]) => [name, among(name, texts)])),
  }
}
