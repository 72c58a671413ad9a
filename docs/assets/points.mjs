// The points of a chart by keyboard: one tab stop, from which the arrow keys lead to the others, from left to right. The
// point that is looked at, by keyboard or pointer, is named beside it. Without this script the table below has the links.

const NEXT = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }
const place = point => { const { x, y, width, height } = point.getBBox(); return { x: x + width / 2, y: y + height / 2 } }

export function mount(chart) {
  const points = [...chart.querySelectorAll("a.point")].map(point => ({ point, ...place(point) })).sort((a, b) => a.x - b.x || b.y - a.y).map(({ point }) => point)
  if (!points.length || points.some(point => point.tabIndex === 0)) return
  points[0].setAttribute("tabindex", "0")
  const name = document.createElementNS(chart.namespaceURI, "text")
  name.setAttribute("class", "ep-named")
  name.setAttribute("aria-hidden", "true") // the link says it
  name.append("")
  chart.append(name)

  function show(point) {
    const { x, y } = place(point), end = x > chart.viewBox.baseVal.width / 2
    name.firstChild.data = point.textContent
    name.setAttribute("x", end ? x - 8 : x + 8)
    name.setAttribute("y", y > 24 ? y - 8 : y + 18)
    name.setAttribute("text-anchor", end ? "end" : "start")
  }
  const hide = () => { name.firstChild.data = "" }

  chart.addEventListener("focusin", ({ target }) => {
    const point = target.closest("a.point")
    if (!point) return
    for (const one of points) one.setAttribute("tabindex", one === point ? "0" : "-1")
    show(point)
  })
  chart.addEventListener("focusout", hide)
  chart.addEventListener("pointerover", ({ target }) => { const point = target.closest("a.point"); if (point) show(point) })
  chart.addEventListener("pointerout", hide)
  chart.addEventListener("keydown", event => {
    const at = points.indexOf(event.target.closest("a.point")), to = { Home: 0, End: points.length - 1 }[event.key] ?? at + NEXT[event.key]
    if (at < 0 || !points[to]) return
    event.preventDefault()
    points[to].focus()
  })
}
