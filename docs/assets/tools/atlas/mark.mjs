// A model of the reader's own in the atlas: the config of the address, counted here and marked in each chart.

import { M, py } from "../../engine/base.mjs"
import "../../engine/design.mjs"
import { bytes, grouped, modelOf, percent, said, short } from "../figures.mjs"
import { alert, html, labelled, render, stay } from "../view.mjs"

const SVG = "http://www.w3.org/2000/svg",
  START = "#config=",
  SIDE = 6 // px of the mark, from its middle
/**
 * @typedef {{ at: number, of: number, value: string }} Choice the position on both axes, none for the date; in words
 * @typedef {[least: number, most: number, start: number, end: number, isLog: boolean]} Scale
 */

/** @type {Record<string, (value: any) => string>} what else is written with three digits */
const WRITERS = {
  "KV cache": value => `${bytes(value)} per token`,
  vocabulary: value => `${grouped(value)} tokens`,
  "active share": ({ numerator, denominator }) => percent(numerator, denominator),
}
const written = (/** @type {string} */ name, /** @type {Engine.Exact} */ value) =>
  WRITERS[name]?.(value) ?? `${Number(py.float(value).toPrecision(3))}`

/**
 * What the makers of a model chose, by the names of the charts.
 * @param {Engine.Model} model
 * @returns {Record<string, Choice | null>}
 */
export function choicesOf({ counts }) {
  const { total } = counts,
    timeline = { at: NaN, of: Number(total), value: `${short(total)} parameters` },
    chosen = py.entries(M["counting.design"].choices(counts)).map(([name, value]) => {
      const at = name === "KV cache" ? Number(total) : NaN
      return [name, value === null ? null : { at, of: py.float(value), value: written(name, value) }]
    })
  return { timeline, ...Object.fromEntries(chosen) }
}
/** Pixels of a value, at most to the end of its axis. @param {Scale} scale @param {number} value */
export function pixels([least, most, start, end, isLog], value) {
  const of = isLog ? Math.log : Number,
    share = (of(Math.min(Math.max(value, least), most)) - of(least)) / (of(most) - of(least))
  return start + (end - start) * share
}
const today = () => {
  const now = new Date(),
    year = now.getFullYear(),
    [start, next] = [year, year + 1].map(one => new Date(one, 0).getTime())
  return year + (now.getTime() - start) / (next - start)
}

/** Draws the mark of a model in every chart, in place of the last. @param {Record<string, Choice | null>} choices */
function mark(choices, /** @type {string} */ name) {
  for (const place of document.querySelectorAll("g.ep-own-mark")) {
    const { choice = "", x = "[]", y = "[]" } = /** @type {SVGGElement} */ (place).dataset,
      one = choices[choice]
    place.replaceChildren()
    if (!one) continue
    const scale = JSON.parse(x),
      [left, top] = [pixels(scale, Number.isNaN(one.at) ? today() : one.at), pixels(JSON.parse(y), one.of)],
      isRight = left > (scale[2] + scale[3]) / 2,
      [shape, text] = ["path", "text"].map(tag => document.createElementNS(SVG, tag))
    shape.setAttribute("d", `M${left - SIDE} ${top}l${SIDE}-${SIDE} ${SIDE} ${SIDE}-${SIDE} ${SIDE}z`)
    text.setAttribute("x", `${left + (isRight ? -2 : 2) * SIDE}`)
    text.setAttribute("y", `${top + 4}`)
    text.setAttribute("text-anchor", isRight ? "end" : "start")
    text.textContent = name
    place.append(shape, text)
  }
}

/**
 * Counts the model of the address, and marks it.
 * @param {HTMLElement} place
 * @param {ChildNode[]} still what it was served with
 */
export async function marked(place, still) {
  const box = document.createElement("div")
  let name = (new URLSearchParams(location.search).get("mark") ?? "").slice(0, 60) || "Your model",
    /** @type {Record<string, Choice | null>} */
    choices = {}
  const draw = (problem = "", isBusy = false) =>
    render(view({ name, choices, problem, isBusy }, { named, remove }), box)
  function named(/** @type {any} */ { target: { value } }) {
    name = value || "Your model"
    const at = new URL(location.href)
    at.searchParams.set("mark", name)
    history.replaceState(history.state, "", at)
    mark(choices, name)
    draw()
  }
  function remove() {
    const at = new URL(location.href)
    at.searchParams.delete("mark")
    at.hash = ""
    history.replaceState(history.state, "", at)
    choices = {}
    mark(choices, name)
    place.replaceChildren(...still)
    place.querySelector("a")?.focus()
  }
  place.replaceChildren(box)
  draw("", true)
  try {
    const [{ described }, { keysIn }] = await Promise.all([import("../../model.mjs"), import("../what-if/own.mjs")]),
      keys = await described(keysIn(decodeURIComponent(location.hash.slice(START.length))))
    choices = choicesOf(await modelOf(keys))
    mark(choices, name)
    draw()
  } catch (error) {
    draw(said(error))
  }
}
/**
 * @param {{ name: string, choices: Record<string, Choice | null>, problem: string, isBusy: boolean }} shown
 * @param {{ named: (event: Event) => void, remove: () => void }} doing
 */
const view = ({ name, choices, problem, isBusy }, { named, remove }) =>
  html`<form class="ep-whatif" onsubmit=${stay}>
      <div class="ep-row">
        ${labelled("Name", html`<input type="text" name="mark" maxlength="60" value=${name} onchange=${named} />`)}
        <button type="button" onclick=${remove}>Remove the mark</button>
      </div>
      ${alert(problem)}
      <p class="ep-answer" role="status">
        ${isBusy ? "Counting …" : problem ? "" : `${name} is marked in the charts, by release at today’s date:`}
      </p>
    </form>
    <ul>${Object.entries(choices).map(row)}</ul>`
const row = (/** @type {[string, Choice | null]} */ [chart, one]) => {
  const figure = document.querySelector(`g.ep-own-mark[data-choice="${chart}"]`)?.closest("figure"),
    id = figure && sectionOf(figure)
  return html`<li>
    ${id ? html`<a href=${`#${id}`} onclick=${(/** @type {Event} */ event) => go(event, id)}>${chart}</a>` : chart}
    ${`: ${one ? one.value : "no such choice"}`}
  </li>`
}
/** The heading of the section that a figure is in. @param {Element} figure */
function sectionOf(figure) {
  for (
    let one = figure.previousElementSibling ?? figure.parentElement;
    one;
    one = one.previousElementSibling ?? one.parentElement
  )
    if (one.localName === "h2") return one.id
  return ""
}
// To a section, with the address as it is.
function go(/** @type {Event} */ event, /** @type {string} */ id) {
  event.preventDefault()
  const section = document.getElementById(id)
  section?.setAttribute("tabindex", "-1")
  section?.focus()
  section?.scrollIntoView()
}
