// Plan a deployment: a model that an engine serves, on several devices, offloaded, with a draft, or trained.
// Each task is a script of its own, which loads what the engine compiles for it from the Python of the command line.

import { M } from "../engine/base.mjs"
import { conditions, loadFormats, machine, Problem, py, shorten } from "../conditions.mjs"
import {
  about,
  accepted,
  conditionFields,
  conditionRules,
  data,
  finder,
  machineFields,
  make,
  modelOf,
  modelsByFamily,
  oneListed,
  pause,
  refusals,
  replace,
  said,
  show,
  stateIn,
  steps,
} from "./forms.mjs"

/**
 * @typedef {Record<string, string>} State what is chosen, by the names of the fields
 * @typedef {object} Site what there is to choose from
 * @property {import("./figures.mjs").Models} models
 * @property {Map<string, Engine.Accelerator>} accelerators with their links
 * @property {Map<string, bigint>} watts the power that a maker states, by accelerator
 * @property {(slug: string) => string} nameOf a model
 * @property {(slug: string) => Promise<Engine.Model>} modelOf
 * @typedef {object} Asked
 * @property {State} state
 * @property {Engine.Model} model
 * @property {string} name of the model
 * @property {Engine.Conditions} given
 * @property {Engine.Machine} on
 * @property {Site} site
 * @property {(text: string, values: State) => HTMLElement} link to this page with other choices
 * @typedef {object} Answer
 * @property {import("./elements.mjs").Children} line what it comes to
 * @property {{ caption: string, head: string[], rows: import("./elements.mjs").Row[] }[]} tables
 * @property {string[]} notes
 * @typedef {object} Task
 * @property {State} DEFAULTS of its own fields, and of shared ones where they differ
 * @property {string[]} SHARED the shared fields that it has
 * @property {(site: Site) => HTMLElement[]} fields
 * @property {(site: Site) => Record<string, import("./elements.mjs").Rule>} rules
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
  }
}

/**
 * The conditions of an answer on a machine.
 * @param {State} state
 * @param {Engine.Machine} on
 */
export const givenOf = (state, on) =>
  conditions({
    context: BigInt(state.context),
    batch: BigInt(state.batch),
    format: state.weights,
    dtype: state.cache,
    devices: BigInt(state.devices),
    accelerator: on.accelerator,
  })

export async function mount(/** @type {HTMLElement} */ place) {
  const started = performance.now()
  const site = await loaded()
  await pause()
  const { models, accelerators } = site
  const machines = machineFields(accelerators)
  const remember = steps(place, () => ({ values: saidOf(task, state) }), recall)
  let task = "engine",
    turn = 0
  /** @type {Task} */
  let one
  /** @type {State} */
  let state = { ...DEFAULTS }

  const line = make("p", { class: "ep-answer", role: "status" }),
    refused = refusals(),
    tables = make("div", { class: "ep-stacks" }),
    notes = make("p", { class: "ep-conventions" }),
    own = make("fieldset", { class: "ep-row" })
  const shared = {
    model: [finder("Model", "model", modelsByFamily(models), "")],
    on: machines.fields,
    ...Object.fromEntries(Object.entries(conditionFields()).map(([name, field]) => [name, [field]])),
  }
  const tasks = make(
    "div",
    { class: "ep-ways", role: "group", "aria-label": "Task" },
    Object.entries(TASKS).map(([name, { title }]) =>
      make("button", { type: "button", "data-task": name, onclick: () => turnTo(name) }, title),
    ),
  )
  const form = make(
    "form",
    { class: "ep-whatif", onsubmit: (/** @type {Event} */ event) => event.preventDefault() },
    tasks,
    make(
      "fieldset",
      { class: "ep-row" },
      make("legend", {}, "Model, machine and conditions"),
      ...Object.values(shared).flat(),
    ),
    own,
    refused.line,
  )
  const fields = stateIn(/** @type {HTMLFormElement} */ (form), machines)
  form.append(fields.problem)
  form.addEventListener("input", ({ target }) => {
    update()
    remember(target)
  })

  /** The task's own fields, and those of all that it has. @param {string} name */
  async function open(name) {
    const loaded = await TASKS[name].load()
    task = name
    one = loaded
    replace(own, make("legend", {}, TASKS[name].title), ...one.fields(site))
    for (const button of tasks.querySelectorAll("button"))
      button.setAttribute("aria-pressed", String(button.dataset.task === name))
    for (const [field, labels] of Object.entries(shared))
      for (const label of labels) label.hidden = !one.SHARED.includes(field)
  }
  /** Another task, with what was chosen for this one. @param {string} name */
  async function turnTo(name) {
    if (name === task) return
    const before = defaultsOf(one),
      kept = Object.entries(state).filter(([field, value]) => field in DEFAULTS && value !== before[field])
    await open(name)
    state = { ...defaultsOf(one), ...Object.fromEntries(kept.filter(([field]) => one.SHARED.includes(field))) }
    fields.write(state)
    await update()
    remember()
  }

  async function recall() {
    const given = new URLSearchParams(location.search),
      /** @type {string[]} */ wrong = []
    const asked = given.get("task") ?? "engine"
    if (!Object.hasOwn(TASKS, asked)) wrong.push(said(noTask(asked)))
    await open(Object.hasOwn(TASKS, asked) ? asked : "engine")
    await pause()
    const [values, others] = accepted(given, rulesOf(one, site), defaultsOf(one))
    wrong.push(...others)
    state = values
    fields.write(state)
    let problem = await update()
    // Drop what the model does not allow, and then everything.
    for (const rest of [ownDefaults(one), defaultsOf(one)])
      if (problem) {
        wrong.push(problem)
        Object.assign(state, rest)
        fields.write(state)
        problem = await update()
      }
    refused.show(wrong)
  }
  /** @param {State} values */
  function change(values) {
    Object.assign(state, values)
    fields.write(state)
    update()
    remember()
  }

  /** @returns {Promise<string>} the problem; empty if there is none */
  async function update() {
    const began = performance.now(),
      mine = ++turn
    refused.show([])
    try {
      fields.read(state, defaultsOf(one), rulesOf(one, site))
      const on = machine(state.on, accelerators),
        [model] = await Promise.all([site.modelOf(state.model), loadFormats(state.weights)]),
        asked = {
          state: { ...state },
          model,
          name: site.nameOf(state.model),
          given: givenOf(state, on),
          on,
          site,
          link,
        }
      const idle = one.idle?.(state) ?? []
      for (const name of Object.keys(one.rules(site))) {
        const label = fields.fieldOf(name)?.closest("label")
        if (label && own.contains(label)) label.hidden = idle.includes(name)
      }
      await pause()
      const answer = await one.answer(asked)
      await pause()
      if (mine !== turn) return "" // a later change is under way
      replace(line, answer.line)
      replace(notes, answer.notes.join(" "))
      while (tables.children.length > answer.tables.length) tables.lastElementChild?.remove()
      while (tables.children.length < answer.tables.length) tables.append(make("div"))
      answer.tables.forEach(({ caption, head, rows }, i) =>
        show(/** @type {HTMLElement} */ (tables.children[i]), caption, head, rows),
      )
      fields.problem.hidden = true
    } catch (error) {
      return mine === turn ? fields.refuse(error) : ""
    }
    place.dataset.milliseconds = (performance.now() - began).toFixed(1)
    return ""
  }

  /**
   * A link to this page with other choices, taken without leaving it.
   * @param {string} text
   * @param {State} values
   */
  function link(text, values) {
    const at = new URL(location.href)
    at.search = `${new URLSearchParams(saidOf(task, { ...state, ...values }))}`
    return make(
      "a",
      {
        href: at,
        onclick: (/** @type {MouseEvent} */ event) => {
          if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return
          event.preventDefault()
          event.stopPropagation()
          change(values)
        },
      },
      text,
    )
  }

  // The address holds the task, what differs from its defaults, and always the model, the machine and the context.
  function saidOf(/** @type {string} */ task, /** @type {State} */ state) {
    const defaults = defaultsOf(one),
      always = ["model", "on", "context"].filter(name => one.SHARED.includes(name))
    const values = Object.entries(state).filter(([name, value]) => value !== defaults[name] || always.includes(name))
    return Object.fromEntries([["task", task], ...values])
  }

  await recall()
  await pause()
  replace(place, form, line, tables, notes) // all at once, so that nothing moves
  place.dataset.first = (performance.now() - started).toFixed(1)
}

const { Accelerator, Link } = M["counting.accelerators"]
const STATED = /** @type {const} */ (["name", "vendor", "bytes_per_second", "memory_bytes", "peak_flops", "watts"])
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
const ownDefaults = (/** @type {Task} */ one) =>
  Object.fromEntries(Object.entries(one.DEFAULTS).filter(([name]) => !(name in DEFAULTS)))
/** @returns {State} */
const defaultsOf = (/** @type {Task} */ one) => ({ ...DEFAULTS, ...one.DEFAULTS })
/**
 * What is valid in an address, by task.
 * @param {Task} one
 * @param {Site} site
 */
function rulesOf(one, site) {
  const known = conditionRules(site.accelerators)
  /** @type {Record<string, import("./elements.mjs").Rule>} */
  const rules = { ...known, model: text => oneListed("model", text, site.models) }
  return {
    ...Object.fromEntries(one.SHARED.map(name => [name, rules[name]])),
    ...one.rules(site),
  }
}
