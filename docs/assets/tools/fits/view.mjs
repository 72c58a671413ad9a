// What fits, drawn: the form, and a list of models or the formats and machines of one.

import { painted } from "../../conditions.mjs"
import { BEST } from "../../fitting.mjs"
import { order } from "../../tables.mjs"
import { rowsOf } from "../cells.mjs"
import { conditionFields, finder, MachineFields } from "../tool.mjs"
import { alert, Component, html, Kept, labelled, pairs, refusals, select, show, stay } from "../view.mjs"

const AT_FIRST = 16,
  AT_A_TIME = 12 // rows of a long table
const AMOUNTS = ["8GB", "12GB", "16GB", "24GB", "48GB", "80GB"]
// What an address calls a column, by its heading.
/** @type {Record<string, string>} */
export const COLUMNS = {
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

/**
 * @typedef {import("../view.mjs").Child} Child
 * @typedef {import("./answer.mjs").Answer} Answer
 * @typedef {object} Doing what can be done
 * @property {import("../view.mjs").Groups} groups of models
 * @property {Record<string, string[]>} filters what there is to choose from, by the names of the fields
 * @property {Map<string, Engine.Accelerator>} accelerators
 * @property {(field: HTMLInputElement) => void} typed
 * @property {(values: Record<string, string>) => void} take
 * @property {(sort: string, direction: string) => void} sorted by a heading
 * @property {import("../cells.mjs").Link} link
 * @property {(isBusy: boolean) => void} busy while the list grows
 */

/** @param {import("../tool.mjs").Shown} shown @param {Doing} doing */
export const view = (shown, doing) => {
  /** @type {Answer | null} */
  const answer = shown.answer,
    { values } = shown,
    { devices, context, batch, weights, cache } = conditionFields(shown, doing.accelerators, [[BEST, "best that fits"]])
  return html`
    <form class="ep-whatif" onsubmit=${stay} oninput=${(/** @type {any} */ { target }) => doing.typed(target)}>
      <fieldset class="ep-row">
        <legend>Hardware</legend>
        <${MachineFields} fields=${shown} accelerators=${doing.accelerators} />${devices}
        <div class="ep-ways" role="group" aria-label="Common memory sizes">
          ${AMOUNTS.map(
            on =>
              html`<button type="button" data-on=${on} aria-pressed=${on === values.on}
                onclick=${() => doing.take({ on })}>${on.replace("GB", " GB")}</button>`,
          )}
        </div>
      </fieldset>
      <fieldset class="ep-row">
        <legend>Model and conditions</legend>
        ${finder("Model", "model", doing.groups, values.model)}${context}${batch}${weights}${cache}
      </fieldset>
      ${filters(values, doing)}${refusals(shown.refused)}${alert(shown.problem)}
    </form>
    <p class="ep-answer" role="status">${answer && html`<strong>${answer.said[0]}</strong>`}${answer?.said[1]}</p>
    ${answer && html`<${Kept} of=${[answer, values.sort]}>${() => results(answer, values, doing)}<//>`}`
}

/** @param {import("../tool.mjs").Values} values @param {Doing} doing */
const filters = (values, { filters }) => {
  const choice = (/** @type {string} */ name, every = "all") =>
    select(name, [["", every], ...pairs(filters[name])], values[name])
  const fields = () => html`<div class="ep-row">
    ${labelled("Family", choice("family"))}${labelled("Parameters, at least", choice("least", "any"))}
    ${labelled("at most", choice("most", "any"))}${labelled("Kind", choice("kind"))}
    ${labelled("License", choice("licence"))}
  </div>`
  return html`<details hidden=${values.model !== ""} open=${values.isFiltered}>
    <summary>Filter models</summary>
    <${Kept} of=${Object.keys(filters).map(name => values[name])}>${fields}<//>
  </details>`
}

/** @param {Answer} answer @param {Record<string, string>} values @param {Doing} doing */
const results = ({ list, formats, machines, notes, links }, { sort, order }, { link, busy, sorted }) => {
  const drawn = (/** @type {import("./answer.mjs").Table?} */ one) =>
    html`<${Kept} of=${[one]}>${() => one && show(one.caption, one.head, rowsOf(one.rows, link))}<//>`
  return html`
    <${Sorted} ...${{ sort, order, sorted }}>
      ${list ? html`<${Grown} ...${list} isAtOnce=${sort} link=${link} busy=${busy} />` : drawn(formats)}
    <//>
    ${drawn(machines)}
    <div>
      <p class="ep-conventions">${notes}</p>
      ${links && others(links, link)}
    </div>`
}
/** @param {NonNullable<Answer["links"]>} links @param {Doing["link"]} link */
const others = ({ page, name, others }, link) => html`<p>
  ${page && html`<a href=${new URL(page, ROOT).href}>All about ${name}</a>`}${" · "}
  ${link(others, { model: "", weights: BEST })}
</p>`
const ROOT = new URL("../../../", import.meta.url)

/**
 * A long table: its first rows at once, the others a few at a time, as the browser paints.
 * @typedef {NonNullable<Answer["list"]> & Pick<Doing, "link" | "busy"> & { isAtOnce: string }} List
 * @extends {Component<List>}
 */
class Grown extends Component {
  /** @type {import("./answer.mjs").Found[] | undefined} */
  items
  /** @type {import("../view.mjs").Row[]} */
  rows = []
  componentDidMount() {
    this.grow()
  }
  /** @param {List} before */
  componentDidUpdate(before) {
    if (before.items !== this.props.items) this.grow()
  }
  /** @param {List} next @param {unknown} state */
  shouldComponentUpdate({ items }, state) {
    return items !== this.props.items || state !== this.state
  }
  add(/** @type {number} */ n) {
    const { items, rowOf, link } = this.props,
      from = this.rows.length
    this.rows.push(...rowsOf(items.slice(from, from + n).map(rowOf), link))
  }
  async grow() {
    const { items, busy, isWhole } = this.props
    busy(true)
    while (this.rows.length < items.length) {
      await painted()
      if (items !== this.props.items) return
      this.add(AT_A_TIME)
      this.setState({})
    }
    busy(!isWhole)
  }
  render() {
    const { items, caption, head, isAtOnce } = this.props
    if (items !== this.items) {
      Object.assign(this, { items, rows: [] })
      this.add(isAtOnce ? items.length : AT_FIRST)
    }
    return show(caption, head, [...this.rows])
  }
}

/**
 * The table in here is sorted as the address says; its headings sort it by themselves.
 * @typedef {{ sort: string, order: string, sorted: Doing["sorted"], children: Child }} Sorting
 * @extends {Component<Sorting>}
 */
class Sorted extends Component {
  /** @type {HTMLElement | undefined} */
  place
  headings = () => [.../** @type {NodeListOf<HTMLElement>} */ (this.place?.querySelectorAll("thead th") ?? [])]
  componentDidMount() {
    this.componentDidUpdate()
  }
  componentDidUpdate() {
    const { sort, order: direction } = this.props,
      table = this.place?.querySelector("table"),
      by = this.headings().find(th => COLUMNS[th.textContent] === sort && th.querySelector("button")),
      how = by && (direction === "ascending" ? "ascending" : "descending"),
      is = this.headings().find(th => th.hasAttribute("aria-sort"))
    if (is === by && is?.getAttribute("aria-sort") === how) return
    is?.removeAttribute("aria-sort")
    if (how) by?.setAttribute("aria-sort", how)
    if (table?.tBodies[0].rows.length) order(table)
  }
  clicked(/** @type {any} */ { target }) {
    if (!target.closest("th button")) return
    const by = this.headings().find(th => th.hasAttribute("aria-sort"))
    this.props.sorted(by ? COLUMNS[by.textContent] : "", by?.getAttribute("aria-sort") ?? "")
  }
  render() {
    return html`<div ref=${(/** @type {HTMLElement} */ one) => void (this.place = one)}
      onclick=${this.clicked.bind(this)}>${this.props.children}</div>`
  }
}
