// What if: a model with other hyperparameters, under any conditions; the same for a config.json of the reader's own.
// Every number is the engine's, compiled from the Python that computes the pages.

import { CACHE_BYTES, categories, conditions, continued, fieldsOf, figure, FIGURES, FORMATS, isProblem, languagePart, py, WAYS } from "../model.mjs"
import { reconciled, tensorList } from "./tensors.mjs"
import { bytes, count, data, difference, exact, grouped, json, labelled, make, modelOf, modelsByFamily, remember, replace, said, select, table, written } from "./kit.mjs"

const DEFAULTS = { model: "llama3-8b", context: "8192", batch: "1", weights: "bfloat16", cache: "bfloat16", on: "h100", devices: "1" }
const CONDITIONS = Object.keys(DEFAULTS).slice(1)
const SHOWN = ["total", "active", "embedding", "cache_bytes_per_token", "cache_bytes", "weight_bytes", "device_bytes", "decode_flops", "prefill_flops", "bytes_moved", "decode_seconds", "tokens_per_second", "prefill_seconds"]

export async function mount(place) {
  const { models, accelerators } = await data()
  const own = place.dataset.tool === "config"
  const state = { ...DEFAULTS, set: new Map(), own: null, ...recalled() }
  if (!models.has(state.model)) state.model = DEFAULTS.model
  if (!accelerators.has(state.on)) state.on = [...accelerators.keys()][0]
  let turn = 0, base // what the page starts from
  let listed = null // the tensors of a file, by their names
  let shown // the last model that could be: the fields that are drawn are its

  const answer = make("p", { class: "ep-answer", role: "status" }), problem = make("p", { class: "ep-problem", role: "alert", hidden: true })
  const fields = make("div", { class: "ep-fields" }), ways = make("div", { class: "ep-ways", role: "group", "aria-label": "Changes that teach" })
  const results = make("div", { class: "ep-results" }), tensors = make("details", { ontoggle: () => drawTensors() }, make("summary", {}, "Every tensor, with its formula"))
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
  replace(place, form, results, tensors)

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

  // The keys that the page starts from, and those with what was set.
  const published = () => own ? state.own : models.get(state.model).read("keys")
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
    if (!published()) return void replace(results)
    try {
      const before = await modelOf(published()), now = await modelOf(await wayOf(before))
      if (mine !== turn) return // a later change is under way
      base = before
      problem.hidden = true
      for (const field of fields.querySelectorAll("[aria-invalid]")) field.removeAttribute("aria-invalid")
      if (!isSameModel) drawFields(now)
      draw(now, before)
    } catch (error) {
      if (!isProblem(error) && !(error instanceof SyntaxError)) throw error
      explain(error)
    }
    keep()
    place.dataset.milliseconds = (performance.now() - started).toFixed(1)
  }

  // A way is taken first, what is set by hand on top of it.
  async function wayOf(before) {
    const way = state.way && WAYS.read(state.way)
    const keys = way ? way.change(published(), before.config) : published()
    if (!keys) return changed(published(), before.config)
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
      replace(ways, [...WAYS.map.values()].map(([, way]) => way).filter(way => way.change(published(), base.config)).map(way =>
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

  function draw(now, before) {
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
      `${count(figure(now, "total", given))} parameters in ${state.weights} and the cache of ${grouped(given.batch)} ${given.batch === 1n ? "text" : "texts"} of ${grouped(given.context)} tokens in ${state.cache} take ${bytes(needed)} of ${bytes(machine.memory_bytes)}; `,
      left >= 0n ? `${bytes(left)} are left.` : `${bytes(-left)} are missing.`)
    const rows = SHOWN.map(n => {
      const f = FIGURES.read(n), a = valueOf(now, n, given), b = same ? a : valueOf(before, n, given), title = TITLES[n] ?? f.title
      return [title[0].toUpperCase() + title.slice(1), ...(same ? [] : [exact(b, f.unit)]), exact(a, f.unit), ...(same ? [] : [difference(a, b, f.unit)])]
    })
    const memory = [...terms].map(t => [TERMS[t], exact(terms.read(t), "bytes"), share(terms.read(t), machine.memory_bytes)])
    replace(results,
      bars(now, before),
      table(same ? "In numbers" : "Before and after", same ? ["", "#Value"] : ["", "#As published", "#Now", "#Difference"], rows),
      table(`Memory of ${given.devices > 1n ? "the fullest device" : machine.name}`, ["", "#Bytes", "#Share"], [...memory, ["together", exact(needed, "bytes"), share(needed, machine.memory_bytes)], [left >= 0n ? "left" : "missing", exact(left >= 0n ? left : -left, "bytes"), share(left >= 0n ? left : -left, machine.memory_bytes)]]),
      make("p", { class: "ep-formula" }, "Total: ", make("code", {}, py.str(now.counts.total_poly)), ` = ${grouped(now.counts.total)}`),
      listed ? reconciled(now, listed) : null,
      now.unknown.length ? make("p", {}, `Keys that are not read: ${[...now.unknown].join(", ")}.`) : null,
      make("p", { class: "ep-conventions" }, "Times are the least possible. ", own || !models.get(state.model).read("caveat") ? "" : `${models.get(state.model).read("caveat")} `, own ? "" : make("a", { href: new URL(models.get(state.model).read("page"), new URL("../../", import.meta.url)) }, `${name}, everything`)))
    drawTensors()
  }

  // A figure of a model, kept for the conditions that it was last asked for under.
  function valueOf(m, name, given) {
    const key = CONDITIONS.map(c => state[c]).join()
    if (m.valuesFor !== key) Object.assign(m, { valuesFor: key, values: new Map() })
    if (!m.values.has(name)) m.values.set(name, figure(m, name, given))
    return m.values.get(name)
  }

  function drawTensors() {
    tensors.querySelector(".ep-scroll")?.remove()
    if (!tensors.open || !shown) return
    const all = [...shown.counts.weights, ...shown.counts.buffers]
    tensors.append(table("Tensors", ["Name", "Shape", "#Copies", "#Parameters", "Formula"], all.map(w => [make("code", {}, w.name), `[${w.shape.map(d => grouped(py.int(d))).join(", ")}]`, grouped(py.int(w.copies)), grouped(py.int(w.count)), make("code", {}, py.str(w.count.expr))])))
  }

  function keep() {
    const set = Object.fromEntries([...state.set].map(([k, v]) => [`set.${k}`, v]))
    const chosen = Object.fromEntries(Object.keys(DEFAULTS).filter(k => state[k] !== DEFAULTS[k] || (k === "model" && !own)).map(k => [k, state[k]]))
    remember({ ...chosen, way: state.way, ...set })
    if (own && state.own) history.replaceState(history.state, "", `#config=${encodeURIComponent(json(state.own))}`)
  }
  async function copyLink(event) {
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
        listed = tensors.files[0] ? await tensorList(tensors.files[0]) : null
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
      state.own = text.trim() ? languagePart(py.parse(text))[0] : null
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
}

const TITLES = { weight_bytes: "bytes of the weights", cache_bytes: "bytes of the cache", cache_bytes_per_token: "bytes of the cache for one more token", device_bytes: "bytes on each device, all together" }
const TERMS = { weights: "weights", cache: "cache", activations: "largest operation" }
const share = (n, of) => `${(100 * Number(n) / Number(of)).toFixed(1)} %`

// The parameters by what they do, to one scale, before and after: areas are in proportion to them.
function bars(now, before) {
  const rows = (now === before ? [["", now]] : [["As published", before], ["Now", now]]).map(([title, m]) => [title, m, categories(m)])
  const most = Math.max(...rows.map(([, m]) => Number(m.counts.total)))
  const drawn = rows.map(([title, m, sizes]) => {
    let x = 0
    const areas = sizes.map((n, i) => {
      const width = WIDTH * Number(n) / most, area = shape("rect", { x: x.toFixed(2), y: 0, width: Math.max(0, width - .6).toFixed(2), height: 10, class: `ep-area-${i}` }, shape("title", {}, `${NAMES[i]}: ${grouped(n)}`))
      x += width
      return area
    })
    return [make("p", {}, `${title}${title ? ": " : ""}${count(m.counts.total)}`), shape("svg", { class: "ep-areas", viewBox: `0 0 ${WIDTH} 10`, preserveAspectRatio: "none", role: "img", "aria-label": `Parameters by part, to scale: ${NAMES.map((name, i) => `${name} ${count(sizes[i])}`).join(", ")}` }, ...areas)]
  })
  const key = make("p", { class: "ep-areas-key" }, NAMES.map((name, i) => make("span", { class: `ep-key-${i}` }, `${name} ${count(rows.at(-1)[2][i])}`)))
  return make("figure", { class: "ep-areas-figure" }, drawn.flat(), key)
}
const WIDTH = 560
function shape(name, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name)
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value)
  element.append(...children)
  return element
}
const NAMES = ["embedding", "mixing of tokens", "feed-forward", "norms", "head"]
