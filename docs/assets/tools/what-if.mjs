// What if: a model with other hyperparameters, under any conditions; the same for a config.json of the reader's own.
// Every number is the engine's, compiled from the Python that computes the pages.

import {
  CACHE_BYTES,
  conditions,
  continued,
  described,
  fieldsOf,
  figure,
  FIGURES,
  FORMATS,
  groupsOf,
  isProblem,
  py,
  VARIATIONS,
} from "../model.mjs"
import { areaMap } from "./map.mjs"
import {
  about,
  bytes,
  count,
  data,
  difference,
  exact,
  grouped,
  json,
  labelled,
  make,
  modelOf,
  modelsByFamily,
  percent,
  remember,
  replace,
  said,
  select,
  show,
} from "./kit.mjs"

/** @type {Record<"model" | "context" | "batch" | "weights" | "cache" | "on" | "devices", string>} */
const DEFAULTS = {
  model: "llama3-8b",
  context: "8192",
  batch: "1",
  weights: "bfloat16",
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
 * @typedef {import("./kit.mjs").Listed} Listed
 * @typedef {typeof DEFAULTS & { set: Map<string, string>, own: Engine.Keys?, way: string? }} State
 * @typedef {object} Answered under these conditions: what a device holds, term by term and together, and what is left
 * @property {Engine.Conditions} given
 * @property {Engine.Accelerator} machine
 * @property {Engine.Dict<string, bigint>} terms
 * @property {bigint} needed
 * @property {bigint} left
 */

export async function mount(/** @type {HTMLElement} */ place) {
  const { models, accelerators, titles, colours } = await data()
  const isOwn = place.dataset.tool === "config"
  const keysOf = (/** @type {Engine.Json} */ value) => (value instanceof py.Dict ? value : null)
  const machineOf = () => /** @type {Engine.Accelerator} */ (accelerators.get(state.on))
  const nameOf = () => models.get(state.model)?.read("name") ?? state.model
  /** @type {State} */
  const state = { ...DEFAULTS, ...recalled() }
  if (!models.has(state.model)) state.model = DEFAULTS.model
  if (!accelerators.has(state.on)) state.on = [...accelerators.keys()][0]
  let turn = 0
  /** @type {number | undefined} */
  let keeping
  /** @type {import("./tensors.mjs").Tensors?} */
  let listed = null // of a file
  /** @type {typeof import("./tensors.mjs") | undefined} */
  let files // the script that reads it, once there is one
  /** @type {{ before: Engine.Model, now: Engine.Model } | undefined} */
  let shown // the model that the page starts from, and the last that could be: the fields that are drawn are its

  const answer = make("p", { class: "ep-answer", role: "status" }),
    problem = make("p", { class: "ep-problem", role: "alert", hidden: true })
  const fields = make("div", { class: "ep-fields" }),
    ways = make("div", { class: "ep-ways", role: "group", "aria-label": "Changes that teach" })
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
  const number = (/** @type {Name} */ name, /** @type {number} */ least, /** @type {number} */ most) =>
    make("input", { type: "number", name, min: least, max: most, step: 1, value: state[name], inputmode: "numeric" })
  const form = make(
    "form",
    { class: "ep-whatif", onsubmit: (/** @type {Event} */ event) => event.preventDefault() },
    isOwn
      ? dropped()
      : make("div", { class: "ep-row" }, labelled("Model", select("model", modelsByFamily(models), state.model))),
    ways,
    make(
      "fieldset",
      { class: "ep-row" },
      make("legend", {}, "Conditions"),
      labelled("Context, tokens", number("context", 1, 100000000)),
      labelled("Texts at once", number("batch", 1, 1000000)),
      labelled(
        "Weights",
        select(
          "weights",
          [...FORMATS].map(f => [f, f]),
          state.weights,
        ),
      ),
      labelled(
        "Cache",
        select(
          "cache",
          [...CACHE_BYTES].map(f => [f, f]),
          state.cache,
        ),
      ),
      labelled(
        "On",
        select(
          "on",
          [...accelerators].map(([slug, a]) => [slug, `${a.name}, ${bytes(a.memory_bytes)}`]),
          state.on,
        ),
      ),
      labelled("How many", number("devices", 1, 4096)),
    ),
    problem,
    answer,
    make("details", { class: "ep-hyper", open: true }, make("summary", {}, "Hyperparameters"), fields),
    make(
      "div",
      { class: "ep-row" },
      make("button", { type: "button", onclick: reset }, "As published"),
      make("button", { type: "button", onclick: copyLink }, "Copy the link"),
    ),
  )

  form.addEventListener("input", event => {
    const { name, value } = /** @type {HTMLInputElement | HTMLSelectElement} */ (event.target)
    const chosen = NAMES.find(one => one === name)
    if (!chosen) return
    state[chosen] = value
    if (chosen === "model") state.set.clear()
    update(chosen !== "model")
  })

  function recalled() {
    const given = new URLSearchParams(location.search),
      set = new Map()
    for (const [name, value] of given) if (name.startsWith("set.")) set.set(name.slice(4), value)
    const chosen = Object.fromEntries([...given].filter(([name]) => Object.hasOwn(DEFAULTS, name)))
    let own = null
    try {
      if (isOwn && location.hash.startsWith("#config="))
        own = keysOf(py.parse(decodeURIComponent(location.hash.slice(8))))
    } catch {
      // a link that was cut off: the page starts empty
    }
    return { ...chosen, set, own, way: given.get("way") }
  }

  /** @type {Pick<Listed, "page" | "caveat" | "context">} */
  let listedAs = {} // what is known of a listed model
  /**
   * The keys with what was set.
   * @param {Engine.Keys} base
   * @param {Engine.Config} config
   */
  function changed(base, config) {
    const keys = new py.Dict(py.entries(base))
    for (const [name, text] of state.set) {
      const field = [...fieldsOf(py.type(config))].find(f => f.key === name)
      /** @type {Engine.Json} */
      let value = text
      try {
        value = py.parse(text)
      } catch {
        // text is itself
      }
      if (field?.field === "n_layers" && typeof value === "bigint") {
        const wanted = value
        for (const [k, v] of py.entries(keys)) keys.put(k, continued(v, config.symbols.read("n_layers"), wanted))
      }
      for (const spelling of field?.also ?? []) keys.map.delete(spelling)
      keys.put(name, value)
    }
    return keys
  }

  /** @type {Engine.Keys?} */
  let readOf = null
  /** @type {Promise<Engine.Keys>?} */
  let readAs = null
  // What is counted of the reader's own config, read once.
  function ownKeys() {
    if (state.own && state.own !== readOf) {
      readOf = state.own
      readAs = described(readOf)
    }
    return state.own && readAs
  }

  async function update(isSameModel = false) {
    const started = performance.now(),
      mine = ++turn
    try {
      const { keys, ...known } = isOwn ? { keys: await ownKeys() } : await about(state.model)
      if (mine !== turn) return // a later change is under way
      listedAs = known
      if (!keys) {
        results.hidden = true
        return
      }
      const before = await modelOf(keys),
        now = await modelOf(await wayOf(before))
      if (mine !== turn) return
      problem.hidden = true
      for (const field of fields.querySelectorAll("[aria-invalid]")) field.removeAttribute("aria-invalid")
      if (!isSameModel) drawFields(now, before)
      const answered = drawAnswer(now, before)
      place.dataset.answered = (performance.now() - started).toFixed(1)
      if (!drawn.length) await new Promise(resolve => setTimeout(resolve, 20)) // the answer is seen before the rest
      if (mine !== turn) return
      drawResults(now, before, answered)
    } catch (error) {
      if (!isProblem(error) && !(error instanceof SyntaxError)) throw error
      explain(error)
    }
    clearTimeout(keeping)
    keeping = setTimeout(keep, 100) // browsers allow an address to change only so often
    place.dataset.milliseconds = (performance.now() - started).toFixed(1)
  }

  // A way is taken first, what is set by hand on top of it.
  async function wayOf(/** @type {Engine.Model} */ before) {
    const keys = state.way ? VARIATIONS.read(state.way).change(before.raw, before.config) : before.raw
    if (!keys) return changed(before.raw, before.config)
    return changed(keys, (await modelOf(keys)).config)
  }

  function explain(/** @type {unknown} */ error) {
    problem.hidden = false
    problem.textContent = `${said(error)}.${shown ? " The numbers below are those before." : ""}`
    const message = said(error),
      given = inputs().filter(({ name }) => state.set.has(name)),
      named = given.filter(({ name }) => message.includes(name))
    if (named.length || !fields.querySelector("[aria-invalid]"))
      for (const input of named.length ? named : given) input.setAttribute("aria-invalid", "true")
  }

  // Hyperparameters

  const inputs = () => [.../** @type {NodeListOf<HTMLInputElement>} */ (fields.querySelectorAll("[name]"))]
  let drawnFor = ""
  function drawFields(/** @type {Engine.Model} */ m, /** @type {Engine.Model} */ before) {
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
              make("summary", {}, "Flags, intervals and lists of layers"),
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
      if (!f || input === document.activeElement) continue
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
  }
  function reset() {
    state.set.clear()
    state.way = null
    update()
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
    const whole = (/** @type {string} */ text) => {
      try {
        const n = BigInt(text)
        return n >= 1n ? n : 1n
      } catch {
        return 1n
      }
    }
    const machine = machineOf()
    const given = conditions({
      context: whole(state.context),
      batch: whole(state.batch),
      format: state.weights,
      dtype: state.cache,
      devices: whole(state.devices),
      accelerator: machine,
    })
    const name = isOwn ? "This model" : nameOf(),
      same = now === before
    const how = [
      ...(state.way ? [VARIATIONS.read(state.way).title.toLowerCase()] : []),
      ...[...state.set].map(([k, v]) => `${k} = ${v}`),
    ].join(", ")
    const terms = now.costs.device_bytes(given)
    const needed = py.sum([...terms].map(t => terms.read(t))),
      left = machine.memory_bytes - needed
    const each = given.devices > 1n ? `each of ${grouped(given.devices)} ${machine.name}` : `one ${machine.name}`
    replace(
      answer,
      now.sizes.length
        ? make("strong", { class: "ep-unknown" }, `Not counted, unknown sizes: ${now.sizes.join(", ")}. `)
        : null,
      now.head ? `${now.head.name}: ${now.head.said}. ` : null,
      make("strong", {}, `${name}${same ? "" : ` with ${how}`} ${left >= 0n ? "fits" : "does not fit"} on ${each}: `),
      `${count(now.counts.total)} parameters in ${state.weights} and the cache of ${grouped(given.batch)} `,
      `${given.batch === 1n ? "text" : "texts"} of ${grouped(given.context)} tokens in ${state.cache} `,
      `take ${bytes(needed)} of ${bytes(machine.memory_bytes)}; `,
      left >= 0n ? `${bytes(left)} are left. ` : `${bytes(-left)} are missing. `,
      longest(valueOf(now, "largest_context", given)),
    )
    return { given, machine, terms, needed, left }
  }

  /**
   * @param {Engine.Model} now
   * @param {Engine.Model} before
   * @param {Answered} answered
   */
  function drawResults(now, before, { given, machine, terms, needed, left }) {
    const same = now === before
    const rows = SHOWN.map(n => {
      const f = FIGURES.read(n),
        a = valueOf(now, n, given),
        b = same ? a : valueOf(before, n, given),
        title = TITLES[n] ?? f.title
      return [
        title[0].toUpperCase() + title.slice(1),
        ...(same ? [] : [exact(b, f.unit)]),
        exact(a, f.unit),
        ...(same ? [] : [difference(a, b, f.unit)]),
      ]
    })
    results.hidden = false
    show(
      numbers,
      same ? "In numbers" : "Before and after",
      same ? ["", "#Value"] : ["", "#As published", "#Now", "#Difference"],
      rows,
    )
    const line = (/** @type {string} */ title, /** @type {bigint} */ n) => [
      title,
      exact(n, "bytes"),
      percent(n, machine.memory_bytes),
    ]
    show(
      memory,
      `Memory of ${given.devices > 1n ? "the fullest device" : machine.name}`,
      ["", "#Bytes", "#Share"],
      [
        ...[...terms].map(t => line(TERMS[t], terms.read(t))),
        line("together", needed),
        line(left >= 0n ? "left" : "missing", left >= 0n ? left : -left),
      ],
    )
    if (drawn[0] === now && drawn[1] === before && drawn[2] === listed) return
    drawn = [now, before, listed]
    drawModel(now, before)
  }

  // What follows from the hyperparameters alone.
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
      now.unknown.length ? make("p", {}, `Keys that are not read: ${[...now.unknown].join(", ")}.`) : null,
      make(
        "p",
        { class: "ep-conventions" },
        "Times are the least possible. ",
        caveat ? `${caveat} ` : "",
        page ? make("a", { href: new URL(page, new URL("../../", import.meta.url)) }, `${nameOf()}, everything`) : "",
      ),
    )
    drawParts()
    drawTensors()
  }

  // The longest context that fits, and whether the model was made for so much.
  function longest(/** @type {Engine.Exact?} */ context) {
    if (context === 0n) return "No context is short enough."
    const end = listedAs.context,
      made = end && (context === null || py.gt(context, end)) ? `; the model is made for ${grouped(end)}` : ""
    return context === null
      ? `No context is too long${made}.`
      : `The longest context that fits is ${grouped(py.int(context))} tokens${made}.`
  }

  /**
   * A figure of a model, kept for the conditions that it was last asked for under.
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

  // The long tables are made while they are open, and not else.
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
      "Together",
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
      [
        "Part",
        ...(same ? [] : ["#As published"]),
        "#Now",
        "#Share",
        "#Used by a token",
        ...(same ? [] : ["#Difference"]),
      ],
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
      ["Name", ...(same ? [] : ["Shape, as published"]), "Shape", "#Copies", "#Parameters", "Formula"],
      rows,
    )
  }

  function keep() {
    if (!place.isConnected) return // another page's address by now
    const set = Object.fromEntries([...state.set].map(([k, v]) => [`set.${k}`, v]))
    const chosen = Object.fromEntries(
      NAMES.filter(k => state[k] !== DEFAULTS[k] || (k === "model" && !isOwn)).map(k => [k, state[k]]),
    )
    remember({ ...chosen, way: state.way, ...set })
    if (isOwn && state.own) history.replaceState(history.state, "", `#config=${encodeURIComponent(json(state.own))}`)
  }
  async function copyLink(/** @type {{ target: HTMLElement }} */ event) {
    keep()
    await navigator.clipboard?.writeText(location.href)
    event.target.textContent = "Copied"
    setTimeout(() => {
      event.target.textContent = "Copy the link"
    }, 1500)
  }

  // A config.json of the reader's own: read here, and sent nowhere.
  function dropped() {
    const area = make("textarea", {
      name: "config",
      rows: 8,
      spellcheck: "false",
      placeholder: '{"model_type": "llama", …}',
      oninput: (/** @type {{ target: HTMLTextAreaElement }} */ event) => read(event.target.value),
    })
    const file = make("input", {
      type: "file",
      accept: ".json,application/json",
      onchange: async () => {
        const chosen = file.files?.[0]
        if (chosen) read((area.value = await chosen.text()))
      },
    })
    area.addEventListener("dragover", event => event.preventDefault())
    area.addEventListener("drop", async event => {
      const dropped = event.dataTransfer?.files[0]
      if (!dropped) return
      event.preventDefault()
      read((area.value = await dropped.text()))
    })
    if (state.own) area.value = json(state.own)
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
          problem.hidden = false
          problem.textContent = said(error)
        }
      },
    })
    return make(
      "div",
      { class: "ep-drop" },
      labelled("A config.json: paste it, drop it here, or choose a file", area),
      make(
        "div",
        { class: "ep-row" },
        labelled("File", file),
        labelled(
          "List of tensors: model.safetensors.index.json, or a .safetensors file, of which only the header is read",
          tensors,
        ),
      ),
    )
  }
  function read(/** @type {string} */ text) {
    state.set.clear()
    state.way = null
    try {
      text = text.trim()
      if (text && text[0] !== "{") throw Error("expected an object, {…}")
      state.own = text ? keysOf(py.parse(text)) : null
    } catch (error) {
      state.own = null
      problem.hidden = false
      problem.textContent = said(error)
      return
    }
    problem.hidden = true
    update()
  }

  if (state.way && !VARIATIONS.has(state.way)) state.way = null
  await update()
  replace(place, form, results) // all at once, so that nothing moves
}

/** @type {Record<string, string>} */
const TITLES = {
  weight_bytes: "bytes of the weights",
  cache_bytes: "bytes of the cache",
  cache_bytes_per_token: "bytes of the cache for one more token",
  device_bytes: "bytes on each device, all together",
  largest_context: "longest context that fits, tokens",
}
/** @type {Record<string, string>} */
const TERMS = { weights: "weights", cache: "cache", activations: "largest operation" }
