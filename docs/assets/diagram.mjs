// A button above each diagram opens it in the whole window, where it fits and can be zoomed. The diagrams themselves
// are in the page, and need no script.

const STEP = 1.25 // a click or a key
const NEAREST = 3
/** @type {Record<string, number>} */
const SIZES = { "+": STEP, "=": STEP, "-": 1 / STEP, 0: 0 }

function mount() {
  for (const canvas of document.querySelectorAll("figure.diagram > .ep-canvas")) {
    const figure = canvas.parentElement,
      drawing = canvas.firstElementChild
    if (!(drawing instanceof SVGSVGElement) || !figure || figure.querySelector(":scope > .ep-open")) continue
    const button = labelled("Open full diagram", () => open(figure, drawing))
    button.className = "ep-open"
    button.setAttribute("aria-haspopup", "dialog")
    canvas.before(button)
    const begin = () => {
      startInView(canvas)
      titlesInView(canvas, drawing)
    }
    if (canvas.clientWidth) begin()
    else canvas.closest("details")?.addEventListener("toggle", begin, { once: true })
  }
}

// Centers the first node when the drawing is wider than its container.
function startInView(/** @type {Element} */ canvas) {
  const first = canvas.querySelector(".node")?.getBoundingClientRect(),
    { left, width } = canvas.getBoundingClientRect()
  if (!first) return
  canvas.scrollLeft += first.left + first.width / 2 - left - width / 2
}

/**
 * Keeps the title of a frame visible while its left edge is scrolled out of view, up to the end of the frame.
 * @param {Element} canvas
 * @param {SVGSVGElement} drawing
 */
function titlesInView(canvas, drawing) {
  const frames = [...drawing.querySelectorAll(".ep-boxes > g")].flatMap(frame => {
    const title = frame.querySelector("text"),
      box = frame.querySelector("rect")
    return title && box ? [{ title, at: Number(title.getAttribute("x")), box: box.getBBox() }] : []
  })
  const move = () => {
    const { left, width } = drawing.getBoundingClientRect()
    const { x: start, width: whole } = drawing.viewBox.baseVal,
      seen = start + ((canvas.getBoundingClientRect().left - left) / width) * whole
    for (const { title, at, box } of frames) {
      const inset = at - box.x,
        last = box.x + box.width - title.getComputedTextLength() - inset
      const x = Math.max(at, Math.min(seen + inset, last))
      title.setAttribute("x", `${x}`)
      title.classList.toggle("ep-moved", x > at)
    }
  }
  if (canvas.scrollWidth <= canvas.clientWidth) return
  move()
  canvas.addEventListener("scroll", move, { passive: true })
}

/**
 * @param {string} text
 * @param {() => void} onclick
 */
function labelled(text, onclick) {
  const button = document.createElement("button")
  button.type = "button"
  button.textContent = text
  button.onclick = onclick
  return button
}

/**
 * @param {HTMLElement} figure
 * @param {SVGSVGElement} drawing
 */
function open(figure, drawing) {
  const dialog = document.createElement("dialog"),
    tools = document.createElement("div"),
    place = document.createElement("div")
  const whole = /** @type {SVGSVGElement} */ (drawing.cloneNode(true))
  const { width, height } = drawing.viewBox.baseVal
  let scale = 0
  dialog.className = "ep-whole"
  dialog.setAttribute("aria-label", figure.getAttribute("aria-label") ?? "")
  place.tabIndex = 0 // the arrow keys scroll it
  place.setAttribute("role", "group")
  place.setAttribute("aria-label", "Diagram")
  place.autofocus = true

  const fitting = () => Math.min(place.clientWidth / width, place.clientHeight / height, 1)
  // Zooms to a size while one point of the window stays put, or to the whole drawing.
  const zoom = (/** @type {number} */ wanted, x = place.clientWidth / 2, y = place.clientHeight / 2) => {
    const before = scale || fitting()
    scale = wanted && Math.min(Math.max(wanted, fitting()), NEAREST)
    const now = scale || fitting(),
      left = ((place.scrollLeft + x) * now) / before - x,
      top = ((place.scrollTop + y) * now) / before - y
    whole.setAttribute("width", `${Math.floor(width * now)}`)
    whole.setAttribute("height", `${Math.floor(height * now)}`)
    place.scrollTo(left, top)
  }
  const by = (/** @type {number} */ factor) => zoom(factor && (scale || fitting()) * factor)

  tools.append(
    labelled("Zoom in", () => by(STEP)),
    labelled("Zoom out", () => by(1 / STEP)),
    labelled("Fit to window", () => by(0)),
    labelled("Close", () => dialog.close()),
  )
  place.append(whole)
  dialog.append(tools, place)
  dialog.onclose = () => dialog.remove()
  dialog.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in SIZES)) return
    event.preventDefault()
    by(SIZES[event.key])
  })
  place.addEventListener(
    "wheel",
    event => {
      // also two fingers on a touch pad
      if (!event.ctrlKey) return
      event.preventDefault()
      const { left, top } = place.getBoundingClientRect()
      zoom((scale || fitting()) * Math.exp(-event.deltaY / 200), event.clientX - left, event.clientY - top)
    },
    { passive: false },
  )
  pan(place)
  const resized = new ResizeObserver(() => (dialog.isConnected ? scale || zoom(0) : resized.disconnect()))
  figure.append(dialog)
  dialog.showModal()
  zoom(0)
  resized.observe(place)
}

// The mouse drags; touch scrolls natively.
function pan(/** @type {HTMLElement} */ place) {
  /** @type {{ x: number, y: number } | undefined} */
  let from
  place.onpointerdown = event => {
    if (event.pointerType === "mouse" && !event.button)
      from = { x: event.clientX + place.scrollLeft, y: event.clientY + place.scrollTop }
  }
  place.onpointermove = event => {
    if (!event.buttons) from = undefined
    if (!from) return
    const left = from.x - event.clientX,
      top = from.y - event.clientY
    if (Math.hypot(left - place.scrollLeft, top - place.scrollTop) < 4) return
    place.setPointerCapture(event.pointerId)
    place.scrollTo(left, top)
  }
  place.ondragstart = event => event.preventDefault() // a link
}

// Material follows links of HTML without a reload, not those of a drawing: one of HTML in the same place.
function follow(/** @type {MouseEvent} */ event) {
  const link = event.target instanceof Element && event.target.closest(".ep-drawing a")
  if (
    !(link instanceof SVGAElement) ||
    event.button ||
    event.metaKey ||
    event.ctrlKey ||
    event.shiftKey ||
    event.altKey
  )
    return
  event.preventDefault()
  event.stopPropagation()
  const dialog = link.closest("dialog"),
    anchor = document.createElement("a")
  anchor.href = link.href.baseVal
  document.body.append(anchor)
  dialog?.close()
  anchor.click()
  anchor.remove()
}
document.addEventListener("click", follow, { capture: true })

// Print every step, whether or not it is open.
/** @type {HTMLDetailsElement[]} */
let opened = []
addEventListener("beforeprint", () => {
  opened = Array.from(document.querySelectorAll("details.diagram-steps:not([open])"))
  for (const steps of opened) steps.open = true
})
addEventListener("afterprint", () => {
  for (const steps of opened) steps.open = false
})

// document$ is Material's: it emits now and after each instant navigation, forward and back.
const start = () => (globalThis.document$ ? globalThis.document$.subscribe(mount) : mount())
if (document.readyState === "complete") start()
else addEventListener("load", start, { once: true })
