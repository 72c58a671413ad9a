// What a published model answered: its next token at the temperature that a reader sets, and a map of words.

import { bar, percent, two } from "./capitals/matrices.mjs"
import { choices } from "./choices.mjs"
import { html, labelled, pairs, render, select, table } from "./view.mjs"

/** @param {HTMLElement} place */
export function mount(place) {
  if (place.dataset.figure === "map") map(place)
  else next(place)
}

const scores = (/** @type {string} */ text) =>
  text.split("|").map(one => {
    const at = one.lastIndexOf(" ")
    return /** @type {[string, number]} */ ([one.slice(0, at), Number(one.slice(at + 1))])
  })

/** @param {HTMLElement} place */
function next(place) {
  const { tokens = "", stops = "", text = "" } = place.dataset,
    all = scores(tokens),
    sums = scores(stops),
    values = sums.map(([temperature]) => temperature),
    answer = document.createElement("div")
  place.querySelector(".ep-scroll")?.replaceWith(answer)
  const caption = place.querySelector("figcaption")
  if (caption) caption.textContent = "The probability of the next token, by a published model."
  const usual = { temperature: "1" }
  const { recall, set, form } = choices(place, { temperature: values }, usual, ({ temperature: chosen }, problem) => {
    const [temperature, sum] = sums[values.indexOf(chosen)],
      share = (/** @type {number} */ logit) => Math.exp(logit / Number(temperature) - sum)
    render(
      table(
        `After “${text}”`,
        ["Token", "#Logit", "#Probability", ""],
        all.map(([token, logit]) => [token, two(logit), percent(share(logit)), bar(share(logit))]),
      ),
      answer,
    )
    const said = `At temperature ${temperature}, ${all[0][0]} has ${percent(share(all[0][1]))}.`
    const field = html`<input type="range" name="temperature" min="0" max=${`${values.length - 1}`} step="1"
      value=${`${values.indexOf(chosen)}`} aria-valuetext=${chosen}
      oninput=${(/** @type {any} */ { target }) => set({ temperature: values[Number(target.value)] }, target)} />`
    const fields = [labelled("Temperature", field), html`<output aria-live="polite">${said}</output>`]
    form(fields, problem)
  })
  recall()
}

const NS = "http://www.w3.org/2000/svg"
/** @param {HTMLElement} place */
function map(place) {
  const { words = "", nearest = "" } = place.dataset,
    all = words.split("|"),
    near = nearest.split("|").map(one => one.split(",")),
    output = /** @type {HTMLElement} */ (place.querySelector("output")),
    [before, first, rest] = (output.textContent ?? "").split(/(?<=Nearest to )(\S+)/)
  output.setAttribute("aria-live", "polite")
  const usual = { map: "" }
  place.addEventListener("click", ({ target }) => {
    if (target instanceof SVGElement && target.dataset.i) set({ map: all[Number(target.dataset.i)] })
  })
  const { recall, set, form } = choices(place, { map: ["", ...all] }, usual, ({ map: chosen }, problem) => {
    const others = near[all.indexOf(chosen || first)]
    for (const drawing of place.querySelectorAll("g.words")) mark(drawing, chosen ? [chosen, ...others] : [])
    output.textContent = `${before}${chosen || first}${rest.split(": ")[0]}: ${others.join(", ")}.`
    const onchange = (/** @type {any} */ { target }) => set({ map: target.value }),
      field = select("map", [["", "choose one"], ...pairs(all)], chosen, { onchange })
    form(labelled("Word", field), problem)
  })
  /** Marks a word, its arrow and its nearest ones, with their names. @param {Element} drawing @param {string[]} lit */
  function mark(drawing, lit) {
    const word = (/** @type {string | undefined} */ i) => all[Number(i)]
    for (const old of drawing.querySelectorAll("text.lit")) old.remove()
    for (const arrow of /** @type {NodeListOf<SVGElement>} */ (drawing.querySelectorAll("path")))
      arrow.classList.toggle("lit", [word(arrow.dataset.from), word(arrow.dataset.to)].includes(lit[0]))
    for (const dot of /** @type {NodeListOf<SVGElement>} */ (drawing.querySelectorAll("[data-i]")))
      dot.classList.toggle("lit", lit.includes(word(dot.dataset.i)))
    /** @type {Box[]} */
    const taken = []
    for (const one of lit) {
      const dot = drawing.querySelector(`[data-i="${all.indexOf(one)}"]`)
      if (dot) taken.push(named(drawing, dot, one, taken))
    }
    for (const name of drawing.querySelectorAll("text:not(.lit)")) {
      const at = boxOf(numberOf(name, "x"), numberOf(name, "y"), name.textContent ?? "")
      name.classList.toggle(
        "ep-behind",
        taken.some(other => meet(at, other)),
      )
    }
  }
  recall()
}

/** @typedef {[left: number, top: number, right: number, bottom: number]} Box */
const LETTER = 6.8, // pixels of width, at most
  numberOf = (/** @type {Element} */ of, /** @type {string} */ name) => Number(of.getAttribute(name) ?? 0)
/** The room of a name that begins at a place. @returns {Box} */
const boxOf = (/** @type {number} */ x, /** @type {number} */ y, /** @type {string} */ word) => [
  x - 2,
  y - 11,
  x + LETTER * word.length + 2,
  y + 5,
]
const meet = (/** @type {Box} */ a, /** @type {Box} */ b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3]
/**
 * Writes a word’s name beside its point, where no other one is.
 * @param {Element} drawing
 * @param {Element} dot
 * @param {string} word
 * @param {Box[]} taken
 */
function named(drawing, dot, word, taken) {
  const isCircle = dot.localName === "circle",
    x = isCircle ? numberOf(dot, "cx") : numberOf(dot, "x") + 3,
    y = isCircle ? numberOf(dot, "cy") : numberOf(dot, "y") + 3,
    left = x - LETTER * word.length - 7
  const places = [0, -14, 14, -28, 28].flatMap(down => [
    [x + 7, y + 4 + down],
    [left, y + 4 + down],
  ])
  const boxes = places.map(([x, y]) => boxOf(x, y, word)),
    free = boxes.findIndex(box => box[0] >= 0 && !taken.some(other => meet(box, other))),
    [at, base] = places[Math.max(free, 0)],
    name = document.createElementNS(NS, "text")
  name.classList.add("lit")
  name.setAttribute("x", `${at}`)
  name.setAttribute("y", `${base}`)
  name.textContent = word
  drawing.append(name)
  return boxes[Math.max(free, 0)]
}
