// What the tools do alike: the fields are read by rules, an answer is computed of what they say, a view is drawn of it,
// and the address keeps the choices. The latest change wins. And the fields that several of them have.

import { BOUNDS, CACHE_BYTES, isProblem, loadFormats, OWN_MACHINE, pause, said } from "../conditions.mjs"
import { accepted, steps } from "./address.mjs"
import { grouped, machinesByVendor, written } from "./kit.mjs"
import { offered } from "./runs.mjs"
import { Component, html, labelled, optionsOf, pairs, render } from "./view.mjs"

/**
 * @typedef {Record<string, any>} Values what is chosen: texts by the names of the rules, and what else a tool has
 * @typedef {Fields & {
 *   values: any, answer: any, problem: string, refused: string[], at: string | null,
 * }} Shown what a view is drawn of: the fields with their values, the last answer, what is wrong; `at` is the field
 *   that one types into
 * @typedef {object} Tool
 * @property {Record<string, string>} defaults
 * @property {Record<string, import("./address.mjs").Rule>} rules
 * @property {(given: URLSearchParams, values: Values, wrong: string[]) => Values} recalled the values of an address
 *   that no rule is for
 * @property {Parameters<typeof steps>[1] extends () => infer T ? (values: any) => T : never} address
 * @property {(values: any, wrong: string[], going: Going) => Promise<any>} answer of these values; throws a problem. It
 *   notes the parts of an address that it drops; null is no answer and no problem
 * @property {(values: any, said: string, isLast: boolean) => boolean} leave drops the parts of an address that a
 *   problem names, or all of them; false if there are none
 * @property {(said: string, shown: Shown) => string[]} invalid the fields that a problem is about
 * @property {(shown: Shown) => import("./view.mjs").Child} view
 * @property {string[]} [drafts] fields whose text waits for a button
 * @property {true} [readsFormats] by itself, where it needs their rules
 * @typedef {(part?: object) => boolean} Going whether an answer is still asked for; shows the part of it that is there
 */

const MOST_TRIED = 10 // times that parts of an address are dropped, until all are

/** A tool in its place: what is chosen, the last answer, and what a change does. */
export class Begun {
  /** @type {Shown} */
  shown = {
    ...{ values: {}, typed: {}, invalid: new Set(), answer: null, problem: "", refused: [], at: null },
  }
  turn = 0
  box = document.createElement("div")
  /**
   * @param {HTMLElement} place
   * @param {Tool} tool
   */
  constructor(place, tool) {
    Object.assign(this.shown.values, tool.defaults)
    this.place = place
    this.tool = tool
    this.remember = steps(
      place,
      () => tool.address(this.shown.values),
      () => this.recall(),
    )
  }
  draw() {
    render(this.tool.view(this.shown), this.box)
  }
  /** Shows the tool in its place, all at once, so that nothing moves. */
  show() {
    this.place.replaceChildren(this.box)
  }
  /** The values of the fields; throws the problem of an invalid one. */
  read() {
    const { values, typed } = this.shown,
      { rules, defaults } = this.tool
    for (const [name, rule] of Object.entries(rules))
      if (name in typed) values[name] = rule(typed[name] || defaults[name])
  }
  /** Draws a valid choice: only a field that one types into, or of a rule, stands as it was typed. */
  settle() {
    const { typed, at } = this.shown,
      { rules, drafts = [] } = this.tool,
      kept = Object.entries(typed).filter(([name]) => name in rules || name === at || drafts.includes(name))
    this.shown.typed = Object.fromEntries(kept)
    this.draw()
  }
  /** Shows what is wrong with what is chosen; the answer stays. @param {unknown} error */
  refuse(error) {
    const { shown } = this,
      isOwn = isProblem(error),
      text = isOwn ? said(error) : `internal error: ${said(error)}`
    this.turn++
    shown.problem = `${text}.${shown.answer ? " The figures below are unchanged." : ""}`
    for (const name of this.tool.invalid(text, shown)) shown.invalid.add(name)
    this.draw()
    if (!isOwn) reportError(error)
  }
  /**
   * Computes and shows what is chosen; `wrong` gets the invalid parts of an address.
   * @param {string[]} [wrong]
   * @returns {Promise<void>}
   */
  async update(wrong = undefined) {
    const started = performance.now(),
      mine = ++this.turn,
      { shown, tool, place } = this,
      isOver = () => mine !== this.turn // a later change is under way
    const taken = () => (performance.now() - started).toFixed(1)
    if (!wrong) shown.refused = []
    try {
      this.read()
      if (!tool.readsFormats) await loadFormats(shown.values.weights)
      if (isOver()) return
      const answer = await tool.answer(shown.values, wrong ?? [], part => {
        if (part && !isOver()) {
          Object.assign(shown, { answer: { ...shown.answer, ...part }, problem: "", invalid: new Set() })
          this.draw()
        }
        return !isOver()
      })
      if (!isOver()) await pause()
      if (isOver()) return
      Object.assign(shown, { answer, problem: "", invalid: new Set() })
      this.settle()
      place.dataset.answered = taken()
    } catch (error) {
      if (isOver()) return
      if (wrong && isProblem(error) && tool.leave(shown.values, said(error), wrong.length >= MOST_TRIED)) {
        wrong.push(said(error))
        return this.update(wrong)
      }
      this.refuse(error)
    }
    place.dataset.milliseconds = taken()
  }
  /** Shows what the address says. */
  async recall() {
    const { shown, tool } = this,
      given = new URLSearchParams(location.search),
      [values, wrong] = accepted(given, tool.rules, tool.defaults)
    Object.assign(shown, { values: tool.recalled(given, { ...shown.values, ...values }, wrong), typed: {}, at: null })
    await this.update(wrong)
    shown.refused = [...new Set(wrong)]
    this.draw()
  }
  /** Takes what was typed into a field. @param {HTMLInputElement} field */
  typed({ name, value, validity }) {
    const of = name === "machine" ? "on" : name
    Object.assign(this.shown.typed, { [of]: validity.badInput ? BAD : value })
    this.shown.at = of
    return of in this.tool.rules
  }
  /** Chooses anew. @param {Values} values @param {EventTarget?} field that was typed into */
  change(values, field = null) {
    Object.assign(this.shown.values, values)
    for (const name of Object.keys(values)) if (/** @type {any} */ (field)?.name !== name) delete this.shown.typed[name]
    if (!field) this.shown.at = null
    const done = this.update()
    if (!(field instanceof HTMLInputElement)) this.draw() // a choice is seen before its answer
    this.remember(field)
    return done
  }
  /** Chooses by a button or a link: the fields say it. @param {Values} values */
  take(values) {
    this.shown.typed = {}
    return this.change(values)
  }
  /** Leaves what was typed into a field. */
  left() {
    if (this.shown.at === null) return
    this.shown.at = null
    if (!this.shown.problem) this.settle()
  }
}

// Fields

/** @typedef {import("./view.mjs").Groups} Groups */

/**
 * What a form shows: of each field its text, and whether it is invalid.
 * @typedef {object} Fields
 * @property {Record<string, string>} values
 * @property {Record<string, string>} typed what stands in a field instead of its value
 * @property {Set<string>} invalid names
 */
const BAD = "…" // typed where a field's text is none of its type
export const textOf = (/** @type {Fields} */ { values, typed }, /** @type {string} */ name) =>
  typed[name] === BAD ? "" : (typed[name] ?? values[name])
/** The attributes of a field. @param {Fields} fields @param {string} name */
export const held = (fields, name) => ({
  name,
  value: textOf(fields, name),
  "aria-invalid": fields.invalid.has(name) ? "true" : undefined,
})
/**
 * @param {Fields} fields
 * @param {string} name
 * @param {bigint} most
 */
const whole = (fields, name, most) =>
  html`<input type="number" min="1" max=${`${most}`} step="1" inputmode="numeric" ...${held(fields, name)} />`
/**
 * The fields for what a model is run under, with the formats that an engine runs on the machine, after those of `best`.
 * @param {Fields} fields
 * @param {Map<string, Engine.Accelerator>} accelerators
 * @param {import("./kit.mjs").Option[]} best
 */
export const conditionFields = (fields, accelerators, best = []) => {
  const chosen = (/** @type {string} */ name, /** @type {Groups} */ groups) =>
    html`<select ...${held(fields, name)}>${optionsOf(groups)}</select>`
  return {
    devices: labelled("Devices", whole(fields, "devices", BOUNDS.MOST_DEVICES)),
    context: labelled("Context, tokens", whole(fields, "context", BOUNDS.MOST_TOKENS)),
    batch: labelled("Batch size", whole(fields, "batch", BOUNDS.MOST_TEXTS)),
    weights: labelled(
      "Weights",
      chosen("weights", [
        ...best,
        ["published", "as published"],
        ...offered(accelerators.get(fields.values.on) ?? null, fields.values.weights),
      ]),
    ),
    cache: labelled("KV cache", chosen("cache", pairs(CACHE_BYTES))),
  }
}
/**
 * The fields for a machine: one of a list, named "on", or the reader's own, as text, which the list takes as its value.
 * @extends {Component<{ fields: Fields, accelerators: Map<string, Engine.Accelerator> }>}
 */
export class MachineFields extends Component {
  own = OWN_MACHINE
  options = optionsOf(machinesByVendor(this.props.accelerators))
  isWritten = false
  /** @param {{ fields: Fields, accelerators: Map<string, Engine.Accelerator> }} props */
  render({ fields, accelerators }) {
    const field = held(fields, "on"),
      isOwn = this.isWritten || !accelerators.has(field.value),
      is = (/** @type {boolean} */ isWritten) => () => void (this.isWritten = isWritten)
    if (!accelerators.has(field.value)) this.own = field.value
    const list = html`<select ...${field} oninput=${is(false)}>
      ${optionsOf([[this.own, "Custom"]])}${this.options}
    </select>`
    const text = html`<input ...${field} name="machine" value=${isOwn ? field.value : this.own} size="28"
      spellcheck=${false} autocomplete="off" oninput=${is(true)} onblur=${is(false)} />`
    return [labelled("Machine", list), labelled("Memory, bandwidth, peak FLOPS", text, !isOwn)]
  }
}

let made = 0
/**
 * A choice that one types into. The list that holds its value stays in the form, out of sight; a change of the choice
 * is an `input` of that list, as of any other.
 * @typedef {{ title: string, name: string, groups: Groups, value: string }} Found
 * @extends {Component<Found, { text: string | null }>}
 */
export class Finder extends Component {
  id = `ep-found-${++made}`
  state = { text: null } // what is typed while the list is open
  /** @type {Record<string, any>} */
  parts = {}
  options = optionsOf(this.props.groups)
  /** @type {import("./combobox.mjs").Moves | undefined} */
  moves
  matching = () => /** @type {import("./view.mjs").Child} */ (null)
  chosen() {
    return this.parts.chosen.selectedOptions[0]?.text ?? ""
  }
  shouldComponentUpdate(/** @type {Found} */ { value, title }, /** @type {{ text: string? }} */ { text }) {
    return value !== this.props.value || title !== this.props.title || text !== this.state.text
  }
  componentDidMount() {
    this.componentDidUpdate()
  }
  componentDidUpdate() {
    if (this.state.text === null) this.parts.field.value = this.chosen()
  }
  async open(text = "") {
    const { field, list } = this.parts
    if (!this.moves) {
      const { combobox, matching } = await import("./find.mjs")
      this.matching = () => matching(this.props.groups, this.state.text ?? "", this.props.value)
      this.moves = await combobox(field, list, "active")
    }
    if (document.activeElement !== field) return
    this.moves.stop()
    this.setState({ text }, () => {
      this.moves?.start()
      list.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" })
    })
  }
  close() {
    if (this.state.text !== null) this.moves?.stop()
    this.parts.field.value = this.chosen()
    this.setState({ text: null })
  }
  commit(/** @type {HTMLElement} */ { dataset }) {
    const { chosen, field } = this.parts,
      isOther = dataset.value !== chosen.value
    chosen.value = dataset.value ?? ""
    this.close()
    field.select()
    if (isOther) chosen.dispatchEvent(new Event("input", { bubbles: true }))
  }
  keys(/** @type {KeyboardEvent} */ event) {
    if (event.key === "Escape") this.close()
    else if (this.state.text === null && ["ArrowDown", "ArrowUp", "Enter"].includes(event.key)) {
      event.preventDefault()
      this.open()
    }
  }
  typed(/** @type {InputEvent} */ event) {
    event.stopPropagation() // the form hears of the choice, not of the letters
    this.open(this.parts.field.value)
  }
  /** @param {Found} props @param {{ text: string? }} state */
  render({ title, name, value }, { text }) {
    const { parts } = this,
      ref = (/** @type {string} */ name) => (/** @type {Element} */ element) => void (parts[name] = element)
    const field = html`<input ref=${ref("field")} role="combobox" size="24" spellcheck=${false} autocomplete="off"
      aria-expanded=${text !== null} onfocus=${() => parts.field.select()} onclick=${() => this.open()}
      oninput=${this.typed.bind(this)} onkeydown=${this.keys.bind(this)} onblur=${() => this.close()} />`
    const list = html`<select name=${name} ref=${ref("chosen")} class="ep-unseen" tabindex="-1" aria-hidden="true"
      value=${value} oninput=${() => this.componentDidUpdate()}>${this.options}</select>`
    return html`<div class="ep-find">
      ${labelled(title, field)}${list}
      <div ref=${ref("list")} id=${this.id} role="listbox" aria-label=${title} hidden=${text === null}
        onmousedown=${(/** @type {Event} */ event) => event.preventDefault() /* the field keeps the focus */}
        oncombobox-commit=${(/** @type {Event} */ { target }) => this.commit(/** @type {HTMLElement} */ (target))}>
        ${text !== null && this.matching()}
      </div>
    </div>`
  }
}
/**
 * @param {string} title
 * @param {string} name
 * @param {Groups} groups
 * @param {string} value
 */
export const finder = (title, name, groups, value) =>
  html`<${Finder} key=${name} title=${title} name=${name} groups=${groups} value=${value} />`

/**
 * A number in a readable unit, with the exact one as its title.
 * @param {Engine.Exact?} value
 * @param {string} unit
 */
export const exact = (value, unit) => {
  const title = typeof value === "bigint" ? `${grouped(value)} ${unit}` : undefined
  return html`<span title=${title}>${written(value, unit)}</span>`
}
