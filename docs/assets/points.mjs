// Keyboard access to the points of a chart: one tab stop, from which the arrow keys lead to the others, left to right.
// The focused or hovered point is labeled. Without this script, the links are in the table below.

/** @type {Record<string, number>} */
const NEXT = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }
const place = (/** @type {SVGGraphicsElement} */ point) => {
  const { x, y, width, height } = point.getBBox()
  return { x: x + width / 2, y: y + height / 2 }
}

// As it is written, so that nothing has to be laid out for it.
const drawnAt = (/** @type {SVGAElement} */ { lastElementChild: shape }) =>
  shape?.localName === "circle"
    ? [shape.getAttribute("cx"), shape.getAttribute("cy")].map(Number)
    : (shape?.getAttribute("d") ?? "").slice(1).split(/[ hl]/, 2).map(Number)

/** @typedef {SVGAElement?} Point */
const pointOf = (/** @type {Event} */ { target }) =>
  /** @type {Point} */ (target instanceof Element && target.closest("a.point"))

export function mount(/** @type {SVGSVGElement} */ chart) {
  const points = [.../** @type {NodeListOf<SVGAElement>} */ (chart.querySelectorAll("a.point"))]
    .map(point => ({ point, at: drawnAt(point) }))
    .sort((a, b) => a.at[0] - b.at[0] || b.at[1] - a.at[1])
    .map(({ point }) => point)
  if (!points.length || points.some(point => point.tabIndex === 0)) return
  points[0].setAttribute("tabindex", "0")
  const name = document.createElementNS("http://www.w3.org/2000/svg", "text"),
    words = new Text()
  name.setAttribute("class", "ep-named")
  name.setAttribute("aria-hidden", "true") // the link says it
  name.append(words)
  chart.append(name)

  function show(/** @type {SVGAElement} */ point) {
    const { x, y } = place(point),
      end = x > chart.viewBox.baseVal.width / 2
    words.data = point.textContent
    name.setAttribute("x", `${end ? x - 8 : x + 8}`)
    name.setAttribute("y", `${y > 24 ? y - 8 : y + 18}`)
    name.setAttribute("text-anchor", end ? "end" : "start")
  }
  const hide = () => {
    words.data = ""
  }

  chart.addEventListener("focusin", event => {
    const point = pointOf(event)
    if (!point) return
    for (const one of points) one.setAttribute("tabindex", one === point ? "0" : "-1")
    show(point)
  })
  chart.addEventListener("focusout", hide)
  chart.addEventListener("pointerover", event => {
    const point = pointOf(event)
    if (point) show(point)
  })
  chart.addEventListener("pointerout", hide)
  chart.addEventListener("keydown", event => {
    const point = pointOf(event),
      at = point ? points.indexOf(point) : -1,
      to = event.key === "Home" ? 0 : event.key === "End" ? points.length - 1 : at + NEXT[event.key]
    if (at < 0 || !points[to]) return
    event.preventDefault()
    points[to].focus()
  })
}
