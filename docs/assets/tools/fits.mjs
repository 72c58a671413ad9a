// What fits: the models that fit on a machine, the largest first; or the formats of a model, and the machines that it
// fits on.
// The rule is the engine's, compiled from the Python that `fits` runs.

import {
  allKeys,
  answer,
  BEST,
  capacitiesIn,
  capacitiesOn,
  isListed,
  chosen,
  fitting,
  in_order,
  in_words,
  LADDER,
  order_of_machines,
  smallest,
} from "../fitting.mjs"
import { conditions, loadGguf, machine, paced, painted, Problem, py, shorten } from "../conditions.mjs"
import { order } from "../tables.mjs"
import {
  about,
  accepted,
  bytes,
  conditionFields,
  conditionRules,
  data,
  exact,
  finder,
  grouped,
  labelled,
  lines,
  machineFields,
  make,
  modelOf,
  modelsByFamily,
  oneListed,
  pairs,
  pause,
  refusals,
  replace,
  seconds,
  select,
  short,
  show,
  stateIn,
  steps,
} from "./forms.mjs"

const AT_ONCE = 30 // milliseconds of counting, before a browser may paint
const BETWEEN = 250 // milliseconds between two drawings of what is counted so far
const AT_FIRST = 16,
  AT_A_TIME = 12 // rows of a long table
const DEFAULTS = {
  model: "",
  on: "24GB",
  context: "32768",
  batch: "1",
  weights: BEST,
  cache: "bfloat16",
  devices: "1",
  family: "",
  kind: "",
  licence: "",
  least: "",
  most: "",
  sort: "",
  order: "",
}
/** @typedef {keyof typeof DEFAULTS} Name */
const CONDITIONS = /** @type {Name[]} */ (["on", "context", "batch", "weights", "cache", "devices"])
const FILTERS = /** @type {Name[]} */ (["family", "kind", "licence", "least", "most"])
const AMOUNTS = ["8GB", "12GB", "16GB", "24GB", "48GB", "80GB"]
const SIZES = ["100M", "1B", "3B", "10B", "30B", "100B", "300B"]
/** @type {Record<string, number>} */
const UNITS = { M: 1e6, B: 1e9 }
const sizeOf = (/** @type {string} */ text) => Number(text.slice(0, -1)) * UNITS[text.slice(-1)]

/** @typedef {import("../fitting.mjs").Able} Able */
/** @typedef {{ slug: string, able: Able, said: Engine.Fitting }} Found a model that fits */

export async function mount(/** @type {HTMLElement} */ place) {
  const started = performance.now()
  const { models, accelerators } = await data()
  const all = await capacitiesIn(BEST)
  await pause()
  const machines = machineFields(accelerators)
  const nameOf = (/** @type {string} */ slug) => models.get(slug)?.read("name") ?? slug
  const familyOf = (/** @type {string} */ slug) => models.get(slug)?.read("family") ?? ""
  const kinds = [...new Set([...all.values()].map(one => one.kind))],
    licences = [...new Set([...all.values()].map(one => one.licence))].sort()
  const rules = rulesOf(),
    inForm = /** @type {Name[]} */ ([...CONDITIONS, ...FILTERS, "model"]),
    ofFields = Object.fromEntries(inForm.map(name => [name, rules[name]]))
  /** @type {Record<Name, string>} */
  const state = { ...DEFAULTS }
  const remember = steps(place, () => inAddress(), recall)
  let turn = 0,
    drawing = 0
  /** @type {(value?: unknown) => void} */
  let isDrawn
  const drawn = new Promise(resolve => {
    isDrawn = resolve
  })

  const line = make("p", { class: "ep-answer", role: "status" }),
    refused = refusals(),
    first = make("div"),
    second = make("div"),
    more = make("div")
  const conditionsOf = conditionFields([[BEST, "best that fits"]])
  const choice = (/** @type {Name} */ name, /** @type {[string, string][]} */ options, every = "all") =>
    select(name, [["", every], ...options], state[name])
  const amounts = make(
    "div",
    { class: "ep-ways", role: "group", "aria-label": "Common memory sizes" },
    AMOUNTS.map(on =>
      make("button", { type: "button", "data-on": on, onclick: () => change({ on }) }, on.replace("GB", " GB")),
    ),
  )
  const filters = make(
    "details",
    {},
    make("summary", {}, "Filter models"),
    make(
      "div",
      { class: "ep-row" },
      labelled("Family", choice("family", pairs([...models.keys()].map(familyOf).filter(isFirst).sort()))),
      labelled("Parameters, at least", choice("least", pairs(SIZES), "any")),
      labelled("at most", choice("most", pairs(SIZES), "any")),
      labelled("Kind", choice("kind", pairs(kinds))),
      labelled("License", choice("licence", pairs(licences))),
    ),
  )
  const form = make(
    "form",
    { class: "ep-whatif", onsubmit: (/** @type {Event} */ event) => event.preventDefault() },
    make(
      "fieldset",
      { class: "ep-row" },
      make("legend", {}, "Hardware"),
      ...machines.fields,
      conditionsOf.devices,
      amounts,
    ),
    make(
      "fieldset",
      { class: "ep-row" },
      make("legend", {}, "Model and conditions"),
      finder("Model", "model", [["", "All models"], ...modelsByFamily(models)], ""),
      conditionsOf.context,
      conditionsOf.batch,
      conditionsOf.weights,
      conditionsOf.cache,
    ),
    filters,
    refused.line,
  )
  const fields = stateIn(/** @type {HTMLFormElement} */ (form), machines)
  form.append(fields.problem)
  form.addEventListener("input", ({ target }) => {
    update()
    remember(target)
  })
  // The headings sort the table by themselves; the address keeps which one.
  first.addEventListener("click", ({ target }) => {
    if (!(target instanceof Element) || !target.closest("th button")) return
    const by = headings().find(th => th.hasAttribute("aria-sort"))
    state.sort = by ? slugOf(by) : ""
    state.order = by?.getAttribute("aria-sort") ?? ""
    remember()
  })

  const headings = () => [.../** @type {NodeListOf<HTMLElement>} */ (first.querySelectorAll("thead th"))]
  function sorted() {
    const by = headings().find(th => slugOf(th) === state.sort && th.querySelector("button")),
      table = first.querySelector("table")
    for (const th of headings()) th.removeAttribute("aria-sort")
    if (by) by.setAttribute("aria-sort", state.order === "ascending" ? "ascending" : "descending")
    if (table?.tBodies[0].rows.length) order(table)
  }

  // What is valid in an address.
  function rulesOf() {
    const known = conditionRules(accelerators)
    const among = (/** @type {Name} */ name, /** @type {string[]} */ texts) => (/** @type {string} */ text) => {
      if (text === "" || texts.includes(text)) return text
      throw Problem(`${name} = ${shorten(text)}: no such choice`, "choose one from the list")
    }
    /** @type {Record<Name, import("./elements.mjs").Rule>} */
    const rules = {
      ...known,
      weights: text => (text.toLowerCase() === BEST ? BEST : known.weights(text)),
      model: text => (text === "" ? "" : oneListed("model", text, models)),
      family: among("family", [...models.keys()].map(familyOf)),
      kind: among("kind", kinds),
      licence: among("licence", licences),
      least: among("least", SIZES),
      most: among("most", SIZES),
      sort: among("sort", Object.values(COLUMNS)),
      order: among("order", ["ascending", "descending"]),
    }
    return rules
  }

  async function recall() {
    const [values, wrong] = accepted(new URLSearchParams(location.search), rules, DEFAULTS)
    Object.assign(state, values)
    write()
    let problem = await update()
    // Drop what the model does not allow, and then the model.
    for (const others of [{ weights: BEST, devices: "1" }, { model: "" }])
      if (problem) {
        wrong.push(problem)
        Object.assign(state, others)
        write()
        problem = await update()
      }
    refused.show(wrong)
  }
  function write() {
    fields.write(state)
    if (FILTERS.some(name => state[name])) filters.open = true
  }
  /** @param {Partial<typeof state>} values */
  function change(values) {
    Object.assign(state, values)
    write()
    update()
    remember()
  }
  const inAddress = () => ({ values: saidOf(state) })

  /** @returns {Promise<string>} the problem; empty if there is none */
  async function update() {
    const began = performance.now(),
      mine = ++turn
    drawing++
    refused.show([])
    try {
      fields.read(state, DEFAULTS, ofFields)
      filters.hidden = state.model !== ""
      for (const button of amounts.querySelectorAll("button"))
        button.setAttribute("aria-pressed", String(button.dataset.on === state.on))
      const on = machine(state.on, accelerators),
        given = conditions({
          context: BigInt(state.context),
          batch: BigInt(state.batch),
          dtype: state.cache,
          devices: BigInt(state.devices),
        })
      const able = await capacitiesIn(state.model && !isListed(state.weights) ? BEST : state.weights)
      await pause()
      if (mine !== turn) return "" // a later change is under way
      if (state.model) await ofModel(able, given, on, mine)
      else await ofMachine(able, given, on, mine)
      if (mine === turn) fields.problem.hidden = true
    } catch (error) {
      return mine === turn ? fields.refuse(error) : ""
    }
    place.dataset.milliseconds = (performance.now() - began).toFixed(1)
    return ""
  }

  // A machine

  /**
   * @param {Map<string, Able>} able
   * @param {Engine.Conditions} given
   * @param {Engine.Machine} on
   * @param {number} mine
   */
  async function ofMachine(able, given, on, mine) {
    /** @type {Found[]} */
    const found = []
    let shorter = 0,
      number = 0
    const add = (/** @type {string} */ slug, /** @type {Able} */ one, /** @type {Engine.Fitting?} */ fits) => {
      number++
      if (!fits) return
      if (one.context !== null && one.context < given.context) shorter++
      else found.push({ slug, able: one, said: fits })
    }
    const drawn = () => draw(found, shorter, number, able.size, given, on),
      divided = given.devices === 1n ? null : await capacitiesOn(given.devices, state.weights)
    if (mine !== turn) return
    if (given.devices === 1n || divided) {
      const rest = paced(AT_ONCE)
      let last = performance.now()
      for (const [slug, one] of able) {
        add(slug, one, fitting(divided?.get(slug) ?? one.sized, state.weights, given, on))
        await rest()
        if (mine !== turn || !place.isConnected) return
        if (divided && performance.now() - last > BETWEEN) {
          drawn()
          last = performance.now()
        }
      }
    } else await counted(able, given, on, mine, add, drawn)
    await pause()
    if (mine === turn) await draw(found, shorter, number, able.size, given, on)
  }

  // For more devices each model is traced, which takes a while: results so far are drawn now and then.
  /**
   * @param {Map<string, Able>} able
   * @param {Engine.Conditions} given
   * @param {Engine.Machine} on
   * @param {number} mine
   * @param {(slug: string, one: Able, fits: Engine.Fitting?) => void} add
   * @param {() => void} drawn
   */
  async function counted(able, given, on, mine, add, drawn) {
    const [keys] = await Promise.all([allKeys(), loadGguf()])
    let last = performance.now()
    for (const [slug, one] of [...able].sort(([, a], [, b]) => (a.sized.total < b.sized.total ? 1 : -1))) {
      if (leastBytes(one.sized) > on.memory_bytes * given.devices) add(slug, one, null)
      else {
        const costs = await costsOf(slug, keys)
        if (mine !== turn || !place.isConnected) return
        add(slug, one, fitting(costs, state.weights, given, on))
      }
      if (performance.now() - last > BETWEEN) {
        drawn()
        await new Promise(resolve => setTimeout(resolve))
        if (mine !== turn) return
        last = performance.now()
      }
    }
  }
  const leastBytes = (/** @type {Engine.Capacity} */ sized) =>
    [...sized.weights].map(name => sized.weights.read(name).total).reduce((a, b) => (b < a ? b : a))

  /**
   * @param {Found[]} found
   * @param {number} shorter
   * @param {number} number
   * @param {number} whole
   * @param {Engine.Conditions} given
   * @param {Engine.Machine} on
   */
  async function draw(found, shorter, number, whole, given, on) {
    const mine = ++drawing
    const shown = found.filter(isShown),
      bySlug = new Map(shown.map(one => [one.slug, one])),
      isTimed = on.accelerator !== null,
      isSplit = given.devices > 1n
    const inOrder = in_order(shown.map(({ slug, able, said }) => [slug, able.sized.total, said]))
    const ordered = [...inOrder].flatMap(([slug]) => bySlug.get(slug) ?? [])
    const rows = (/** @type {Found[]} */ some) => some.map(one => rowOf(one, isTimed, isSplit))
    await pause()
    if (mine !== drawing) return
    place.setAttribute("aria-busy", "true")
    replace(
      line,
      make("strong", {}, `${found.length} of ${whole} models fit on ${several(given, on)}`),
      ` at ${conditionsSaid(given)}, ${howSaid()}.`,
      shown.length < found.length ? ` Showing ${shown.length}.` : "",
      shorter ? ` ${shorter} more would fit but support only a shorter context.` : "",
      number < whole ? ` Counted so far: ${number} of ${whole}.` : "",
    )
    const columns = [
      "Model",
      "#Parameters",
      "Weights",
      "#Memory used",
      "#Free",
      "#Longest context",
      "#Largest batch",
      ...(isTimed ? ["#Minimum time per token"] : []),
      ...(isSplit ? ["Split"] : []),
      "Kind",
    ]
    const atFirst = state.sort ? ordered.length : AT_FIRST
    show(first, "Models that fit, the largest first", columns, rows(ordered.slice(0, atFirst)))
    sorted()
    replace(second)
    const caveats = new Set(shown.flatMap(({ able }) => able.caveat ?? []))
    replace(more, make("p", { class: "ep-conventions" }, [RULE, isTimed ? TIME : NO_TIME, ...caveats].join(" ")))
    isDrawn()
    const body = first.querySelector("tbody")
    for (let i = atFirst; i < ordered.length; i += AT_A_TIME) {
      await painted()
      if (mine !== drawing) return
      body?.append(...lines(columns, rows(ordered.slice(i, i + AT_A_TIME))))
    }
    if (first.querySelector("thead [aria-sort]")) sorted() // chosen in the meantime
    place.setAttribute("aria-busy", String(number < whole))
  }
  const isShown = (/** @type {Found} */ { slug, able }) => {
    const n = Number(able.sized.total)
    return (
      (!state.family || familyOf(slug) === state.family) &&
      (!state.kind || able.kind === state.kind) &&
      (!state.licence || able.licence === state.licence) &&
      (!state.least || n >= sizeOf(state.least)) &&
      (!state.most || n <= sizeOf(state.most))
    )
  }
  /**
   * @param {Found} found
   * @param {boolean} isTimed
   * @param {boolean} isSplit
   */
  function rowOf({ slug, able, said }, isTimed, isSplit) {
    const name = link(nameOf(slug), { model: slug, weights: said.format })
    name.dataset.sort = nameOf(slug)
    return [
      name,
      sortedBy(
        make("span", { title: `${grouped(able.sized.total)} parameters` }, short(able.sized.total)),
        able.sized.total,
      ),
      formatSaid(able, said.format),
      exact(said.total, "bytes"),
      exact(said.left, "bytes"),
      longest(said.longest_context),
      grouped(said.largest_batch),
      ...(isTimed ? [timeOf(said)] : []),
      ...(isSplit ? [said.split.letters] : []),
      able.kind === MIXTURE ? make("abbr", { title: MIXTURE }, "MoE") : able.kind,
    ]
  }

  // A model

  /**
   * @param {Map<string, Able>} able
   * @param {Engine.Conditions} given
   * @param {Engine.Machine} on
   * @param {number} mine
   */
  async function ofModel(able, given, on, mine) {
    const one = /** @type {Able} */ (able.get(state.model)),
      { keys, page, caveat } = await about(state.model),
      [{ costs, counts }] = await Promise.all([modelOf(keys), loadGguf()])
    if (mine !== turn) return
    const sized = given.devices === 1n && isListed(state.weights) ? one.sized : costs
    const isBest = state.weights === BEST,
      wanted = isBest ? (chosen(costs, BEST, given, on.memory_bytes) ?? smallest(costs)) : state.weights
    const at = (/** @type {string} */ format) => conditions({ ...fieldsOf(given), format })
    if (!costs.is_there(wanted))
      throw Problem(`weights = ${wanted}: ${nameOf(state.model)} has no such format`, "choose another")
    const here = answer(sized, at(wanted), on)
    if (!here) throw costs.devices.without_split(given.devices, given.batch)
    const enough = costs.devices.least_split(at(wanted), on.memory_bytes),
      fits = here.left >= 0n
    const made = one.context !== null && (here.longest_context === null || here.longest_context > one.context)
    replace(
      line,
      make(
        "strong",
        {},
        `${nameOf(state.model)} ${counts.formats.phrase(wanted)} `,
        `${fits ? "fits" : "does not fit"} on ${several(given, on)}: `,
      ),
      `at ${conditionsSaid(given)}, it takes ${bytes(here.total)} of ${bytes(on.memory_bytes)}`,
      given.devices > 1n ? ` on the fullest device (${here.split.said}), ` : ", ",
      fits ? `which leaves ${bytes(here.left)} free. ` : `${bytes(-here.left)} too much. `,
      here.longest_context === null
        ? "Memory does not limit the context"
        : here.longest_context === 0n
          ? "Not even one token of context fits"
          : `The longest context that fits is ${grouped(here.longest_context)} tokens`,
      made ? `; the model supports ${grouped(one.context ?? 0n)}. ` : ". ",
      fits
        ? ""
        : enough
          ? `It fits on ${grouped(enough.devices)} devices: ${enough.said}.`
          : "It fits with none of the splits that are tried.",
    )
    place.removeAttribute("aria-busy")
    const isTimed = on.accelerator !== null
    const other = [...LADDER].includes(wanted) ? [] : [wanted],
      formats = [...LADDER, ...other].filter(f => costs.is_there(f) && f !== one.said("published"))
    const rows = formats.flatMap(format => {
      const said = answer(sized, at(format), on)
      if (!said) return []
      const devices = costs.devices.least_split(at(format), on.memory_bytes)
      const cells = [
        link(formatSaid(one, format), { weights: format }),
        sortedBy(make("span", {}, py.float(said.bits_per_weight).toFixed(2)), py.float(said.bits_per_weight)),
        exact(said.total, "bytes"),
        exact(said.left, "bytes"),
        longest(said.longest_context),
        said.left < 0n ? "–" : grouped(said.largest_batch),
        ...(isTimed ? [said.left < 0n ? "–" : timeOf(said)] : []),
        howMany(devices),
      ]
      return [Object.assign(cells, format === wanted ? { cls: "ep-differs" } : {})]
    })
    show(
      first,
      `Formats on ${several(given, on)}`,
      [
        "Weights",
        "#Bits per weight",
        "#Memory used",
        "#Free",
        "#Longest context",
        "#Largest batch",
        ...(isTimed ? ["#Minimum time per token"] : []),
        "#Devices needed",
      ],
      rows,
    )
    sorted()
    await new Promise(resolve => setTimeout(resolve, 20)) // the answer is seen before the rest
    if (mine !== turn) return
    drawMachines(one, sized, costs, given, isBest ? "published" : wanted)
    replace(
      more,
      make("p", { class: "ep-conventions" }, `${RULE} ${TIME}`, caveat ? ` ${caveat}` : ""),
      make(
        "p",
        {},
        page
          ? make("a", { href: new URL(page, new URL("../../", import.meta.url)) }, `All about ${nameOf(state.model)}`)
          : null,
        " · ",
        link(`All models that fit on ${several(given, on)}`, { model: "", weights: BEST }),
      ),
    )
  }

  /**
   * The machines of the list: in which format a model fits, and how many devices it needs in the chosen format.
   * @param {Able} one
   * @param {Engine.Sized} sized
   * @param {Engine.Costs} costs
   * @param {Engine.Conditions} given
   * @param {string} wanted
   */
  function drawMachines(one, sized, costs, given, wanted) {
    const at = conditions({ ...fieldsOf(given), format: wanted })
    const answers = [...accelerators].map(([slug, accelerator]) => {
      const on = machine(slug, accelerators),
        said = fitting(sized, state.weights, given, on),
        enough = costs.devices.least_split(at, on.memory_bytes)
      return { slug, accelerator, said, enough, order: [...order_of_machines(said, enough, on)] }
    })
    answers.sort((a, b) => {
      const i = [0, 1, 2].find(i => a.order[i] !== b.order[i])
      return i === undefined ? (a.slug < b.slug ? -1 : 1) : a.order[i] < b.order[i] ? -1 : 1
    })
    const rows = answers.map(({ slug, accelerator, said, enough }) => [
      link(accelerator.name, { on: slug }),
      exact(accelerator.memory_bytes, "bytes"),
      said ? formatSaid(one, said.format) : "does not fit",
      said ? exact(said.total, "bytes") : "–",
      said ? exact(said.left, "bytes") : "–",
      said ? longest(said.longest_context) : "–",
      said ? grouped(said.largest_batch) : "–",
      said ? timeOf(said) : "–",
      howMany(enough),
    ])
    show(
      second,
      given.devices > 1n ? `Machines with ${grouped(given.devices)} devices each` : "Machines",
      [
        "Machine",
        "#Memory",
        "Weights",
        "#Memory used",
        "#Free",
        "#Longest context",
        "#Largest batch",
        "#Minimum time per token",
        wanted === "published" ? "#Devices needed, as published" : `#Devices needed in ${wanted}`,
      ],
      rows,
    )
  }

  // Words

  const several = (/** @type {Engine.Conditions} */ given, /** @type {Engine.Machine} */ on) =>
    given.devices > 1n ? `${grouped(given.devices)} × ${on.name}` : on.name
  const conditionsSaid = (/** @type {Engine.Conditions} */ given) =>
    [
      given.batch > 1n ? `${grouped(given.batch)} sequences of ` : "",
      `${grouped(given.context)} tokens with the KV cache in ${state.cache}`,
    ].join("")
  const howSaid = () =>
    state.weights === BEST
      ? "each in the best format that fits"
      : state.weights === "published"
        ? "with weights as published"
        : `with weights in ${state.weights}`
  const formatSaid = (/** @type {Able} */ one, /** @type {string} */ format) => in_words(format, one.said(format))
  /**
   * A link to this page with other choices, taken without leaving it.
   * @param {string} text
   * @param {Partial<typeof state>} values
   */
  function link(text, values) {
    const at = new URL(location.href)
    at.search = `${new URLSearchParams(saidOf({ ...state, sort: "", order: "", ...values }))}`
    return make(
      "a",
      {
        href: at,
        onclick: (/** @type {MouseEvent} */ event) => {
          if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return
          event.preventDefault()
          event.stopPropagation()
          change({ sort: "", order: "", ...values })
          line.scrollIntoView({ block: "nearest" })
        },
      },
      text,
    )
  }

  await Promise.race([recall(), drawn]) // models over several devices come one by one
  await pause()
  replace(place, form, line, first, second, more) // all at once, so that nothing moves
  sorted()
  place.dataset.first = (performance.now() - started).toFixed(1)
}

/** @type {Map<string, Promise<Engine.Costs>>} */
const traced = new Map()
/**
 * @param {string} slug
 * @param {Engine.Dict<string, Engine.Keys>} keys
 */
function costsOf(slug, keys) {
  const costs = traced.get(slug) ?? modelOf(keys.read(slug)).then(one => one.costs)
  traced.set(slug, costs)
  return costs
}

// The address of a choice: what differs from the defaults, and always machine and context.
const saidOf = (/** @type {Record<string, string>} */ state) =>
  Object.fromEntries(
    Object.entries(state).filter(
      ([name, value]) => value !== DEFAULTS[/** @type {Name} */ (name)] || ["on", "context"].includes(name),
    ),
  )
const fieldsOf = (/** @type {Engine.Conditions} */ given) => ({
  context: given.context,
  batch: given.batch,
  dtype: given.dtype,
  devices: given.devices,
})
const MIXTURE = "mixture of experts"
// What an address calls a column, by its heading.
/** @type {Record<string, string>} */
const COLUMNS = {
  Model: "model",
  Parameters: "parameters",
  Weights: "weights",
  "Bits per weight": "bits-a-weight",
  "Memory used": "takes",
  Free: "left",
  "Longest context": "longest-context",
  "Largest batch": "largest-batch",
  "Minimum time per token": "least-time-per-token",
  "Devices needed": "devices-that-hold-it",
  Split: "split",
  Kind: "kind",
}
const slugOf = (/** @type {HTMLElement} */ th) => COLUMNS[th.textContent]
const isFirst = (/** @type {string} */ text, /** @type {number} */ i, /** @type {string[]} */ all) =>
  all.indexOf(text) === i
function sortedBy(/** @type {HTMLElement} */ cell, /** @type {bigint | number} */ n) {
  cell.dataset.sort = String(n)
  return cell
}
const longest = (/** @type {bigint?} */ context) =>
  context === null ? sortedBy(make("span", {}, "unlimited"), 1e99) : context ? grouped(context) : "–"
const timeOf = (/** @type {Engine.Fitting} */ { seconds: time }) => (time === null ? "–" : seconds(py.float(time)))
const howMany = (/** @type {Engine.Split?} */ split) =>
  split
    ? make(
        "span",
        {},
        grouped(split.devices),
        split.letters ? make("span", { class: "ep-range" }, ` (${split.letters})`) : null,
      )
    : "–"

const RULE =
  `The best format is the first one that fits: as published, then ${[...LADDER].slice(1).join(", ")}. ` +
  "Models with at least four bits per weight come first, then those with fewer; in both groups, the largest first. " +
  "Memory covers weights, KV cache and the largest operation; engines use more."
const TIME = "Times are lower bounds."
const NO_TIME = "Add a bandwidth, as in 24GB,1008GB/s, to get the minimum time per token."
