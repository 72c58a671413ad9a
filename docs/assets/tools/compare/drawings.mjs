// The diagrams of models' pages side by side.

import { Component, html } from "../view.mjs"

/** @typedef {{ name: string, svg: Element }} Drawing */
/**
 * The diagrams of the models' pages side by side, fetched when they are opened.
 * @extends {Component<{ pages: URL[] }, { all: Drawing[][] | null }>}
 */
export class Diagrams extends Component {
  /** @type {{ all: Drawing[][] | null }} */
  state = { all: null }
  async componentDidMount() {
    const all = await Promise.all(this.props.pages.map(drawingsOf))
    mark(all)
    this.setState({ all })
  }
  render() {
    const { all } = this.state
    if (!all) return null
    const rows = Array.from({ length: Math.max(...all.map(drawings => drawings.length)) }, (_, i) => {
      const name = all.flatMap(drawings => drawings[i]?.name ?? []).join(", ")
      return html`<div class="ep-beside" role="group" aria-label=${name}>
        ${all.map(drawings => (drawings[i] ? figureOf(drawings[i]) : html`<div></div>`))}
      </div>`
    })
    return html`<p>Operations that another model lacks are marked.</p>${rows}`
  }
}
const figureOf = (/** @type {Drawing} */ { name, svg }) =>
  html`<figure class="ep-figure" aria-label=${name} ref=${(/** @type {Element?} */ place) => place?.append(svg)}>
    <figcaption>${name}</figcaption>
  </figure>`

/**
 * The diagrams of a model's page, each with its name; their links keep their targets.
 * @param {URL} address
 * @returns {Promise<Drawing[]>}
 */
async function drawingsOf(address) {
  const page = new DOMParser().parseFromString(await (await fetch(address)).text(), "text/html")
  return [...page.querySelectorAll("figure.diagram")].flatMap(figure => {
    const svg = figure.querySelector(".ep-canvas > svg")
    if (!svg) return []
    document.adoptNode(svg)
    for (const link of svg.querySelectorAll("a"))
      for (const name of ["href", "xlink:href"]) {
        const to = link.getAttribute(name)
        if (to !== null) link.setAttribute(name, `${new URL(to, address)}`)
      }
    return [{ name: figure.getAttribute("aria-label") ?? "", svg }]
  })
}

// Marks the operations that some other model lacks, by their titles.
function mark(/** @type {Drawing[][]} */ all) {
  const titled = (/** @type {Element} */ node) =>
      [...node.querySelectorAll("text:not(.ep-small, .ep-term)")].map(text => text.textContent).join(""),
    nodes = (/** @type {Drawing[]} */ drawings) => drawings.flatMap(({ svg }) => [...svg.querySelectorAll(".node")])
  const titles = all.map(drawings => new Set(nodes(drawings).map(titled)))
  all.forEach((drawings, i) =>
    nodes(drawings).forEach(node =>
      node.classList.toggle(
        "ep-differs",
        titles.some((known, j) => j !== i && !known.has(titled(node))),
      ),
    ),
  )
}
