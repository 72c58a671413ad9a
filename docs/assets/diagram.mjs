// Draws each `figure.diagram > pre.mermaid-source` when it comes near the view, into the page's own DOM, so that its
// links work by mouse and keyboard and are read aloud. The library is imported with the first drawing; a page without
// a diagram never fetches it. The list of the same steps beside it is closed where scripts run, and opened if there is no drawing.
// A drawing that is wider than its place fades where it is cut, and a button above it opens it in the whole window.

const NEAR = "600px"

// Mermaid computes its theme from literal colours; these rules replace them with the page's variables (site.css), so
// that a drawing follows the palette.
const STYLE = `
  .node :is(rect, circle, ellipse, polygon, path) { fill: var(--ep-op-fill); stroke: var(--ep-op-line); stroke-width: 1.25px; }
  .node.data :is(rect, circle, ellipse, polygon, path) { fill: var(--ep-data-fill); stroke: var(--ep-data); stroke-width: 1.75px; }
  .node.weight :is(rect, circle, ellipse, polygon, path) { fill: var(--ep-weight-fill); stroke: var(--ep-weight); stroke-dasharray: 5 3; }
  .node.accent :is(rect, circle, ellipse, polygon, path) { fill: var(--ep-accent-fill); stroke: var(--ep-accent); stroke-width: 3.5px; }
  .node.repeat :is(rect, polygon) { filter: drop-shadow(5px 5px 0 var(--ep-repeat-shadow)); }
  .cluster rect { fill: var(--ep-cluster-fill); stroke: var(--ep-cluster-line); stroke-width: 1px; }
  .cluster.repeat rect { stroke-width: 1.5px; filter: drop-shadow(5px 5px 0 var(--ep-repeat-shadow)); }
  .node .label text, .node .label tspan, .edgeLabel text, .edgeLabel tspan, .cluster-label text, .cluster-label tspan,
  text, tspan { fill: var(--ep-ink); }
  .cluster-label text { font-weight: 600; }
  .cluster-label .background { fill: var(--ep-cluster-fill); }
  .edgeLabel rect, .edgeLabel .background { fill: var(--md-default-bg-color); opacity: 1; }
  .edgePaths path, .flowchart-link, path.path { stroke: var(--ep-line); stroke-width: 1.25px; fill: none; }
  .marker, .marker path, .arrowMarkerPath { fill: var(--ep-line); stroke: var(--ep-line); }
  a:is(:hover, :focus) .node :is(rect, circle, ellipse, polygon, path), .node a:hover :is(rect, polygon, path) { stroke: var(--md-accent-fg-color); }
  a { text-decoration: none; }
  a .node:not(:has(> circle)) tspan.row:first-child { text-decoration: underline; text-decoration-thickness: 1px; text-underline-offset: 3px; }
`

let mermaid // a promise of the library
let drawn = 0

function library() {
  return mermaid ??= import("./vendor/mermaid-flowchart.mjs").then(({ default: library }) => {
    library.initialize({
      startOnLoad: false,
      securityLevel: "strict",
      suppressErrorRendering: true,
      theme: "base",
      look: "classic",
      layout: "dagre",
      htmlLabels: false,
      fontFamily: getComputedStyle(document.body).fontFamily,
      themeCSS: STYLE,
      flowchart: {
        htmlLabels: false, useMaxWidth: false, curve: "basis", nodeSpacing: 32, rankSpacing: 36, padding: 12,
        wrappingWidth: 420, subGraphTitleMargin: { top: 8, bottom: 12 },
      },
    })
    return library
  }).catch(error => { mermaid = undefined; throw error })
}

async function draw(source) {
  const figure = source.parentElement, steps = figure.querySelector(":scope > details.diagram-steps")
  try {
    const library_ = await library()
    await document.fonts.ready // Mermaid measures its labels
    const { svg } = await library_.render(`diagram-${++drawn}`, source.textContent)
    if (!source.isConnected) return
    const box = document.createElement("div")
    box.className = "mermaid"
    box.innerHTML = svg
    source.replaceWith(box)
    finish(box.firstElementChild)
    figure.dataset.drawn = ""
    fit(figure, box)
  } catch (error) {
    figure.dataset.failed = ""
    if (steps) steps.open = true
    console.warn("A diagram could not be drawn; the list of its steps stands in its place.", error)
  }
}

// The drawing's size as CSS can use it, no role that hides its links, and links that the site's instant navigation takes.
function finish(svg) {
  const { width, height } = svg.viewBox.baseVal
  svg.style.cssText = `--ep-width: ${Math.ceil(width)}px; aspect-ratio: ${width} / ${height}`
  for (const name of ["width", "height", "role", "aria-roledescription"]) svg.removeAttribute(name)
  for (const cluster of svg.querySelectorAll("g.cluster")) { // its title to the left, out of the way of the arrow that comes in, and on top of the lines
    const { x, y } = cluster.querySelector(":scope > rect").getBBox(), title = cluster.querySelector(":scope > .cluster-label")
    const text = title.querySelector("text").getBBox()
    for (const [name, value] of Object.entries({ x: text.x - 4, y: text.y - 1, width: text.width + 8, height: text.height + 2 })) title.querySelector(".background").setAttribute(name, value)
    title.setAttribute("transform", `translate(${x + 10}, ${y + 8})`)
    cluster.closest(".root").querySelector(":scope > .edgePaths").after(title)
  }
  for (const link of svg.querySelectorAll("a:has(> .node > circle)")) // a sign says little by itself
    link.setAttribute("aria-label", link.querySelector(".node").getAttribute("title"))
  for (const link of svg.querySelectorAll("a")) link.addEventListener("click", event => {
    if (event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    event.preventDefault()
    event.stopPropagation()
    const anchor = document.createElement("a")
    anchor.href = link.href.baseVal
    svg.parentElement.append(anchor)
    anchor.click()
    anchor.remove()
  })
}

// Where the drawing goes on beyond its box, and the button while it does.
function fit(figure, box) {
  const button = document.createElement("button")
  button.className = "ep-open"
  button.type = "button"
  button.textContent = "Open the whole drawing"
  button.setAttribute("aria-haspopup", "dialog")
  button.onclick = () => open(figure, box)
  const update = () => {
    if (!box.firstElementChild) return // it is in the dialog
    const { width } = box.firstElementChild.viewBox.baseVal
    box.toggleAttribute("data-wide", .72 * width > figure.clientWidth)
    const after = box.scrollWidth - box.clientWidth - box.scrollLeft
    box.dataset.more = [box.scrollLeft > 1 && "left", after > 1 && "right"].filter(Boolean).join(" ")
    if (box.scrollWidth <= box.clientWidth + 1) button.remove()
    else if (!button.isConnected) box.before(button)
  }
  update()
  startInView(box)
  box.addEventListener("scroll", update, { passive: true })
  new ResizeObserver(update).observe(box)
}

// The first node in the middle, where the drawing is cut.
function startInView(box) {
  const first = box.querySelector(".node").getBoundingClientRect(), { left, width } = box.getBoundingClientRect()
  box.scrollLeft += first.left + first.width / 2 - left - width / 2
}

let putBack // the drawing, from the dialog into its box

function open(figure, box) {
  const dialog = document.createElement("dialog"), whole = document.createElement("div"), close = document.createElement("button")
  dialog.className = "ep-whole"
  dialog.setAttribute("aria-label", figure.getAttribute("aria-label"))
  close.type = "button"
  close.textContent = "Close"
  close.onclick = () => dialog.close()
  whole.tabIndex = 0
  whole.setAttribute("role", "group")
  whole.setAttribute("aria-label", "Diagram")
  whole.autofocus = true // the arrow keys scroll it
  dialog.append(close, whole)
  box.style.height = `${box.offsetHeight}px`
  whole.append(box.firstElementChild)
  putBack = () => {
    putBack = undefined
    box.append(whole.firstElementChild)
    box.style.height = ""
    dialog.remove()
  }
  dialog.onclose = () => putBack?.()
  figure.append(dialog)
  dialog.showModal()
  startInView(whole)
}

const watcher = new IntersectionObserver(entries => {
  for (const { isIntersecting, target } of entries) if (isIntersecting) {
    watcher.unobserve(target)
    draw(target.querySelector(":scope > pre.mermaid-source"))
  }
}, { rootMargin: NEAR })

function mount() {
  watcher.disconnect() // the figures of the page before
  for (const steps of document.querySelectorAll("details.diagram-steps:not([data-ready])")) {
    steps.open = false
    steps.dataset.ready = ""
  }
  for (const source of document.querySelectorAll("figure.diagram > pre.mermaid-source")) watcher.observe(source.parentElement)
}

// document$ is Material's: it emits now and after each instant navigation, forward and back.
const start = () => globalThis.document$ ? document$.subscribe(mount) : mount()
document.readyState === "complete" ? start() : addEventListener("load", start, { once: true })

// On paper the steps are there to read, whatever was open.
let opened = []
addEventListener("beforeprint", () => {
  putBack?.()
  opened = [...document.querySelectorAll("details.diagram-steps:not([open])")]
  for (const steps of opened) steps.open = true
})
addEventListener("afterprint", () => { for (const steps of opened) steps.open = false })
