// The small model, asked: the steps of the page, with the shapes and the numbers of the text that a reader asked for.

import { html, render } from "../view.mjs"
import { panel } from "./asked.mjs"
import { matrix } from "./matrices.mjs"

const OF_HEADS = new Set(["share", "score", "mixed"]) // numbers whose names have a layer and a head
const ROWS = "tbody tr",
  CELLS = ":scope > td"

/**
 * @param {Pick<import("./results.mjs").Shown, "made" | "state" | "small" | "asking">} shown
 * @param {boolean} hasPanel whether the number that is asked for stands in the step
 * @returns {(step: HTMLElement) => void} what writes the numbers of the run into a copy of a step
 */
export function walked({ made, state, small, asking }, hasPanel) {
  const found = hasPanel && state.number ? small.session.origin(state.number, made.how) : null
  return step => {
    resize(step, made.text.length)
    const still = step.querySelector(".ep-scroll:has(.ep-matrix)"),
      table = still && numbersOf(still, made, Number(state.head), small)
    if (!table) return
    const { name, words, columns, rows, place, after } = table,
      box = document.createElement("div")
    still.replaceWith(box)
    const ask = { ...asking, chosen: state.number }
    render(html`${matrix(name, words, columns, rows, { place, ask, after })}${found && panel(found, asking)}`, box)
  }
}

/** Writes the length of the text into the shapes of a step. @param {HTMLElement} step @param {number} tokens */
function resize(step, tokens) {
  const [symbols, numbers] = [":not(.ep-numbers)", ".ep-numbers"].map(which => [
    ...step.querySelectorAll(`:scope > .ep-shapes${which} .ep-shape`),
  ])
  let isOther = false
  for (const [i, shape] of numbers.entries()) {
    const named = sizes(symbols[i]),
      own = sizes(shape).map((size, axis) => (/^[TS]$/.test(named[axis]) ? `${tokens}` : size)),
      said = `[${own.join(", ")}]`
    isOther ||= said !== shape.textContent
    shape.textContent = said
  }
  if (isOther) for (const costs of step.querySelectorAll(":scope > .ep-meta")) costs.remove() // of another length
}
const sizes = (/** @type {Element} */ shape) => shape.textContent.slice(1, -1).split(", ")

/**
 * The numbers of a step’s table in this run, by the names that its links give them; null if they have none.
 * @param {Element} still
 * @param {import("./answer.mjs").Made} made
 * @param {number} head
 * @param {import("./small.mjs").Small} small
 */
function numbersOf(still, { text, run: { isMasked: isBlind } }, head, { session, config }) {
  const lines = [...still.querySelectorAll(ROWS)],
    titles = [...still.querySelectorAll("thead th")].map(th => th.textContent),
    link = still.querySelector("td a"),
    given = link && new URL(/** @type {HTMLAnchorElement} */ (link).href).searchParams.get("number")
  if (!given) return null
  const names = given.split("/"),
    row = lines.findIndex(line => line.contains(link)),
    column = [...lines[row].querySelectorAll(CELLS)].findIndex(cell => cell.contains(link)),
    heads = still.querySelector("caption")?.textContent.match(/\d+/),
    label = still.getAttribute("aria-label") ?? "",
    name = heads ? `${label}, head ${head}` : label,
    ends = titles.at(-1) ?? "",
    isOfLast = names[0] === "logit",
    isOfPairs = titles[0] === lines[0].querySelector("th")?.textContent,
    columns = isOfPairs ? text : titles.filter(title => /^\d+$/.test(title)),
    words = isOfLast ? text.slice(-1) : text,
    isMasked = still.querySelector(".masked") !== null || ends === "Sum"
  if (heads && OF_HEADS.has(names[0])) names[2] = `${head}`
  const [second = 0, first = 0] = [names.pop(), isOfLast ? 0 : names.pop()].map(Number),
    shift = heads && names[0] === "map" ? (head - Number(heads[0])) * (config.n_embd / config.n_head) : 0,
    stem = names.join("/")
  const nameOf = (/** @type {number} */ i, /** @type {number} */ j) =>
    isOfLast ? `${stem}/${second - column + j}` : `${stem}/${first - row + i}/${second - column + j + shift}`
  const value = (/** @type {number} */ i, /** @type {number} */ j) => {
    if (isOfLast) return session.scores[second - column + j]
    if (ends === "Sum" && isBlind && j > i) return null
    const name = nameOf(i, j),
      x = session.number(isOfPairs && !isMasked ? name.replace("score", "product") : name)
    return Number.isNaN(x) ? null : x
  }
  const rows = words.map((_, i) => columns.map((_, j) => value(i, j)))
  const sum = (/** @type {(number | null)[]} */ row) =>
    row.reduce((all, x) => /** @type {number} */ (all) + (x ?? 0), 0)
  /** @type {[string, string[]] | undefined} */
  const after =
    ends === "Sum"
      ? [ends, rows.map(row => Number(sum(row)).toFixed(2))]
      : ends === "…"
        ? [ends, rows.map(() => ends)]
        : undefined
  const place = (/** @type {number} */ i, /** @type {number} */ j) =>
    isOfPairs && !isMasked && j > i ? "" : nameOf(i, j)
  return { name, words, columns, rows, place, after }
}
