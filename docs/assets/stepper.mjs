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

/** @type {((step: HTMLElement) => void) | null} */
let own = null
/** @type {Set<Stepper>} */
const mounted = new Set()
/** Lets a run write its numbers into each step that is shown. @param {(step: HTMLElement) => void} written */
export function follow(written) {
  own = written
  for (const one of mounted) if (one.at >= 0 && !one.panel.hidden) one.say(one.steps[one.at])
}

/** A walk, one step at a time. @param {HTMLElement} walk @param {number} number of the walk on its page */
export function mount(walk, number) {
  const steps = /** @type {HTMLElement[]} */ ([...walk.querySelectorAll("li.ep-step:not(.total)")])
  if (steps.length) new Stepper(walk, number, steps).begin()
}

/** The index that a key moves to; none if it does not move. @param {string} key @param {number} at @param {number} n */
export const placeOf = (key, at, n) =>
  new Map([
    ["ArrowRight", at + 1],
    ["ArrowLeft", at - 1],
    ["Home", 0],
    ["End", n - 1],
  ]).get(key)
const layerOf = (/** @type {Element} */ step) => step.parentElement?.closest("li.ep-layer") ?? null

class Stepper {
  at = -1
  /** @type {Element?} the diagram that is shown */
  shown = null

  /** @param {HTMLElement} walk @param {number} number @param {HTMLElement[]} steps */
  constructor(walk, number, steps) {
    Object.assign(walk.dataset, { stepper: "true" })
    this.walk = walk
    this.number = number
    this.steps = steps
    this.start = button("One step at a time", () => this.open(0), "ep-open")
    this.line = make("p", { class: "ep-stepper-start", hidden: true }, this.start)
    this.said = make("div", { class: "ep-stepper-step", role: "status", tabindex: 0, "aria-label": "Step" })
    this.drawn = make("div", { class: "ep-stepper-drawing", tabindex: 0, role: "group", "aria-label": "Diagram" })
    this.place = make("span", { class: "ep-stepper-place" })
    this.back = button("Back", () => this.go(this.at - 1))
    this.next = button("Next", () => this.go(this.at + 1))
    this.panel = make(
      "section",
      {
        ...{ class: "ep-stepper", tabindex: -1, hidden: true, onkeydown: this.keys.bind(this) },
        "aria-label": number > 1 ? `One step at a time (${number})` : "One step at a time",
      },
      make(
        "div",
        { class: "ep-stepper-tools" },
        ...[this.back, this.next, this.place, button("All steps", () => this.close())],
      ),
      make("div", { class: "ep-stepper-body" }, this.drawn, this.said),
    )
  }
  /** Starts at the URL's step, either now or when the enclosing `details` opens. */
  begin() {
    const { walk, panel, steps } = this,
      given = new URLSearchParams(location.search),
      asked = (given.get("walk") ?? "1") === `${this.number}` ? Number(given.get("step")) : 0,
      fold = walk.closest("details")
    walk.before(this.line, panel)
    mounted.add(this)
    walk.addEventListener("beforematch", () => this.leave()) // the browser's own search found something in it
    const arrows = (/** @type {KeyboardEvent} */ event) =>
      panel.isConnected ? this.arrows(event) : mounted.delete(this) && document.removeEventListener("keydown", arrows)
    document.addEventListener("keydown", arrows)
    if (asked > 0 && asked <= steps.length) {
      for (let one = fold; one; one = one.parentElement?.closest("details") ?? null) one.open = true
      this.go(asked - 1)
      panel.scrollIntoView({ block: "start" })
    } else if (!fold || fold.open) this.go(0, false)
    else fold.addEventListener("toggle", () => panel.hidden && this.at < 0 && this.go(0, false), { once: true })
  }

  // User actions

  keys(/** @type {KeyboardEvent} */ event) {
    const target = /** @type {Element} */ (event.target),
      isScrolled = target.closest(".ep-scroll, .ep-stepper-drawing") && event.key.startsWith("Arrow")
    if (event.ctrlKey || event.metaKey || event.altKey || target.closest("pre, summary, .ep-origin") || isScrolled)
      return
    if (event.defaultPrevented) return // a key of the table
    const to = placeOf(event.key, this.at, this.steps.length)
    if (event.key === "Escape") this.close()
    else if (to === undefined) return
    else this.go(to)
    event.preventDefault()
  }
  // Handles arrow keys before the user has focused anything.
  arrows(/** @type {KeyboardEvent} */ event) {
    const { panel } = this
    if (event.target !== document.body || panel.hidden || !/^(Arrow(Left|Right)|Escape)$/.test(event.key)) return
    const { top, bottom } = panel.getBoundingClientRect(),
      middle = innerHeight / 2
    if (top < middle && bottom > middle) this.keys(event)
  }
  open(/** @type {number} */ step) {
    this.go(step)
    this.panel.focus({ preventScroll: true })
  }
  close() {
    this.leave()
    this.start.focus()
  }

  // Rendering

  /** Returns to the full walkthrough. */
  leave() {
    this.panel.hidden = true
    this.walk.hidden = false
    this.line.hidden = false
    address({ walk: null, step: null })
  }
  go(/** @type {number} */ to, isMoved = true) {
    const { steps, number } = this
    if (to < 0 || to >= steps.length) return
    this.at = to
    this.panel.hidden = false
    this.walk.setAttribute("hidden", "until-found")
    this.line.hidden = true
    this.back.disabled = to === 0
    this.next.disabled = to === steps.length - 1
    this.place.textContent = `Step ${to + 1} of ${steps.length}`
    this.say(steps[to])
    this.light(steps[to])
    if (isMoved) address({ walk: number === 1 ? null : number, step: to + 1 })
  }
  /** The text of a step, with its matrices. @param {HTMLElement} step */
  say(step) {
    const copy = /** @type {HTMLElement} */ (step.cloneNode(true)),
      part = step.parentElement?.closest("li.ep-part"),
      names = [layerOf(step), part].flatMap(li => li?.querySelector(":scope > .ep-what")?.textContent ?? [])
    for (const twin of copy.querySelectorAll("[id]")) twin.removeAttribute("id")
    for (const buttons of copy.querySelectorAll(".ep-copy")) buttons.remove()
    if (copy.querySelector(".ep-matrix")) own?.(copy)
    const shapes = shapesOf(copy)
    replace(
      this.said,
      names.length ? make("p", { class: "ep-conventions" }, names.join(", ")) : null,
      make("div", { class: "ep-walk" }, ...copy.childNodes),
      drawing(scaled(shapes)),
    )
  }
  /**
   * The diagram of the layer that a step is in, or of the whole model. A page may have diagrams of other models, too.
   * @param {HTMLElement} step
   */
  sourceOf(step) {
    /** @type {NodeListOf<HTMLElement>} */
    const figures = document.querySelectorAll("figure.diagram"),
      diagrams = [...figures]
        .filter(figure => figure.dataset.model === this.walk.dataset.model)
        .flatMap(figure => figure.querySelector(".ep-drawing") ?? []),
      layers = [...this.walk.querySelectorAll("li.ep-layer")],
      ofLayers = diagrams.length > 1 ? diagrams.slice(1) : diagrams,
      where = layerOf(step)
    return where ? ofLayers[Math.min(layers.indexOf(where), ofLayers.length - 1)] : diagrams[0]
  }
  /** Shows the diagram of a step with the step's box lit, and in view. @param {HTMLElement} step */
  light(step) {
    const { drawn } = this,
      source = this.sourceOf(step)
    if (!source) return drawn.remove()
    if (this.shown !== source) {
      this.shown = source
      replace(drawn, source.cloneNode(true))
      for (const link of drawn.querySelectorAll("a")) link.setAttribute("tabindex", "-1")
    }
    const boxes = [...drawn.querySelectorAll(".node")],
      lit = this.boxesOf(boxes, step)
    for (const box of boxes) box.classList.toggle("lit", lit.includes(box))
    if (!lit[0]) return
    const box = lit[0].getBoundingClientRect(),
      frame = drawn.getBoundingClientRect()
    drawn.scrollBy(
      box.left + box.width / 2 - frame.left - frame.width / 2,
      box.top + box.height / 2 - frame.top - frame.height / 2,
    )
  }
  /**
   * The boxes of a step: its own, or that of the last step before it in its section that has one, or of the next, since
   * a diagram has none for what only rearranges numbers.
   * @param {Element[]} boxes
   * @param {HTMLElement} step
   */
  boxesOf(boxes, step) {
    const at = this.steps.indexOf(step)
    for (const way of [this.steps.slice(0, at + 1).reverse(), this.steps.slice(at + 1)])
      for (const one of way) {
        if (layerOf(one) !== layerOf(step)) break
        const found = boxes.filter(box => nameOf(box) === (one.dataset.box ?? titleOf(one)))
        if (found.length) return found
      }
    return []
  }
}

/** @param {string} text @param {() => void} does @param {string | null} cls */
const button = (text, does, cls = null) => make("button", { type: "button", class: cls, onclick: () => does() }, text)

const nameOf = (/** @type {Element} */ box) =>
  box.getAttribute("aria-label") ??
  [...box.querySelectorAll("text:not([class])")].map(line => line.textContent.trim()).join(" ")

/**
 * @typedef {{ isWeight: boolean, sizes: number[] }} Shape
 * @typedef {Shape & { width: number, height: number }} Matrix in px
 */
/** The shapes that a step names. @param {Element} step @returns {Shape[]} */
const shapesOf = step =>
  [...step.querySelectorAll(":scope > .ep-shapes.ep-numbers > span")].map(span => ({
    isWeight: span.classList.contains("weight"),
    sizes: (span.textContent.match(/\d+/g) ?? []).map(Number),
  }))
/**
 * The matrices of these shapes, all to the same scale, with their description; nothing if there are none.
 * @param {Shape[]} shapes
 * @returns {{ matrices: Matrix[], said: string } | null}
 */
export function scaled(shapes) {
  const isEmpty = (/** @type {Shape} */ { sizes }) => sizes.includes(0),
    empty = shapes.filter(isEmpty).map(({ sizes }) => `[${sizes.join(", ")}]`),
    those = shapes.filter(shape => shape.sizes.length > 1 && !isEmpty(shape)),
    sides = those.flatMap(({ sizes }) => sizes.slice(-2))
  if (!those.length) return null
  const scale = SIDE / Math.max(...sides),
    side = (/** @type {number} */ n) => Math.max(n * scale, LEAST),
    thin = Math.min(...sides) * scale < LEAST ? "; sides too thin to see are drawn thicker" : ""
  return {
    matrices: those.map(shape => {
      const [rows, columns] = shape.sizes.slice(-2)
      return { ...shape, width: side(columns), height: side(rows) }
    }),
    said:
      `Drawn to the same scale${thin}. The last one is the output.` +
      (empty.length ? ` Not drawn, since it holds nothing: ${empty.join(", ")}.` : ""),
  }
}
/** Matrices as they are drawn: data blue, weights gray. @param {ReturnType<typeof scaled>} of */
const drawing = of =>
  of &&
  make("div", { class: "ep-stepper-scale" }, of.matrices.map(matrix), make("p", { class: "ep-conventions" }, of.said))
/** @param {Matrix} of */
function matrix({ sizes, isWeight, width, height }) {
  const named = `[${sizes.join(", ")}]`,
    viewBox = `-1 -1 ${width + 2} ${height + 2}`
  const svg = shape("svg", {
    ...{ viewBox, width: width + 2, height: height + 2, role: "img", "aria-label": named },
    class: isWeight ? "weight" : "data",
  })
  svg.append(shape("rect", { width, height }))
  return make("figure", {}, svg, make("figcaption", {}, named))
}
/** @param {string} name @param {Record<string, string | number>} attributes */
function shape(name, attributes) {
  const element = document.createElementNS(SVG, name)
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, `${value}`)
  return element
}

function address(/** @type {Record<string, number | null>} */ values) {
  const at = new URL(location.href)
  for (const [name, value] of Object.entries(values))
    if (value === null) at.searchParams.delete(name)
    else at.searchParams.set(name, `${value}`)
  history.replaceState(history.state, "", at)
}
