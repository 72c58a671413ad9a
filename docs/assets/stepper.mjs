// One step at a time: a walk through a forward pass, one operation at a time, with its box in the diagram highlighted,
// its matrices to scale, and its text. Moved by buttons, keys and the address. It begins at once, or when what it is
// folded in opens. Without this script the page shows the whole walk.

import { make, replace } from "./tools/elements.mjs"

const SVG = "http://www.w3.org/2000/svg"
const SIDE = 110,
  LEAST = 3 // px of the longest side of a matrix, and of the shortest that is drawn

// The title of a step as the diagrams have it.
const titleOf = (/** @type {Element} */ step) =>
  step.querySelector(".ep-what strong")?.textContent.replace(/ × \d+$/, "")

/**
 * @param {HTMLElement} walk
 * @param {number} number of the walk on its page
 */
export function mount(walk, number) {
  const steps = /** @type {HTMLElement[]} */ ([...walk.querySelectorAll("li.ep-step:not(.total)")])
  if (!steps.length) return
  walk.dataset.stepper = "true"
  const given = new URLSearchParams(location.search),
    asked = (given.get("walk") ?? "1") === `${number}` ? Number(given.get("step")) : 0
  const label = number > 1 ? `One step at a time (${number})` : "One step at a time"
  const start = make("button", { type: "button", class: "ep-open", onclick: () => begin(0) }, "One step at a time")
  walk.before(make("p", { class: "ep-stepper-start", hidden: true }, start))

  const said = make("div", { class: "ep-stepper-step", role: "status", tabindex: 0, "aria-label": "Step" }),
    drawn = make("div", { class: "ep-stepper-drawing", tabindex: 0, role: "group", "aria-label": "Diagram" })
  const place = make("span", { class: "ep-stepper-place" })
  const button = (/** @type {string} */ text, /** @type {() => void} */ move) =>
    make("button", { type: "button", onclick: () => move() }, text)
  const back = button("Back", () => go(at - 1)),
    next = button("Next", () => go(at + 1))
  const panel = make(
    "section",
    { class: "ep-stepper", tabindex: -1, "aria-label": label, hidden: true, onkeydown: keys },
    make("div", { class: "ep-stepper-tools" }, back, next, place, button("All steps", close)),
    make("div", { class: "ep-stepper-body" }, drawn, said),
  )
  walk.before(panel)
  let at = -1
  /** @type {Element?} */
  let shown = null

  function keys(/** @type {KeyboardEvent} */ event) {
    const target = /** @type {Element} */ (event.target)
    if (
      event.ctrlKey ||
      event.metaKey ||
      event.altKey ||
      target.closest("pre, summary") ||
      (target.closest(".ep-scroll, .ep-stepper-drawing") && event.key.startsWith("Arrow"))
    )
      return
    /** @type {Record<string, number>} */
    const places = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: steps.length - 1 }
    const to = places[event.key]
    if (event.key === "Escape") close()
    else if (to === undefined) return
    else go(to)
    event.preventDefault()
  }

  function go(/** @type {number} */ to, isMoved = true) {
    if (to < 0 || to >= steps.length) return
    at = to
    const step = steps[at],
      copy = /** @type {HTMLElement} */ (step.cloneNode(true)),
      where = step.parentElement?.closest("li.ep-layer") ?? null,
      part = step.parentElement?.closest("li.ep-part")
    panel.hidden = false
    walk.setAttribute("hidden", "until-found")
    if (start.parentElement) start.parentElement.hidden = true
    back.disabled = at === 0
    next.disabled = at === steps.length - 1
    place.textContent = `Step ${at + 1} of ${steps.length}`
    const names = [where, part].flatMap(li => li?.querySelector(":scope > .ep-what")?.textContent ?? [])
    for (const twin of copy.querySelectorAll("[id]")) twin.removeAttribute("id")
    for (const buttons of copy.querySelectorAll(".ep-copy")) buttons.remove()
    replace(
      said,
      names.length ? make("p", { class: "ep-conventions" }, names.join(", ")) : null,
      make("div", { class: "ep-walk" }, ...copy.childNodes),
      scaled(step),
    )
    light(step, where)
    if (isMoved) address({ walk: number === 1 ? null : number, step: at + 1 })
  }

  function begin(/** @type {number} */ step) {
    go(step)
    panel.focus({ preventScroll: true })
  }

  function open() {
    panel.hidden = true
    walk.hidden = false
    if (start.parentElement) start.parentElement.hidden = false
    address({ walk: null, step: null })
  }

  function close() {
    open()
    start.focus()
  }

  // The keys of somebody who has pressed nothing yet.
  function arrows(/** @type {KeyboardEvent} */ event) {
    if (!panel.isConnected) return document.removeEventListener("keydown", arrows)
    if (event.target !== document.body || panel.hidden || !/^(Arrow(Left|Right)|Escape)$/.test(event.key)) return
    const { top, bottom } = panel.getBoundingClientRect(),
      middle = innerHeight / 2
    if (top < middle && bottom > middle) keys(event)
  }

  // The boxes of a step: its own, or that of the last step before it in its section which has one, since a diagram has
  // none for what only rearranges numbers.
  function boxesOf(/** @type {Element[]} */ boxes, /** @type {HTMLElement} */ step) {
    const where = step.parentElement?.closest("li.ep-layer") ?? null
    for (const one of steps.slice(0, steps.indexOf(step) + 1).reverse()) {
      if ((one.parentElement?.closest("li.ep-layer") ?? null) !== where) break
      const found = boxes.filter(box => nameOf(box) === (one.dataset.box ?? titleOf(one)))
      if (found.length) return found
    }
    return []
  }

  // The diagram of the layer that the step is in, or of the whole model: the step's box lit, and in view. A page may
  // have diagrams of other models, too.
  function light(/** @type {HTMLElement} */ step, /** @type {Element?} */ where) {
    /** @type {NodeListOf<HTMLElement>} */
    const figures = document.querySelectorAll("figure.diagram")
    const diagrams = [...figures]
      .filter(figure => figure.dataset.model === walk.dataset.model)
      .flatMap(figure => figure.querySelector(".ep-drawing") ?? [])
    const layers = [...walk.querySelectorAll("li.ep-layer")]
    const ofLayers = diagrams.length > 1 ? diagrams.slice(1) : diagrams
    const source = where ? ofLayers[Math.min(layers.indexOf(where), ofLayers.length - 1)] : diagrams[0]
    if (!source) return drawn.remove()
    if (shown !== source) {
      shown = source
      replace(drawn, source.cloneNode(true))
      for (const link of drawn.querySelectorAll("a")) link.setAttribute("tabindex", "-1")
    }
    const boxes = [...drawn.querySelectorAll(".node")]
    const lit = boxesOf(boxes, step)
    for (const box of boxes) box.classList.toggle("lit", lit.includes(box))
    if (!lit[0]) return
    const box = lit[0].getBoundingClientRect(),
      frame = drawn.getBoundingClientRect()
    drawn.scrollBy(
      box.left + box.width / 2 - frame.left - frame.width / 2,
      box.top + box.height / 2 - frame.top - frame.height / 2,
    )
  }

  walk.addEventListener("beforematch", open) // the browser's own search found something in it
  document.addEventListener("keydown", arrows)
  const fold = walk.closest("details")
  if (asked > 0 && asked <= steps.length) {
    for (let one = fold; one; one = one.parentElement?.closest("details") ?? null) one.open = true
    go(asked - 1)
    panel.scrollIntoView({ block: "start" })
  } else if (!fold || fold.open) go(0, false)
  else fold.addEventListener("toggle", () => panel.hidden && at < 0 && go(0, false), { once: true })
}

const nameOf = (/** @type {Element} */ box) =>
  box.getAttribute("aria-label") ??
  [...box.querySelectorAll("text:not([class])")].map(line => line.textContent.trim()).join(" ")

// The matrices of a step, from its shapes: data blue, weights gray, all to the same scale.
function scaled(/** @type {Element} */ step) {
  const shapes = [...step.querySelectorAll(":scope > .ep-shapes.ep-numbers > span")].map(span => ({
    isWeight: span.classList.contains("weight"),
    sizes: (span.textContent.match(/\d+/g) ?? []).map(Number),
  }))
  const isEmpty = (/** @type {{ sizes: number[] }} */ { sizes }) => sizes.includes(0)
  const empty = shapes.filter(isEmpty).map(({ sizes }) => `[${sizes.join(", ")}]`)
  const matrices = shapes
    .filter(shape => shape.sizes.length > 1 && !isEmpty(shape))
    .map(shape => {
      const [rows, columns] = shape.sizes.slice(-2)
      return { ...shape, rows, columns }
    })
  if (!matrices.length) return null
  const scale = SIDE / Math.max(...matrices.flatMap(m => [m.rows, m.columns])),
    side = (/** @type {number} */ n) => Math.max(n * scale, LEAST)
  const thin = matrices.some(m => Math.min(m.rows, m.columns) * scale < LEAST)
  const draw = (/** @type {typeof matrices[number]} */ { rows, columns, sizes, isWeight }) => {
    const svg = document.createElementNS(SVG, "svg"),
      rect = document.createElementNS(SVG, "rect"),
      [w, h] = [side(columns), side(rows)]
    for (const [name, value] of Object.entries({
      viewBox: `-1 -1 ${w + 2} ${h + 2}`,
      width: w + 2,
      height: h + 2,
      role: "img",
      "aria-label": `[${sizes.join(", ")}]`,
      class: isWeight ? "weight" : "data",
    }))
      svg.setAttribute(name, `${value}`)
    rect.setAttribute("width", `${w}`)
    rect.setAttribute("height", `${h}`)
    svg.append(rect)
    return make("figure", {}, svg, make("figcaption", {}, `[${sizes.join(", ")}]`))
  }
  return make(
    "div",
    { class: "ep-stepper-scale" },
    ...matrices.map(draw),
    make(
      "p",
      { class: "ep-conventions" },
      `Drawn to the same scale${thin ? "; sides too thin to see are drawn thicker" : ""}. The last one is the output.` +
        (empty.length ? ` Not drawn, since it holds nothing: ${empty.join(", ")}.` : ""),
    ),
  )
}

function address(/** @type {Record<string, number | null>} */ values) {
  const at = new URL(location.href)
  for (const [name, value] of Object.entries(values))
    if (value === null) at.searchParams.delete(name)
    else at.searchParams.set(name, `${value}`)
  history.replaceState(history.state, "", at)
}
