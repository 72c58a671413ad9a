// Plan a deployment: a model that an engine serves, on several devices, offloaded, with a draft, or trained.
// Each task is a script of its own, which loads what the engine compiles for it from the Python of the command line.

import { M } from "../engine/base.mjs"
import { machine, Problem, py, shorten } from "../conditions.mjs"
import { linkTo } from "./cells.mjs"
import { about, conditionRules, data, givenOf, isAbout, modelOf, modelsByFamily, oneListed } from "./kit.mjs"
import { grouped, pause, said } from "./kit.mjs"
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
 * @property {State} DEFAULTS of its own fields, and of shared ones where they differ
 * @property {string[]} SHARED the shared fields that it has
 * @property {(site: Site) => import("./plan/fields.mjs").Field[]} fields
 * @property {(site: Site) => Record<string, import("./address.mjs").Rule>} rules
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
  const [{ models, accelerators }, more] = await Promise.all([
    data(),
    fetch(new URL("../engine/plan.json", import.meta.url))
      .then(answer => answer.text())
      .then(text => /** @type {Engine.Dict<string, any>} */ (/** @type {unknown} */ (py.parse(text)))),
  ])
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
  one = { DEFAULTS: {}, SHARED: [], fields: () => [], rules: () => ({}), answer: () => Promise.reject() }

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
          ...{ shared: this.one.SHARED, fields: this.one.fields(site), idle: this.one.idle?.(shown.values) ?? [] },
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
    this.tool.defaults = { ...DEFAULTS, ...one.DEFAULTS }
    this.tool.rules = {
      ...Object.fromEntries(Object.entries(shared).filter(([field]) => one.SHARED.includes(field))),
      ...one.rules(this.site),
    }
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
      where = given.devices > 1n ? `${grouped(given.devices)} × ${on.name} do` : `${on.name} does`,
      whole = `the whole model ${model.counts.formats.phrase(given.format)}`,
      lacking = best && !strange ? ` ${where} not hold ${whole}.` : ""
    return { ...answer, said: [head, rest + strange + lacking + best] }
  }
  /** Drops what was typed into the task's own fields, then what was chosen there, then everything: a wrong option is
   * answered for its own engine. @param {import("./tool.mjs").Values} values */
  leave(values) {
    const { defaults } = this.tool,
      own = Object.fromEntries(Object.entries(defaults).filter(([name]) => !(name in DEFAULTS))),
      chosen = new Set(this.one.fields(this.site).flatMap(({ name, groups }) => (groups ? [name] : []))),
      typed = Object.fromEntries(Object.entries(own).filter(([name]) => !chosen.has(name))),
      others = [typed, own, defaults].find(those => Object.entries(those).some(([name, text]) => values[name] !== text))
    return Boolean(others && Object.assign(values, others))
  }
  /** The task, what differs from its defaults, and always the model, the machine and the context, if it has them. */
  addressOf(/** @type {import("./tool.mjs").Values} */ values) {
    const { defaults } = this.tool,
      always = ["model", "on", "context"].filter(name => this.one.SHARED.includes(name)),
      names = Object.keys(defaults).filter(name => values[name] !== defaults[name] || always.includes(name))
    return { task: this.task, ...Object.fromEntries(names.map(name => [name, values[name]])) }
  }
}

const { Accelerator, Link } = M["counting.accelerators"]
const STATED = /** @type {const} */ ([
  ...["name", "vendor", "bytes_per_second", "memory_bytes", "peak_flops", "watts", "capability", "kind"],
])
/**
 * An accelerator with what it talks to others by.
 * @param {Engine.Accelerator} one
 * @param {Engine.Dict<string, unknown> | null} link
 */
const linked = (one, link) =>
  link === null
    ? one
    : py.apply(Accelerator, [], {
        ...Object.fromEntries(STATED.map(name => [name, one[name]])),
        link: py.apply(Link, [], Object.fromEntries(py.entries(link))),
      })

const noTask = (/** @type {string} */ name) =>
  Problem(`task = ${shorten(name)}: no such task`, `one of ${Object.keys(TASKS).join(", ")}`)
