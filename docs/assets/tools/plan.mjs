// Plan a deployment: a model that an engine serves, on several devices, offloaded, with a draft, or trained.
// Each task is a script of its own, which loads what the engine compiles for it from the Python of the command line.

import { M } from "../engine/base.mjs"
import { machine, Problem, py, shorten } from "../conditions.mjs"
import { differing } from "./address.mjs"
import { linkTo, takenBack } from "./cells.mjs"
import { about, conditionRules, data, givenOf, isAbout, modelOf, modelsByFamily, oneListed } from "./kit.mjs"
import { fetched, pause, said } from "./kit.mjs"
import { changed, several } from "./plan/fields.mjs"
import { view } from "./plan/view.mjs"
import { isPlain, loadRuns, notRun } from "./runs.mjs"
import { Begun } from "./tool.mjs"

/**
 * @typedef {Record<string, string>} State what is chosen, by the names of the fields
 * @typedef {object} Site what there is to choose from
 * @property {import("./figures.mjs").Models} models
 * @property {Map<string, Engine.Accelerator>} accelerators with their links
 * @property {Map<string, bigint>} watts the power that a maker states, by accelerator
 * @property {(slug: string) => string} nameOf a model
 * @property {(slug: string) => Promise<Engine.Model>} modelOf
 * @property {(slug: string) => Promise<bigint[] | null | undefined>} towerOf layers and width of its tower of images
 * @typedef {object} Asked
 * @property {State} state
 * @property {Engine.Model} model
 * @property {string} name of the model
 * @property {Engine.Conditions} given
 * @property {Engine.Machine} on
 * @property {Site} site
 * @typedef {{ caption: string, head: string[], rows: (import("./cells.mjs").Cell[] & { cls?: string })[] }} Table
 * @typedef {object} Answer
 * @property {[head: string, rest: string]} said
 * @property {Table[]} tables
 * @property {string[]} notes
 * @typedef {object} Task
 * @property {State} START what shared fields say instead of their usual text
 * @property {string[]} SHARED the shared fields that it has
 * @property {(site: Site) => import("./plan/fields.mjs").Field[]} fields
 * @property {(state: State) => string[]} [idle] its fields that do nothing
 * @property {(asked: Asked) => Promise<Answer>} answer throws a problem
 */

/** @type {Record<string, { title: string, load: () => Promise<Task> }>} */
const TASKS = {
  engine: { title: "Inference engine", load: () => import("./plan/engine.mjs") },
  devices: { title: "Several devices", load: () => import("./plan/devices.mjs") },
  offload: { title: "Offload to the host", load: () => import("./plan/offload.mjs") },
  speculative: { title: "Speculative decoding", load: () => import("./plan/speculative.mjs") },
  bill: { title: "What a token costs", load: () => import("./plan/bill.mjs") },
  training: { title: "Training", load: () => import("./plan/training.mjs") },
}
/** @type {State} */
const DEFAULTS = {
  model: "llama3.1-8b",
  on: "rtx-4090",
  context: "8192",
  batch: "1",
  weights: "published",
  cache: "bfloat16",
  devices: "1",
}

/**
 * Models, accelerators with their links, and what else there is to choose from.
 * @returns {Promise<Site>}
 */
export async function loaded() {
  const [{ models, accelerators }, more] = await Promise.all([data(), fetched("plan.json")])
  const links = more.read("links")
  return {
    models,
    accelerators: new Map([...accelerators].map(([slug, one]) => [slug, linked(one, links.read(slug, null))])),
    watts: new Map(py.entries(more.read("watts"))),
    nameOf: slug => models.get(slug)?.read("name") ?? slug,
    modelOf: async slug => modelOf((await about(slug)).keys),
    towerOf: async slug => (await about(slug)).tower,
  }
}

export async function mount(/** @type {HTMLElement} */ place) {
  const site = await loaded()
  await pause()
  const planning = new Planning(place, site)
  await planning.recall()
  await pause()
  planning.show()
}

/** The tool with one of its tasks. */
class Planning extends Begun {
  task = "engine"
  /** @type {Task} */
  one = { START: {}, SHARED: [], fields: () => [], answer: () => Promise.reject() }
  /** @type {import("./plan/fields.mjs").Field[]} */
  fields = []

  /** @param {HTMLElement} place @param {Site} site */
  constructor(place, site) {
    const { models, accelerators } = site,
      groups = modelsByFamily(models)
    super(place, {
      defaults: DEFAULTS,
      rules: {},
      recalled(given, values, wrong) {
        const task = given.get("task") ?? "engine"
        if (!Object.hasOwn(TASKS, task)) wrong.unshift(said(noTask(task)))
        return values
      },
      address: values => ({ values: this.addressOf(values) }),
      answer: values => this.answer(values),
      leave: values => this.leave(values),
      invalid: text => Object.keys(this.tool.rules).filter(isAbout(text)),
      view: shown =>
        view(shown, {
          ...{ groups, accelerators, tasks: Object.entries(TASKS), task: this.task },
          ...{ shared: this.one.SHARED, fields: this.fields, idle: this.one.idle?.(shown.values) ?? [] },
          typed: field => void (this.typed(field) && this.change({}, field)),
          turn: name => void this.turnTo(name),
          link: (text, to, sort) => linkTo(this, text, to, sort),
        }),
    })
    this.site = site
  }
  /** Loads a task. @param {string} name */
  async open(name) {
    const one = await TASKS[name].load(),
      known = conditionRules(this.site.accelerators),
      shared = { ...known, model: (/** @type {string} */ text) => oneListed("model", text, this.site.models) }
    this.task = name
    this.one = one
    this.fields = one.fields(this.site)
    const own = (/** @type {"start" | "rule"} */ what) => this.fields.map(field => [field.name, field[what]])
    this.tool.defaults = { ...DEFAULTS, ...one.START, ...Object.fromEntries(own("start")) }
    this.tool.rules = Object.fromEntries([
      ...Object.entries(shared).filter(([field]) => one.SHARED.includes(field)),
      ...own("rule"),
    ])
  }
  /** Another task, with what was chosen for this one. @param {string} name */
  async turnTo(name) {
    if (name === this.task) return
    const { defaults } = this.tool,
      kept = Object.entries(this.shown.values).filter(([field, text]) => field in DEFAULTS && text !== defaults[field])
    await this.open(name)
    const shared = Object.fromEntries(kept.filter(([field]) => this.one.SHARED.includes(field)))
    await this.take({ ...this.tool.defaults, ...shared })
  }
  async recall() {
    const task = new URLSearchParams(location.search).get("task") ?? "engine"
    await this.open(Object.hasOwn(TASKS, task) ? task : "engine")
    await pause()
    await super.recall()
  }
  /** @param {import("./tool.mjs").Values} values */
  async answer(values) {
    const { site, one } = this,
      on = machine(values.on, site.accelerators),
      model = await site.modelOf(values.model),
      given = givenOf(values, on)
    await loadRuns(on.accelerator, this.task === "engine" && !isPlain(model.costs, given))
    await pause()
    const name = site.nameOf(values.model),
      answer = await one.answer({ state: { ...values }, model, name, given, on, site }),
      [head, rest] = answer.said,
      isSaid = this.task === "engine" || !one.SHARED.includes("weights")
    if (isSaid) return answer
    const { instead } = await import("../fitting.mjs"),
      strange = notRun(model.costs, given),
      best = await instead(model, given, on),
      where = `${several(given, on)} ${given.devices > 1n ? "do" : "does"}`,
      whole = `the whole model ${model.counts.formats.phrase(given.format)}`,
      lacking = best && !strange ? ` ${where} not hold ${whole}.` : ""
    return { ...answer, said: [head, rest + strange + lacking + best] }
  }
  /** Drops what was typed into the task's own fields, then what was chosen there, then everything: a wrong option is
   * answered for its own engine. @param {import("./tool.mjs").Values} values */
  leave(values) {
    const { defaults } = this.tool,
      own = Object.fromEntries(Object.entries(defaults).filter(([name]) => !(name in DEFAULTS))),
      chosen = new Set(this.fields.flatMap(({ name, groups }) => (groups ? [name] : []))),
      typed = Object.fromEntries(Object.entries(own).filter(([name]) => !chosen.has(name)))
    return takenBack(values, typed, own, defaults)
  }
  /** The task, what differs from its defaults, and always the model, the machine and the context, if it has them. */
  addressOf(/** @type {import("./tool.mjs").Values} */ values) {
    const always = ["model", "on", "context"].filter(name => this.one.SHARED.includes(name))
    return { task: this.task, ...differing(values, this.tool.defaults, always) }
  }
}

const { Link } = M["counting.accelerators"]
/**
 * An accelerator with what it talks to others by.
 * @param {Engine.Accelerator} one
 * @param {Engine.Dict<string, unknown> | null} link
 */
const linked = (one, link) =>
  link === null ? one : changed(one, { link: py.apply(Link, [], Object.fromEntries(py.entries(link))) })

const noTask = (/** @type {string} */ name) =>
  Problem(`task = ${shorten(name)}: no such task`, `one of ${Object.keys(TASKS).join(", ")}`)
