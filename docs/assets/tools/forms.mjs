// Fields and results of the tools that are not drawn by view.mjs yet.

import { BOUNDS, CACHE_BYTES, WEIGHTS, isProblem, OWN_MACHINE, said } from "../conditions.mjs"
import { mount, order } from "../tables.mjs"
import { combobox } from "./combobox.mjs"
import { labelled, lines, make, put, replace, select, table } from "./elements.mjs"
import { grouped, machinesByVendor, pairs, written } from "./kit.mjs"

export { labelled, lines, make, put, refusals, replace, select, table } from "./elements.mjs"
export { accepted, steps } from "./address.mjs"
export * from "./kit.mjs"

/**
 * The fields for a machine: one of a list, named "on", or the reader's own, as text, which the list takes as its value.
 * @param {Map<string, Engine.Accelerator>} accelerators
 */
export function machineFields(accelerators) {
  const own = /** @type {HTMLOptionElement} */ (make("option", { value: OWN_MACHINE }, "Custom"))
  const chosen = /** @type {HTMLSelectElement} */ (
    select("on", machinesByVendor(accelerators), "", { oninput: () => show(chosen.value) })
  )
  const text = /** @type {HTMLInputElement} */ (
    make("input", {
      name: "machine",
      size: 28,
      spellcheck: "false",
      autocomplete: "off",
      oninput: () => take(text.value),
    })
  )
  const written = labelled("Memory, bandwidth, peak FLOPS", text)
  chosen.prepend(own)
  function take(/** @type {string} */ on) {
    own.value = on
    chosen.selectedIndex = 0
  }
  function show(/** @type {string} */ on) {
    written.hidden = accelerators.has(on)
    if (written.hidden) chosen.value = on
    else {
      text.value = on
      take(on)
    }
  }
  return { fields: [labelled("Machine", chosen), written], show }
}
export const numberField = (/** @type {string} */ name, /** @type {bigint} */ most, value = "") =>
  make("input", { type: "number", name, min: 1, max: most, step: 1, value, inputmode: "numeric" })
/**
 * The fields for what a model is run under; `best` goes before the formats.
 * @param {import("./elements.mjs").Option[]} best
 */
export const conditionFields = (best = []) => ({
  devices: labelled("Devices", numberField("devices", BOUNDS.MOST_DEVICES)),
  context: labelled("Context, tokens", numberField("context", BOUNDS.MOST_TOKENS)),
  batch: labelled("Batch size", numberField("batch", BOUNDS.MOST_TEXTS)),
  weights: labelled(
    "Weights",
    select("weights", [...best, ["published", "as published"], ...pairs([...WEIGHTS].slice(1))], ""),
  ),
  cache: labelled("KV cache", select("cache", pairs(CACHE_BYTES), "")),
})
/** @typedef {Record<string, import("./elements.mjs").Rule>} Rules */
/**
 * A form whose fields hold a state, and the line that says what is invalid.
 * @param {HTMLFormElement} form
 * @param {{ show: (on: string) => void }} machines
 */
export function stateIn(form, machines) {
  const problem = make("p", { class: "ep-problem", role: "alert", hidden: true })
  const fieldOf = (/** @type {string} */ name) =>
    /** @type {HTMLInputElement | HTMLSelectElement | null} */ (form.elements.namedItem(name))
  return {
    problem,
    fieldOf,
    write(/** @type {Record<string, string>} */ state) {
      for (const [name, value] of Object.entries(state)) put(fieldOf(name), value)
      machines.show(state.on)
    },
    /**
     * Takes the fields' values; throws the problem of an invalid one.
     * @param {Record<string, string>} state
     * @param {Record<string, string>} defaults
     * @param {Rules} rules
     */
    read(state, defaults, rules) {
      for (const field of form.querySelectorAll("[aria-invalid]")) field.removeAttribute("aria-invalid")
      for (const [name, rule] of Object.entries(rules)) {
        const { value, validity } = fieldOf(name) ?? { value: state[name] }
        state[name] = rule(validity?.badInput ? "…" : value || defaults[name])
      }
    },
    /** Shows an error, and returns it if it is the reader's. @param {unknown} error */
    refuse(error) {
      const isMistake = !isProblem(error)
      problem.hidden = false
      problem.textContent = `${isMistake ? "internal error: " : ""}${said(error)}. The figures below are unchanged.`
      fieldOf(said(error).split(" = ")[0])?.setAttribute("aria-invalid", "true")
      if (isMistake) reportError(error)
      return isMistake ? "" : said(error)
    },
  }
}
/**
 * Shows a table in its place. If the same table is there already, only its rows are replaced, and it stays sorted.
 * @param {HTMLElement} place
 * @param {string} caption
 * @param {string[]} head
 * @param {import("./elements.mjs").Row[]} rows
 */
export function show(place, caption, head, rows) {
  const name = [caption, ...head].join("|"),
    there = place.dataset.table === name && place.querySelector("table")
  if (!there) {
    place.dataset.table = name
    const made = table(caption, head, rows),
      inside = made.querySelector("table")
    replace(place, made)
    if (inside) mount(inside)
    return
  }
  there.tBodies[0].replaceChildren(...lines(head, rows))
  if (there.tHead?.querySelector("[aria-sort]")) order(there)
}

/**
 * A number in a readable unit, with the exact one as its title.
 * @param {Engine.Exact?} value
 * @param {string} unit
 */
export const exact = (value, unit) =>
  make("span", { title: typeof value === "bigint" ? `${grouped(value)} ${unit}` : null }, written(value, unit))

// A choice that one types into. The list that holds its value stays in the form, out of sight.

const plain = (/** @type {string} */ text) => text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, " ")
let made = 0

/**
 * The label, the field and the list; a change of the choice is an `input` of its list, as of any other.
 * @param {string} title
 * @param {string} name
 * @param {Parameters<typeof select>[1]} groups
 * @param {string} value
 * @param {Record<string, import("./elements.mjs").Attribute>} attributes
 */
export function finder(title, name, groups, value, attributes = {}) {
  const chosen = /** @type {HTMLSelectElement} */ (
    select(name, groups, value, { ...attributes, class: "ep-unseen", tabindex: -1, "aria-hidden": "true" })
  )
  const list = make("div", { id: `ep-found-${++made}`, role: "listbox", "aria-label": title, hidden: true }),
    field = /** @type {HTMLInputElement} */ (
      make("input", { role: "combobox", size: 24, spellcheck: "false", autocomplete: "off", "aria-expanded": "false" })
    )
  /** @type {import("./combobox.mjs").Moves | undefined} */
  let moves
  const nameOf = () => chosen.selectedOptions[0]?.text ?? ""
  const show = () => {
    field.value = nameOf()
  }
  function close() {
    if (list.hidden) return
    moves?.stop()
    list.hidden = true
  }
  async function open(text = "") {
    const moving = (moves ??= await combobox(field, list, "active"))
    if (document.activeElement !== field) return
    moving.stop()
    replace(list, matching(groups, plain(text).trim().split(" "), chosen.value))
    list.hidden = false
    moving.start()
    list.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" })
  }
  function commit(/** @type {HTMLElement} */ option) {
    const isOther = option.dataset.value !== chosen.value
    chosen.value = option.dataset.value ?? ""
    close()
    show()
    field.select()
    if (isOther) chosen.dispatchEvent(new Event("input", { bubbles: true }))
  }
  field.addEventListener("focus", () => field.select())
  field.addEventListener("click", () => open())
  field.addEventListener("input", event => {
    event.stopPropagation() // the form hears of the choice, not of the letters
    open(field.value)
  })
  field.addEventListener("keydown", event => {
    if (event.key === "Escape") {
      close()
      show()
    } else if (list.hidden && ["ArrowDown", "ArrowUp", "Enter"].includes(event.key)) {
      event.preventDefault()
      open()
    }
  })
  field.addEventListener("blur", () => {
    close()
    show()
  })
  list.addEventListener("mousedown", event => event.preventDefault()) // the field keeps the focus
  list.addEventListener("combobox-commit", ({ target }) => commit(/** @type {HTMLElement} */ (target)))
  chosen.addEventListener("input", show)
  chosen.addEventListener("put", show)
  show()
  return make("div", { class: "ep-find" }, labelled(title, field), chosen, list)
}

/**
 * The options that have all of these words in their names or in their groups' heading.
 * @param {Parameters<typeof select>[1]} groups
 * @param {string[]} words
 * @param {string} current
 */
function matching(groups, words, current) {
  const has = (/** @type {string} */ text) => words.every(word => plain(text).includes(word))
  const option = (/** @type {[string, string]} */ [value, text]) =>
    make("div", { role: "option", "data-value": value, "aria-current": value === current ? "true" : null }, text)
  const found = groups.flatMap(([first, rest]) => {
    if (!Array.isArray(rest)) return has(rest) ? [option([first, rest])] : []
    const those = rest.filter(([value, text]) => has(`${first} ${text} ${value}`))
    if (!those.length) return []
    return [
      make(
        "div",
        { role: "group", "aria-label": first },
        make("span", { "aria-hidden": "true" }, first),
        those.map(option),
      ),
    ]
  })
  return found.length ? found : make("div", { role: "option", "aria-disabled": "true" }, "No match")
}
