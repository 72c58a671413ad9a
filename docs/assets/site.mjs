// What scrolls sideways can be reached and scrolled by keyboard: only while it does, so that nothing else is a tab
// stop. In a table that does, the result stays in its place beside the name. The points of charts have a script of
// their own.

/** @type {Record<string, string>} */
const SCRIPTS = {
  "figure.diagram": "./diagram.mjs",
  ".ep-catalogue": "./catalogue.mjs",
  ".ep-gallery": "./gallery.mjs",
} // of what not every page has
const SCROLLS = ".ep-math, .ep-figure, .ep-beside, .ep-canvas, .md-typeset__scrollwrap, .md-typeset__table"
/** @type {Record<string, string>} */
const LABELS = {
  "ep-math": "Formula",
  "ep-figure": "Figure",
  "ep-beside": "Side by side",
  "ep-canvas": "Diagram",
  "md-typeset__scrollwrap": "Table",
  "md-typeset__table": "Table",
}

// Measure everything before changing anything, so that the page is laid out only once.
const sizes = new ResizeObserver(entries => {
  const boxes = new Set(
    entries.map(({ target }) => (target.matches(".ep-table") ? target.closest(".ep-scroll") : target)),
  )
  const changes = [...boxes].map(box => {
    if (box instanceof HTMLElement) return box.matches(".ep-scroll") ? keep(box) : update(box)
  })
  for (const change of changes) change?.()
})

// The column behind the names, where both leave half of the place to the others.
function keep(/** @type {HTMLElement} */ box) {
  /** @type {HTMLTableRowElement?} */
  const row = box.querySelector("tbody tr:not(.ep-part):not([hidden])")
  const [name, result] = row?.cells ?? []
  const width = name?.offsetWidth
  const stays =
    result?.matches(".num") &&
    box.scrollWidth > box.clientWidth + 1 &&
    width + result.offsetWidth <= box.clientWidth / 2
  return () => {
    box.classList.toggle("ep-keeps", Boolean(stays))
    if (stays) box.style.setProperty("--ep-name", `${width}px`)
  }
}

/** @type {WeakMap<HTMLElement, string[]>} */
const given = new WeakMap() // the attributes that a box has while it scrolls; what it has of its own it keeps
function update(/** @type {HTMLElement} */ box) {
  const scrolls = box.scrollWidth > box.clientWidth && getComputedStyle(box).overflowX !== "visible",
    before = given.get(box)
  if (scrolls === Boolean(before)) return
  return () => {
    if (before) {
      for (const name of before) box.removeAttribute(name)
      given.delete(box)
      return
    }
    const role = box.localName === "figure" ? [] : [["role", "group"]],
      missing = [["tabindex", "0"], ...role, ["aria-label", LABELS[box.classList[0]]]].filter(
        ([name]) => !box.hasAttribute(name),
      )
    for (const [name, value] of missing) box.setAttribute(name, value)
    given.set(
      box,
      missing.map(([name]) => name),
    )
  }
}

// Only what scrolls needs the column that stays: a property of a table has all of its cells styled again.
function scrolled(/** @type {Event} */ { currentTarget: box }) {
  if (!(box instanceof Element)) return
  sizes.observe(box)
  const table = box.matches(".ep-tool .ep-scroll") && box.querySelector("table")
  if (table) sizes.observe(table) // its rows change
}

let observed = new WeakSet()
function mount() {
  for (const box of document.querySelectorAll(`${SCROLLS}, .ep-scroll`)) {
    if (observed.has(box)) continue
    observed.add(box)
    if (box.matches(".ep-scroll")) box.addEventListener("scroll", scrolled, { once: true, passive: true })
    else sizes.observe(box)
  }
  // Paper shows addresses only of links that lead off the site.
  /** @type {NodeListOf<HTMLAnchorElement>} */
  const links = document.querySelectorAll(".md-content a[href]:not(svg a)")
  for (const link of links) link.toggleAttribute("data-elsewhere", link.host !== location.host)
}

// Runs when the browser is idle, or after a few seconds if it never is.
const isIdle = Boolean(globalThis.requestIdleCallback) // whether a browser says when
const soon = (/** @type {IdleRequestCallback} */ task) => {
  if (isIdle) requestIdleCallback(task, { timeout: 4000 })
  else setTimeout(task)
}

// Lays out, piece by piece, whatever the styles defer on narrow screens; the rest at once if the browser is never
// idle. The catalog’s rows and the gallery’s cards are too many, so the browser lays them out as they come into view.
function lay() {
  const later = [
    ...document.querySelectorAll(
      ".md-content__inner > :is(figure, .ep-block, .ep-scroll, .ep-walk), .ep-tool > .ep-scroll, " +
        ".ep-walk > li > ol > li",
    ),
  ]
  /** @type {IdleRequestCallback} */
  function next({ didTimeout }) {
    for (const one of later.splice(0, didTimeout ? later.length : 1)) one.classList.add("ep-laid")
    if (later.length) soon(next)
  }
  if (isIdle) soon(next)
}

const added = new MutationObserver(mount) // Material wraps its tables later
const start = () => {
  const again = () => {
    added.disconnect()
    sizes.disconnect()
    observed = new WeakSet()
    const content = document.querySelector(".md-content")
    if (content) added.observe(content, { childList: true, subtree: true })
    mount()
    lay()
    for (const [what, script] of Object.entries(SCRIPTS)) if (document.querySelector(what)) import(script)
    /** @type {NodeListOf<SVGSVGElement>} */
    const charts = document.querySelectorAll(".ep-figure svg:has(a.point)")
    if (charts.length) import("./points.mjs").then(({ mount }) => charts.forEach(chart => soon(() => mount(chart))))
  }
  if (globalThis.document$) globalThis.document$.subscribe(again)
  else again()
}
if (document.readyState === "complete") start()
else addEventListener("load", start, { once: true })
