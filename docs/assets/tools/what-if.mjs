// What if: a model with changed hyperparameters under any conditions; also for a config.json of the reader's own.
// Every number is the engine's, compiled from the Python that computes the pages.

import {
  BOUNDS,
  conditions,
  continued,
  described,
  fieldsOf,
  figure,
  FIGURES,
  groupsOf,
  isProblem,
  loadFormats,
  machine,
  parsed,
  Problem,
  py,
  shorten,
  textOf,
} from "../model.mjs"
import { M } from "../engine/base.mjs"
import "../engine/variations.mjs"
import { areaMap } from "./map.mjs"
import {
  about,
  accepted,
  bytes,
  conditionFields,
  conditionRules,
  count,
  data,
  difference,
  exact,
  finder,
  grouped,
  json,
  labelled,
  lower,
  machineFields,
  make,
  modelOf,
  modelsByFamily,
  one,
  oneListed,
  pause,
  percent,
  put,
  refusals,
  replace,
  said,
  show,
  steps,
  TITLES,
  upper,
  withWindows,
} from "./kit.mjs"

const { VARIATIONS } = M["engine.variations"]
/** @type {Record<"model" | "context" | "batch" | "weights" | "cache" | "on" | "devices", string>} */
const DEFAULTS = {
  model: "llama3-8b",
  context: "8192",
  batch: "1",
  weights: "published",
  cache: "bfloat16",
  on: "h100",
  devices: "1",
}
/** @typedef {keyof typeof DEFAULTS} Name */
const NAMES = /** @type {Name[]} */ (Object.keys(DEFAULTS)),
  CONDITIONS = NAMES.slice(1)
const SHOWN = [
  "total",
  "active",
  "embedding",
  "cache_bytes_per_token_uncapped",
  "cache_bytes_per_token",
  "cache_bytes",
  "weight_bytes",
  "device_bytes",
  "decode_flops",
  "prefill_flops",
  "bytes_moved",
  "decode_seconds",
  "tokens_per_second",
  "prefill_seconds",
  "largest_context",
]

/**
 * @typedef {import("./figures.mjs").Listed} Listed
 * @typedef {typeof DEFAULTS & { set: Map<string, string>, own: Engine.Keys?, way: string? }} State
 * @typedef {object} Answered under these conditions: the memory of a device, by term and in total, and what is free
 * @property {Engine.Conditions} given
 * @property {Engine.Machine} on
 * @property {Engine.Dict<string, bigint>} terms
 * @property {bigint} needed
 * @property {bigint} left
 */

export async function mount(/** @type {HTMLElement} */ place) {
  const { models, accelerators, titles, colours } = await data()
  await pause()
  const isOwn = place.dataset.tool === "config"
  const machines = machineFields(accelerators)
  const machineOf = () => machine(state.on, accelerators)
  const nameOf = () => models.get(state.model)?.read("name") ?? state.model
  const defaults = { ...DEFAULTS, model: place.dataset.models ?? DEFAULTS.model }
  if (!models.has(defaults.model)) defaults.model = [...models.keys()][0]
  if (!accelerators.has(defaults.on)) defaults.on = [...accelerators.keys()][0]
  /** @type {Record<string, import("./elements.mjs").Rule>} */
  const rules = {
    ...conditionRules(accelerators),
    ...(isOwn ? {} : { model: text => oneListed("model", text, models) }),
  }
  /** @type {State} */
  const state = { ...defaults, set: new Map(), own: null, way: null }
  const remember = steps(place, chosen, recall)
  let turn = 0
  /** @type {import("./tensors.mjs").Tensors?} */
  let listed = null // of a file
  /** @type {typeof import("./tensors.mjs") | undefined} */
  let files // the script that reads it, once there is one
  /** @type {{ before: Engine.Model, now: Engine.Model } | undefined} */
  let shown // the original model, and the last valid one: the fields show it

  const answer = make("p", { class: "ep-answer", role: "status" }),
    problem = make("p", { class: "ep-problem", role: "alert", hidden: true }),
    refused = refusals()
  const fields = make("div", { class: "ep-fields" }),
    ways = make("div", { class: "ep-ways", role: "group", "aria-label": "Example changes" })
  const room = () => make("div"),
    map = room(),
    numbers = room(),
    memory = room(),
    more = room(),
    ofParts = room(),
    ofTensors = room()
  const parts = make("details", { ontoggle: () => drawParts() }, make("summary", {}, "Parameters by part"), ofParts),
    tensors = make(
      "details",
      { ontoggle: () => drawTensors() },
      make("summary", {}, "Every tensor, with its formula"),
      ofTensors,
    )
  const results = make("div", { class: "ep-results", hidden: true }, map, numbers, memory, more, parts, tensors)
  const conditionsOf = conditionFields()
  const area = make("textarea", {
    name: "config",
    rows: 8,
    spellcheck: "false",
    placeholder: '{"model_type": "llama", …}',
    oninput: (/** @type {{ target: HTMLTextAreaElement }} */ { target }) => {
      if (read(target.value)) remember(target)
    },
  })
  const form = make(
    "form",
    { class: "ep-whatif", onsubmit: (/** @type {Event} */ event) => event.preventDefault() },
    isOwn ? dropped() : make("div", { class: "ep-row" }, finder("Model", "model", modelsByFamily(models), state.model)),
    ways,
    make(
      "fieldset",
      { class: "ep-row" },
      make("legend", {}, "Conditions"),
      conditionsOf.context,
      conditionsOf.batch,
      conditionsOf.weights,
      conditionsOf.cache,
      ...machines.fields,
      conditionsOf.devices,
    ),
    refused.line,
    problem,
    answer,
    make("details", { class: "ep-hyper", open: true }, make("summary", {}, "Hyperparameters"), fields),
    make(
      "div",
      { class: "ep-row" },
      make("button", { type: "button", onclick: reset }, "Reset"),
      make("button", { type: "button", onclick: copyLink }, "Copy link"),
    ),
  )

  const fieldOf = (/** @type {Name} */ name) =>
    /** @type {HTMLInputElement | HTMLSelectElement | null} */ (form.elements.namedItem(name))
  form.addEventListener("input", event => {
    const { name, value } = /** @type {HTMLInputElement | HTMLSelectElement} */ (event.target)
    if (name === "model") {
      state.model = value
      state.set.clear()
    } else if (name !== "machine" && !CONDITIONS.some(one => one === name)) return
    update(name !== "model")
    remember(event.target)
  })

  // Reads the address, with a line for each part of it that is invalid.
  function recalled() {
    const given = new URLSearchParams(location.search),
      [values, wrong] = accepted(given, rules, defaults),
      set = new Map([...given].flatMap(([name, value]) => (name.startsWith("set.") ? [[name.slice(4), value]] : [])))
    let way = given.get("way"),
      own = location.hash.includes("=") || !location.hash ? null : state.own // the others lead to a heading
    if (way !== null && !VARIATIONS.has(way)) {
      wrong.push(`way = ${shorten(way)}: no such example`)
      way = null
    }
    try {
      if (isOwn && location.hash.startsWith("#config="))
        own = keysOf(parsed(decodeURIComponent(location.hash.slice(8))))
    } catch (error) {
      wrong.push(`config: ${said(error)}`)
    }
    return { chosen: { ...values, set, way, own }, wrong }
  }

  async function recall() {
    const { chosen, wrong } = recalled()
    if (json(chosen.own) !== json(state.own)) area.value = chosen.own ? json(chosen.own) : ""
    Object.assign(state, chosen)
    for (const name of NAMES) put(fieldOf(name), state[name])
    machines.show(state.on)
    await update(false, wrong)
    refused.show(wrong)
  }

  /** @type {Pick<Listed, "page" | "caveat" | "context">} */
  let listedAs = {} // what is known of a listed model
  /**
   * The keys with the changes; a change of a key that this model does not have is dropped.
   * @param {Engine.Keys} base
   * @param {Engine.Config} config
   * @param {string[]} wrong
   */
  function changed(base, config, wrong) {
    const keys = new py.Dict(py.entries(base)),
      known = [...fieldsOf(py.type(config))]
    for (const [name, text] of state.set) {
      const field = known.find(f => f.key === name)
      if (!field) {
        state.set.delete(name)
        wrong.push(`set.${shorten(name).slice(1, -1)}: not a hyperparameter of this model`)
        continue
      }
      /** @type {Engine.Json} */
      let value = text
      try {
        value = parsed(text)
      } catch {
        // text is itself
      }
      if (field.field === "n_layers" && typeof value === "bigint") {
        const wanted = value
        for (const [k, v] of py.entries(keys)) keys.put(k, continued(v, config.symbols.read("n_layers"), wanted))
      }
      for (const spelling of field.also) keys.map.delete(spelling)
      keys.put(name, value)
    }
    return keys
  }

  /** @type {Engine.Keys?} */
  let readOf = null
  /** @type {Promise<Engine.Keys>?} */
  let readAs = null
  // The keys of the reader's own config, read once.
  function ownKeys() {
    if (state.own && state.own !== readOf) {
      readOf = state.own
      readAs = described(readOf)
    }
    return state.own && readAs
  }

  /**
   * Computes and shows the choice; `wrong` gets the invalid parts of an address.
   * @param {boolean} isSameModel
   * @param {string[]} [wrong]
   */
  async function update(isSameModel = false, wrong = undefined) {
    const started = performance.now(),
      mine = ++turn
    if (!wrong) refused.show([])
    try {
      for (const name of CONDITIONS) {
        const { value, validity } = fieldOf(name) ?? { value: state[name] }
        state[name] = rules[name](validity?.badInput ? "…" : value || defaults[name])
      }
      const { keys, ...known } = isOwn ? { keys: await ownKeys() } : await about(state.model)
      await loadFormats(state.weights)
      if (mine !== turn) return // a later change is under way
      listedAs = known
      if (!keys) {
        shown = undefined
        drawnFor = ""
        for (const empty of [answer, ways, fields]) replace(empty)
        problem.hidden = results.hidden = true
        place.dataset.milliseconds = (performance.now() - started).toFixed(1)
        return
      }
      const before = await modelOf(keys),
        now = await modelOf(await wayOf(before, wrong ?? []))
      await pause()
      if (mine !== turn) return
      problem.hidden = true
      for (const field of form.querySelectorAll("[aria-invalid]")) field.removeAttribute("aria-invalid")
      if (!isSameModel) {
        drawFields(now, before, Boolean(wrong))
        await pause()
        if (mine !== turn) return
      }
      const answered = drawAnswer(now, before)
      place.dataset.answered = (performance.now() - started).toFixed(1)
      if (!drawn.length) await new Promise(resolve => setTimeout(resolve, 20)) // the answer is seen before the rest
      if (mine !== turn) return
      drawResults(now, before, answered)
    } catch (error) {
      if (mine !== turn) return
      if (wrong && isProblem(error) && leave(said(error), wrong.length)) {
        wrong.push(said(error))
        await update(false, wrong)
        return
      }
      explain(error)
      if (!isProblem(error)) reportError(error)
    }
    place.dataset.milliseconds = (performance.now() - started).toFixed(1)
  }

  // Whether a problem is about a condition: "context = 0: …", "no split over 7 devices: …".
  const isOf = (/** @type {Name} */ name, /** @type {string} */ said) =>
    said.startsWith(`${name} = `) || said.includes(` ${name}: `)

  // Drops the parts of an address that a problem names, or all of them if it names none or problems go on. Returns
  // whether there were any.
  function leave(/** @type {string} */ said, /** @type {number} */ tried) {
    const others = CONDITIONS.filter(name => state[name] !== defaults[name])
    const sets = [...state.set.keys()].filter(name => said.includes(name)),
      named = others.filter(name => isOf(name, said))
    const isAll = tried >= 10 || !(sets.length || named.length),
      isAny = Boolean(others.length || state.set.size || state.way)
    for (const name of isAll ? [...state.set.keys()] : sets) state.set.delete(name)
    if (isAll) state.way = null
    for (const name of isAll ? others : named) put(fieldOf(name), defaults[name])
    return isAny
  }

  // An example change comes first, changes by hand on top of it.
  async function wayOf(/** @type {Engine.Model} */ before, /** @type {string[]} */ wrong) {
    const keys = state.way ? VARIATIONS.read(state.way).change(before.raw, before.config) : before.raw
    if (keys) return changed(keys, (await modelOf(keys)).config, wrong)
    wrong.push(`way = ${shorten(state.way)}: does not apply to this model`)
    state.way = null
    return changed(before.raw, before.config, wrong)
  }

  function explain(/** @type {unknown} */ error) {
    const message = isProblem(error) ? said(error) : `internal error: ${said(error)}`
    problem.hidden = false
    problem.textContent = `${message}.${shown ? " The figures below are unchanged." : ""}`
    const condition = CONDITIONS.find(name => isOf(name, message))
    if (condition) return fieldOf(condition)?.setAttribute("aria-invalid", "true")
    const given = inputs().filter(({ name }) => state.set.has(name)),
      named = given.filter(({ name }) => message.includes(name))
    if (named.length || !fields.querySelector("[aria-invalid]"))
      for (const input of named.length ? named : given) input.setAttribute("aria-invalid", "true")
  }

  // Hyperparameters

  const inputs = () => [.../** @type {NodeListOf<HTMLInputElement>} */ (fields.querySelectorAll("[name]"))]
  let drawnFor = ""
  /**
   * @param {Engine.Model} m
   * @param {Engine.Model} before
   * @param {boolean} isRecalled whether the focused field is updated too
   */
  function drawFields(m, before, isRecalled) {
    const all = [...fieldsOf(py.type(m.config))]
    const kind = `${state.model} ${m.architecture} ${all.map(f => f.key)}`
    if (drawnFor !== kind) {
      drawnFor = kind
      const keyed = all.filter(f => f.key && !(m.config[f.field] instanceof py.Dict))
      const sizes = keyed.filter(f => f.is_size),
        others = keyed.filter(f => !f.is_size)
      replace(
        fields,
        sizes.map(f => field(f, m)),
        others.length
          ? make(
              "details",
              {},
              make("summary", {}, "Flags, intervals and lists by layer"),
              make(
                "div",
                { class: "ep-fields" },
                others.map(f => field(f, m)),
              ),
            )
          : null,
      )
      replace(
        ways,
        [...VARIATIONS.map.values()]
          .map(([, way]) => way)
          .filter(way => way.change(before.raw, before.config))
          .map(way =>
            make(
              "button",
              {
                type: "button",
                "aria-pressed": String(state.way === way.name),
                "data-way": way.name,
                title: way.says,
                onclick: () => take(way.name),
              },
              way.title,
            ),
          ),
      )
    }
    for (const button of ways.querySelectorAll("button"))
      button.setAttribute("aria-pressed", String(button.dataset.way === state.way))
    for (const input of inputs()) {
      const f = all.find(f => f.key === input.name)
      if (!f || (input === document.activeElement && !isRecalled)) continue
      const value = m.config[f.field]
      if (input.type === "checkbox") input.checked = py.truth(value)
      else
        input.value =
          value == null ? "" : Array.isArray(value) ? json(value) : f.is_size ? String(py.int(value)) : py.str(value)
      input.closest("label")?.classList.toggle("ep-changed", state.set.has(input.name))
    }
  }
  function field(/** @type {Engine.Field} */ f, /** @type {Engine.Model} */ m) {
    const value = m.config[f.field],
      common = { name: f.key, "data-field": f.field, title: `${f.key} in config.json` }
    const oninput = (/** @type {{ target: HTMLInputElement }} */ event) => {
      const { type, checked, value } = event.target
      set(f, type === "checkbox" ? String(checked) : value.trim())
      remember(event.target)
    }
    const input =
      typeof value === "boolean"
        ? make("input", { ...common, type: "checkbox", oninput })
        : f.is_size || typeof value === "bigint"
          ? make("input", { ...common, type: "number", step: 1, min: f.is_size ? 1 : 0, inputmode: "numeric", oninput })
          : typeof value === "number"
            ? make("input", { ...common, type: "number", step: "any", oninput })
            : make("input", { ...common, type: "text", spellcheck: "false", oninput })
    return labelled(f.field, input)
  }

  function set(/** @type {Engine.Field} */ f, /** @type {string} */ text) {
    if (text === "") state.set.delete(f.key)
    else state.set.set(f.key, text)
    update()
  }
  function take(/** @type {string} */ name) {
    state.way = state.way === name ? null : name
    state.set.clear()
    update()
    remember()
  }
  function reset() {
    state.set.clear()
    state.way = null
    update()
    remember()
  }

  // Results

  /** @type {unknown[]} */
  let drawn = [] // the models and the file's tensors that stand there
  /**
   * @param {Engine.Model} now
   * @param {Engine.Model} before
   * @returns {Answered}
   */
  function drawAnswer(now, before) {
    shown = { before, now }
    const on = machineOf()
    const given = conditions({
      context: BigInt(state.context),
      batch: BigInt(state.batch),
      format: state.weights,
      dtype: state.cache,
      devices: BigInt(state.devices),
      accelerator: on.accelerator,
    })
    const name = isOwn ? "This model" : nameOf(),
      same = now === before
    const how = [
      ...(state.way ? [lower(VARIATIONS.read(state.way).title)] : []),
      ...[...state.set].map(([k, v]) => `${k} = ${v.length > 60 ? `${v.slice(0, 60)}…` : v}`),
    ].join(", ")
    const split = now.costs.split(given, on.memory_bytes)
    if (!split) throw now.costs.without_split(given.devices, given.batch)
    const terms = now.costs.split_bytes(split, given)
    const needed = py.sum([...terms].map(t => terms.read(t))),
      left = on.memory_bytes - needed
    const several = `${grouped(given.devices)} × ${on.name} (${split.said})`,
      where = given.devices > 1n ? several : one(state.on, on.name, accelerators)
    const enough = left < 0n ? now.costs.least_split(given, on.memory_bytes) : null
    replace(
      answer,
      now.sizes.length
        ? make("strong", { class: "ep-unknown" }, `Not counted, unknown size keys: ${now.sizes.join(", ")}. `)
        : null,
      now.head ? `${now.head.name}: ${now.head.said}. ` : null,
      make("strong", {}, `${name}${same ? "" : ` with ${how}`} ${left >= 0n ? "fits" : "does not fit"} on ${where}: `),
      `${count(now.counts.total)} parameters ${now.counts.formats.phrase(state.weights)} `,
      `and the KV cache of ${grouped(given.batch)} `,
      `${given.batch === 1n ? "sequence" : "sequences"} of ${grouped(given.context)} tokens in ${state.cache} `,
      `take ${bytes(needed)} of ${bytes(on.memory_bytes)}${given.devices > 1n ? " on the fullest device" : ""}, `,
      left >= 0n ? `which leaves ${bytes(left)} free. ` : `${bytes(-left)} too much. `,
      longest(now.costs.largest_context(on.memory_bytes, given)),
      enough ? ` It fits on ${grouped(enough.devices)} devices: ${enough.said}.` : "",
    )
    return { given, on, terms, needed, left }
  }

  /**
   * @param {Engine.Model} now
   * @param {Engine.Model} before
   * @param {Answered} answered
   */
  function drawResults(now, before, { given, on, terms, needed, left }) {
    const same = now === before
    const both = same ? [now] : [before, now]
    const rows = withWindows(SHOWN, n => both.map(m => valueOf(m, n, given))).map(n => {
      const f = FIGURES.read(n),
        a = valueOf(now, n, given),
        b = same ? a : valueOf(before, n, given)
      return [
        upper(TITLES[n] ?? f.title),
        ...(same ? [] : [exact(b, f.unit)]),
        exact(a, f.unit),
        ...(same ? [] : [difference(a, b, f.unit)]),
      ]
    })
    results.hidden = false
    show(
      numbers,
      same ? "Figures" : "Published and changed",
      same ? ["", "#Value"] : ["", "#As published", "#Now", "#Difference"],
      rows,
    )
    const line = (/** @type {string} */ title, /** @type {bigint} */ n) => [
      title,
      exact(n, "bytes"),
      percent(n, on.memory_bytes),
    ]
    show(
      memory,
      `Memory of ${given.devices > 1n ? "the fullest device" : on.name}`,
      ["", "#Bytes", "#Share"],
      [
        ...[...terms].map(t => line(TERMS[t], terms.read(t))),
        line("Total", needed),
        line(left >= 0n ? "Free" : "Too much", left >= 0n ? left : -left),
      ],
    )
    if (drawn[0] === now && drawn[1] === before && drawn[2] === listed) return
    drawn = [now, before, listed]
    drawModel(now, before)
  }

  // The part that depends only on the hyperparameters.
  function drawModel(/** @type {Engine.Model} */ now, /** @type {Engine.Model} */ before) {
    const { page, caveat } = listedAs
    replace(map, areaMap(now, before, titles, colours))
    replace(
      more,
      make(
        "p",
        { class: "ep-formula" },
        "Total: ",
        make("code", {}, py.str(now.counts.total_poly)),
        " = ",
        make(
          "code",
          {},
          now.counts.total_poly.text(name => grouped(py.int(now.counts.trace.symbols.read(name)))),
        ),
        ` = ${grouped(now.counts.total)}`,
      ),
      listed && files ? files.reconciled(now, listed) : null,
      now.otherwise.map(line => make("p", {}, `${line}.`)),
      now.unknown.length ? make("p", {}, `Ignored keys: ${[...now.unknown].join(", ")}.`) : null,
      make(
        "p",
        { class: "ep-conventions" },
        "Times are lower bounds. ",
        caveat ? `${caveat} ` : "",
        page ? make("a", { href: new URL(page, new URL("../../", import.meta.url)) }, `All about ${nameOf()}`) : "",
      ),
    )
    drawParts()
    drawTensors()
  }

  // The longest context that fits, and whether the model supports it.
  function longest(/** @type {Engine.Exact?} */ context) {
    if (context === 0n) return "Not even one token of context fits."
    const end = listedAs.context,
      made = end && (context === null || py.gt(context, end)) ? `; the model supports ${grouped(end)}` : ""
    return context === null
      ? `Memory does not limit the context${made}.`
      : `The longest context that fits is ${grouped(py.int(context))} tokens${made}.`
  }

  /**
   * A figure of a model, cached for its latest conditions.
   * @param {Engine.Model} m
   * @param {string} name
   * @param {Engine.Conditions} given
   */
  function valueOf(m, name, given) {
    const key = CONDITIONS.map(c => state[c]).join(),
      values = (m.valuesFor === key && m.values) || new Map()
    Object.assign(m, { valuesFor: key, values })
    const value = values.has(name) ? values.get(name) : figure(m, name, given)
    values.set(name, value)
    return value ?? null
  }

  // The long tables are drawn only while they are open.
  function drawParts() {
    if (!parts.open || !shown) return
    const { before: base, now: current } = shown,
      same = current === base
    // Parts of one title are told apart by their order.
    const byTitle = (/** @type {Engine.Model} */ m) =>
      new Map(
        groupsOf(m, titles).map((group, i, all) => [
          `${group.title} ${all.slice(0, i).filter(other => other.title === group.title).length}`,
          group,
        ]),
      )
    const before = byTitle(base),
      now = byTitle(current)
    const size = (/** @type {Engine.Group | undefined} */ group, /** @type {"count" | "active"} */ what = "count") =>
      group ? py.sum(group.weights.map(w => py.int(w[what]))) : 0n
    /** @type {import("./kit.mjs").Row[]} */
    const rows = [...new Set([...before.keys(), ...now.keys()])].map(key => {
      const group = /** @type {Engine.Group} */ (now.get(key) ?? before.get(key)),
        old = size(before.get(key)),
        n = size(now.get(key)),
        layers = group.layers?.length ?? 0
      return [
        layers > 1 ? `${group.title} × ${layers} layers` : group.title,
        ...(same ? [] : [grouped(old)]),
        grouped(n),
        percent(n, current.counts.total),
        grouped(size(now.get(key), "active")),
        ...(same ? [] : [difference(n, old, "parameters")]),
      ]
    })
    const counts = (/** @type {Engine.Model} */ { counts }) => grouped(counts.total)
    const total = [
      "Total",
      ...(same ? [] : [counts(base)]),
      counts(current),
      "",
      grouped(current.counts.active),
      ...(same ? [] : [difference(current.counts.total, base.counts.total, "parameters")]),
    ]
    rows.push(Object.assign(total, { cls: "total" }))
    show(
      ofParts,
      "Parameters by part",
      ["Part", ...(same ? [] : ["#As published"]), "#Now", "#Share", "#Active", ...(same ? [] : ["#Difference"])],
      rows,
    )
  }
  function drawTensors() {
    if (!tensors.open || !shown) return
    const { before: base, now } = shown,
      same = now === base,
      shape = (/** @type {Engine.Weight | undefined} */ w) =>
        w ? `[${w.shape.map(d => grouped(py.int(d))).join(", ")}]` : "–"
    const all = (/** @type {Engine.Model} */ m) => [...m.counts.weights, ...m.counts.buffers],
      before = new Map(all(base).map(w => [w.name, w]))
    const rows = all(now).map(w => {
      const old = shape(before.get(w.name)),
        its = shape(w)
      const row = [
        make("code", {}, w.name),
        ...(same ? [] : [old]),
        its,
        grouped(py.int(w.copies)),
        grouped(py.int(w.count)),
        make("code", {}, py.str(w.count.expr)),
      ]
      return Object.assign(row, !same && old !== its ? { cls: "ep-differs" } : {})
    })
    show(
      ofTensors,
      "Tensors",
      ["Name", ...(same ? [] : ["Shape as published"]), "Shape", "#Copies", "#Parameters", "Formula"],
      rows,
    )
  }

  // The address of the current choice.
  function chosen() {
    const names = NAMES.filter(k => state[k] !== DEFAULTS[k] || (k === "model" && !isOwn))
    const values = {
      ...Object.fromEntries(names.map(k => [k, state[k]])),
      way: state.way,
      ...Object.fromEntries([...state.set].map(([k, v]) => [`set.${k}`, v])),
    }
    const own = state.own && `#config=${encodeURIComponent(json(state.own))}`
    return isOwn ? { values, hash: own ?? "" } : { values }
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

  // A config.json of the reader's own: read here, never uploaded.
  function dropped() {
    const taken = async (/** @type {File | undefined} */ chosen) => {
      if (!chosen) return
      try {
        if (read((area.value = await textOf(chosen, BOUNDS.LARGEST_TEXT)))) remember()
      } catch (error) {
        explain(error)
      }
    }
    const file = make("input", {
      type: "file",
      accept: ".json,application/json",
      onchange: (/** @type {{ target: HTMLInputElement }} */ { target }) => taken(target.files?.[0]),
    })
    area.addEventListener("dragover", event => event.preventDefault())
    area.addEventListener("drop", event => {
      const dropped = event.dataTransfer?.files[0]
      if (!dropped) return
      event.preventDefault()
      taken(dropped)
    })
    const tensors = make("input", {
      type: "file",
      accept: ".json,.safetensors",
      onchange: async () => {
        try {
          files ??= await import("./tensors.mjs")
          const chosen = tensors.files?.[0]
          listed = chosen ? await files.tensorList(chosen) : null
          await update()
        } catch (error) {
          explain(error)
        }
      },
    })
    return make(
      "div",
      { class: "ep-drop" },
      labelled("Paste a config.json, drop it here, or choose a file", area),
      make(
        "div",
        { class: "ep-row" },
        labelled("config.json file", file),
        labelled("Tensor list: model.safetensors.index.json or a .safetensors file (only its header is read)", tensors),
      ),
    )
  }
  // Whether the text is a config; if not, the page says why and keeps the previous one.
  function read(/** @type {string} */ text) {
    try {
      state.own = text.trim() ? keysOf(parsed(text)) : null
    } catch (error) {
      turn++
      explain(error)
      return false
    }
    state.set.clear()
    state.way = null
    update()
    return true
  }

  await recall()
  await pause()
  replace(place, form, results) // all at once, so that nothing moves
}

/** @returns {Engine.Keys} of a config.json; throws if it is not one */
function keysOf(/** @type {Engine.Json} */ value) {
  if (value instanceof py.Dict) return value
  throw Problem(`expected a JSON object, found ${shorten(value)}`, "give a whole config.json")
}

/** @type {Record<string, string>} */
const TERMS = { weights: "Weights", cache: "KV cache", activations: "Activations (largest operation)" }
