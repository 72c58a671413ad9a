// What if: a model with other hyperparameters, under any conditions; the same for a config.json of the reader's own.
// Every number is the engine's, compiled from the Python that computes the pages.

import { CACHE_BYTES, conditions, continued, fieldsOf, figure, FIGURES, FORMATS, groupsOf, isProblem, languagePart, py, WAYS } from "../model.mjs"
import { areaMap } from "./map.mjs"
import { about, bytes, count, data, difference, exact, grouped, json, labelled, make, modelOf, modelsByFamily, percent, remember, replace, said, select, show } from "./kit.mjs"

const DEFAULTS = { model: "llama3-8b", context: "8192", batch: "1", weights: "bfloat16", cache: "bfloat16", on: "h100", devices: "1" }
const CONDITIONS = Object.keys(DEFAULTS).slice(1)
const SHOWN = ["total", "active", "embedding", "cache_bytes_per_token", "cache_bytes", "weight_bytes", "device_bytes", "decode_flops", "prefill_flops", "bytes_moved", "decode_seconds", "tokens_per_second", "prefill_seconds", "largest_context"]

export async function mount(place) {
  const { models, accelerators, titles, colours } = await data()
  const own = place.dataset.tool === "config"
  const state = { ...DEFAULTS, set: new Map(), own: null, ...recalled() }
  if (!models.has(state.model)) state.model = DEFAULTS.model
  if (!accelerators.has(state.on)) state.on = [...accelerators.keys()][0]
  let turn = 0, keeping, base // what the page starts from
  let listed = null, files // the tensors of a file, by their names, and the script that reads them, once there is one
  let shown // the last model that could be: the fields that are drawn are its

  const answer = make("p", { class: "ep-answer", role: "status" }), problem = make("p", { class: "ep-problem", role: "alert", hidden: true })
  const fields = make("div", { class: "ep-fields" }), ways = make("div", { class: "ep-ways", role: "group", "aria-label": "Changes that teach" })
  const room = () => make("div"), map = room(), numbers = room(), memory = room(), more = room(), ofParts = room(), ofTensors = room()
  const parts = make("details", { ontoggle: () => drawParts() }, make("summary", {}, "Parameters by part"), ofParts), tensors = make("details", { ontoggle: () => drawTensors() }, make("summary", {}, "Every tensor, with its formula"), ofTensors)
  const results = make("div", { class: "ep-results", hidden: true }, map, numbers, memory, more, parts, tensors)
  const number = (name, least, most) => make("input", { type: "number", name, min: least, max: most, step: 1, value: state[name], inputmode: "numeric" })
  const form = make("form", { class: "ep-whatif", onsubmit: event => event.preventDefault() },
    own ? dropped() : make("div", { class: "ep-row" }, labelled("Model", select("model", modelsByFamily(models), state.model))),
    ways,
    make("fieldset", { class: "ep-row" }, make("legend", {}, "Conditions"),
      labelled("Context, tokens", number("context", 1, 100000000)), labelled("Texts at once", number("batch", 1, 1000000)),
      labelled("Weights", select("weights", [...FORMATS].map(f => [f, f]), state.weights)), labelled("Cache", select("cache", [...CACHE_BYTES].map(f => [f, f]), state.cache)),
      labelled("On", select("on", [...accelerators].map(([slug, a]) => [slug, `${a.name}, ${bytes(a.memory_bytes)}`]), state.on)), labelled("How many", number("devices", 1, 4096))),
    problem, answer,
    make("details", { class: "ep-hyper", open: true }, make("summary", {}, "Hyperparameters"), fields),
    make("div", { class: "ep-row" }, make("button", { type: "button", onclick: reset }, "As published"), make("button", { type: "button", onclick: copyLink }, "Copy the link")))

  form.addEventListener("input", event => {
    const { name, value } = event.target
    if (name === "model") Object.assign(state, { model: value }), state.set.clear()
    else if (CONDITIONS.includes(name)) state[name] = value
    else return
    update(name !== "model")
  })

  function recalled() {
    const given = new URLSearchParams(location.search), set = new Map()
    for (const [name, value] of given) if (name.startsWith("set.")) set.set(name.slice(4), value)
    const chosen = Object.fromEntries([...given].filter(([name]) => Object.hasOwn(DEFAULTS, name)))
    let config = null
    try {
      if (own && location.hash.startsWith("#config=")) config = py.parse(decodeURIComponent(location.hash.slice(8)))
    } catch { /* a link that was cut off: the page starts empty */ }
    return { ...chosen, set, ...(config ? { own: config } : {}) }
  }

  let published, listedAs = {} // the keys that the page starts from, and what else is known of a listed model
  // And those with what was set.
  function changed(base, config) {
    let keys = new py.Dict(py.entries(base))
    for (const [name, text] of state.set) {
      const field = [...fieldsOf(py.type(config))].find(f => f.key === name)
      let value = text
      try { value = py.parse(text) } catch { /* text is itself */ }
      if (field?.field === "n_layers" && typeof value === "bigint") keys = new py.Dict(py.entries(keys).map(([k, v]) => [k, continued(v, config.symbols.read("n_layers"), value)]))
      for (const spelling of field?.also ?? []) keys.map.delete(spelling)
      keys.put(name, value)
    }
    return keys
  }

  async function update(isSameModel = false) {
    const started = performance.now(), mine = ++turn
    try {
      const file = own ? { keys: state.own } : await about(state.model)
      if (mine !== turn) return // a later change is under way
      if (!(published = (listedAs = file).keys)) return void (results.hidden = true)
      const before = await modelOf(published), now = await modelOf(await wayOf(before))
      if (mine !== turn) return
      base = before
      problem.hidden = true
      for (const field of fields.querySelectorAll("[aria-invalid]")) field.removeAttribute("aria-invalid")
      if (!isSameModel) drawFields(now)
      const answered = drawAnswer(now, before)
      place.dataset.answered = (performance.now() - started).toFixed(1)
      if (!drawn.length) await new Promise(resolve => setTimeout(resolve, 20)) // the first answer is seen before the rest is made
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
  async function wayOf(before) {
    const way = state.way && WAYS.read(state.way)
    const keys = way ? way.change(published, before.config) : published
    if (!keys) return changed(published, before.config)
    return changed(keys, (await modelOf(keys)).config)
  }

  function explain(error) {
    problem.hidden = false
    problem.textContent = `${said(error)}.${shown ? " The numbers below are those before." : ""}`
    const message = said(error)
    for (const field of fields.querySelectorAll("[name]")) if (message.includes(field.name) && state.set.has(field.name)) field.setAttribute("aria-invalid", "true")
    if (![...fields.querySelectorAll("[aria-invalid]")].length) for (const field of fields.querySelectorAll("[name]")) if (state.set.has(field.name)) field.setAttribute("aria-invalid", "true")
  }

  // Hyperparameters

  let drawnFor
  function drawFields(m) {
    const kind = `${state.model} ${m.architecture} ${[...fieldsOf(py.type(m.config))].map(f => f.key)}`
    if (drawnFor !== kind) {
      drawnFor = kind
      const keyed = [...fieldsOf(py.type(m.config))].filter(f => f.key && !(m.config[f.field] instanceof py.Dict))
      const sizes = keyed.filter(f => f.is_size), others = keyed.filter(f => !f.is_size)
      replace(fields, sizes.map(f => field(f, m)), others.length ? make("details", {}, make("summary", {}, "Flags, intervals and lists of layers"), make("div", { class: "ep-fields" }, others.map(f => field(f, m)))) : null)
      replace(ways, [...WAYS.map.values()].map(([, way]) => way).filter(way => way.change(published, base.config)).map(way =>
        make("button", { type: "button", "aria-pressed": String(state.way === way.name), "data-way": way.name, title: way.says, onclick: () => take(way.name) }, way.title)))
    }
    for (const button of ways.children) button.setAttribute("aria-pressed", String(button.dataset.way === state.way))
    for (const input of fields.querySelectorAll("[name]")) {
      if (input === document.activeElement) continue
      const f = [...fieldsOf(py.type(m.config))].find(f => f.key === input.name), value = m.config[f.field]
      if (input.type === "checkbox") input.checked = py.truth(value)
      else input.value = value == null ? "" : Array.isArray(value) ? json(value) : f.is_size ? String(py.int(value)) : py.str(value)
      input.closest("label").classList.toggle("ep-changed", state.set.has(input.name))
    }
  }
  function field(f, m) {
    const value = m.config[f.field], common = { name: f.key, "data-field": f.field, title: `${f.key} in config.json` }
    const oninput = event => {
      const { type, checked, value } = event.target
      set(f, type === "checkbox" ? String(checked) : value.trim())
    }
    const input = typeof value === "boolean" ? make("input", { ...common, type: "checkbox", oninput })
      : f.is_size || typeof value === "bigint" ? make("input", { ...common, type: "number", step: 1, min: f.is_size ? 1 : 0, inputmode: "numeric", oninput })
        : typeof value === "number" ? make("input", { ...common, type: "number", step: "any", oninput })
          : make("input", { ...common, type: "text", spellcheck: "false", oninput })
    return labelled(f.field, input)
  }

  function set(f, text) {
    if (text === "") state.set.delete(f.key)
    else state.set.set(f.key, text)
    update()
  }
  function take(name) {
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

  let drawn = [] // the models and the file's tensors that stand there
  function drawAnswer(now, before) {
    shown = now
    const whole = (text, least = 1n) => { try { const n = BigInt(text); return n >= least ? n : least } catch { return least } }
    const machine = accelerators.get(state.on)
    const given = conditions({ context: whole(state.context), batch: whole(state.batch), format: state.weights, dtype: state.cache, devices: whole(state.devices), accelerator: machine })
    const name = own ? "This model" : models.get(state.model).read("name"), same = now === before
    const how = [...(state.way ? [WAYS.read(state.way).title.toLowerCase()] : []), ...[...state.set].map(([k, v]) => `${k} = ${v}`)].join(", ")
    const terms = now.costs.device_bytes(given.context, given.devices, given.batch, given.format, given.item_bytes)
    const needed = py.sum([...terms].map(t => terms.read(t))), left = machine.memory_bytes - needed
    const each = given.devices > 1n ? `each of ${grouped(given.devices)} ${machine.name}` : `one ${machine.name}`
    replace(answer, make("strong", {}, `${name}${same ? "" : ` with ${how}`} ${left >= 0n ? "fits" : "does not fit"} on ${each}: `),
      `${count(now.counts.total)} parameters in ${state.weights} and the cache of ${grouped(given.batch)} ${given.batch === 1n ? "text" : "texts"} of ${grouped(given.context)} tokens in ${state.cache} take ${bytes(needed)} of ${bytes(machine.memory_bytes)}; `,
      left >= 0n ? `${bytes(left)} are left. ` : `${bytes(-left)} are missing. `, longest(valueOf(now, "largest_context", given)))
    return { given, machine, terms, needed, left }
  }

  function drawResults(now, before, { given, machine, terms, needed, left }) {
    const same = now === before
    const rows = SHOWN.map(n => {
      const f = FIGURES.read(n), a = valueOf(now, n, given), b = same ? a : valueOf(before, n, given), title = TITLES[n] ?? f.title
      return [title[0].toUpperCase() + title.slice(1), ...(same ? [] : [exact(b, f.unit)]), exact(a, f.unit), ...(same ? [] : [difference(a, b, f.unit)])]
    })
    results.hidden = false
    show(numbers, same ? "In numbers" : "Before and after", same ? ["", "#Value"] : ["", "#As published", "#Now", "#Difference"], rows)
    const line = (title, n) => [title, exact(n, "bytes"), percent(n, machine.memory_bytes)]
    show(memory, `Memory of ${given.devices > 1n ? "the fullest device" : machine.name}`, ["", "#Bytes", "#Share"], [...[...terms].map(t => line(TERMS[t], terms.read(t))), line("together", needed), line(left >= 0n ? "left" : "missing", left >= 0n ? left : -left)])
    if (drawn[0] !== now || drawn[1] !== before || drawn[2] !== listed) drawModel(drawn = [now, before, listed])
  }

  // What follows from the hyperparameters alone.
  function drawModel([now, before]) {
    const { page, caveat } = listedAs, name = models.get(state.model).read("name")
    replace(map, areaMap(now, before, titles, colours))
    replace(more,
      make("p", { class: "ep-formula" }, "Total: ", make("code", {}, py.str(now.counts.total_poly)), " = ", make("code", {}, now.counts.total_poly.text(name => grouped(py.int(now.counts.trace.symbols.read(name))))), ` = ${grouped(now.counts.total)}`),
      listed ? files.reconciled(now, listed) : null,
      now.unknown.length ? make("p", {}, `Keys that are not read: ${[...now.unknown].join(", ")}.`) : null,
      make("p", { class: "ep-conventions" }, "Times are the least possible. ", caveat ? `${caveat} ` : "", page ? make("a", { href: new URL(page, new URL("../../", import.meta.url)) }, `${name}, everything`) : ""))
    drawParts()
    drawTensors()
  }

  // The longest context that fits, and whether the model was made for so much.
  function longest(context) {
    if (context == 0) return "No context is short enough."
    const end = listedAs.context, made = end && (context === null || context > end) ? `; the model is made for ${grouped(end)}` : ""
    return context === null ? `No context is too long${made}.` : `The longest context that fits is ${grouped(context)} tokens${made}.`
  }

  // A figure of a model, kept for the conditions that it was last asked for under.
  function valueOf(m, name, given) {
    const key = CONDITIONS.map(c => state[c]).join()
    if (m.valuesFor !== key) Object.assign(m, { valuesFor: key, values: new Map() })
    if (!m.values.has(name)) m.values.set(name, figure(m, name, given))
    return m.values.get(name)
  }

  // The long tables are made while they are open, and not else.
  function drawParts() {
    if (!parts.open || !shown) return
    const same = shown === base
    // Parts of one title are told apart by their order.
    const byTitle = m => new Map(groupsOf(m, titles).map((group, i, all) => [`${group.title} ${all.slice(0, i).filter(other => other.title === group.title).length}`, group]))
    const before = byTitle(base), now = byTitle(shown)
    const size = (group, what = "count") => group ? py.sum(group.weights.map(w => py.int(w[what]))) : 0n
    const rows = [...new Set([...before.keys(), ...now.keys()])].map(key => {
      const group = now.get(key) ?? before.get(key), old = size(before.get(key)), n = size(now.get(key)), layers = group.layers?.length ?? 0
      return [layers > 1 ? `${group.title} × ${layers} layers` : group.title, ...(same ? [] : [grouped(old)]), grouped(n), percent(n, shown.counts.total), grouped(size(now.get(key), "active")), ...(same ? [] : [difference(n, old, "parameters")])]
    })
    const counts = ({ counts }) => grouped(counts.total)
    rows.push(["Together", ...(same ? [] : [counts(base)]), counts(shown), "", grouped(shown.counts.active), ...(same ? [] : [difference(shown.counts.total, base.counts.total, "parameters")])])
    rows.at(-1).cls = "total"
    show(ofParts, "Parameters by part", ["Part", ...(same ? [] : ["#As published"]), "#Now", "#Share", "#Used by a token", ...(same ? [] : ["#Difference"])], rows)
  }
  function drawTensors() {
    if (!tensors.open || !shown) return
    const same = shown === base, shape = w => w ? `[${w.shape.map(d => grouped(py.int(d))).join(", ")}]` : "–"
    const all = m => [...m.counts.weights, ...m.counts.buffers], before = new Map(all(base).map(w => [w.name, w]))
    const rows = all(shown).map(w => {
      const row = [make("code", {}, w.name), ...(same ? [] : [shape(before.get(w.name))]), shape(w), grouped(py.int(w.copies)), grouped(py.int(w.count)), make("code", {}, py.str(w.count.expr))]
      if (!same && row[1] !== row[2]) row.cls = "ep-differs"
      return row
    })
    show(ofTensors, "Tensors", ["Name", ...(same ? [] : ["Shape, as published"]), "Shape", "#Copies", "#Parameters", "Formula"], rows)
  }

  function keep() {
    if (!place.isConnected) return // another page's address by now
    const set = Object.fromEntries([...state.set].map(([k, v]) => [`set.${k}`, v]))
    const chosen = Object.fromEntries(Object.keys(DEFAULTS).filter(k => state[k] !== DEFAULTS[k] || (k === "model" && !own)).map(k => [k, state[k]]))
    remember({ ...chosen, way: state.way, ...set })
    if (own && state.own) history.replaceState(history.state, "", `#config=${encodeURIComponent(json(state.own))}`)
  }
  async function copyLink(event) {
    keep()
    await navigator.clipboard?.writeText(location.href)
    event.target.textContent = "Copied"
    setTimeout(() => { event.target.textContent = "Copy the link" }, 1500)
  }

  // A config.json of the reader's own: read here, and sent nowhere.
  function dropped() {
    const area = make("textarea", { name: "config", rows: 8, spellcheck: "false", placeholder: '{"model_type": "llama", …}', oninput: () => read(area.value) })
    const file = make("input", { type: "file", accept: ".json,application/json", onchange: async () => { if (file.files[0]) read(area.value = await file.files[0].text()) } })
    area.addEventListener("dragover", event => event.preventDefault())
    area.addEventListener("drop", async event => {
      if (!event.dataTransfer.files[0]) return
      event.preventDefault()
      read(area.value = await event.dataTransfer.files[0].text())
    })
    if (state.own) area.value = json(state.own)
    const tensors = make("input", { type: "file", accept: ".json,.safetensors", onchange: async () => {
      try {
        files ??= await import("./tensors.mjs")
        listed = tensors.files[0] ? await files.tensorList(tensors.files[0]) : null
        await update()
      } catch (error) {
        problem.hidden = false
        problem.textContent = said(error)
      }
    } })
    return make("div", { class: "ep-drop" }, labelled("A config.json: paste it, drop it here, or choose a file", area), make("div", { class: "ep-row" }, labelled("File", file), labelled("List of tensors: model.safetensors.index.json, or a .safetensors file, of which only the header is read", tensors)))
  }
  function read(text) {
    state.set.clear()
    state.way = null
    try {
      text = text.trim()
      if (text && text[0] !== "{") throw Error("expected an object, {…}")
      state.own = text ? languagePart(py.parse(text))[0] : null
    } catch (error) {
      state.own = null
      problem.hidden = false
      problem.textContent = said(error)
      return
    }
    problem.hidden = true
    update()
  }

  state.way = new URLSearchParams(location.search).get("way")
  if (state.way && !WAYS.has(state.way)) state.way = null
  await update()
  replace(place, form, results) // all at once, so that nothing moves
}

const TITLES = { weight_bytes: "bytes of the weights", cache_bytes: "bytes of the cache", cache_bytes_per_token: "bytes of the cache for one more token", device_bytes: "bytes on each device, all together", largest_context: "longest context that fits, tokens" }
const TERMS = { weights: "weights", cache: "cache", activations: "largest operation" }
