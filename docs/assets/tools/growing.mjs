// The area map of a model at the width and with the layers that a reader chooses.

import { path, text } from "./boxes.mjs"
import { moved, slider } from "./choices.mjs"
import { html } from "./view.mjs"

/** @typedef {typeof import("./growing/answer.mjs")} Answering */

/** @param {HTMLElement} place */
export function mount(place) {
  const { start = "", stops = "" } = place.dataset,
    /** @type {number[][]} */
    [widths, depths] = JSON.parse(stops),
    [width, layers] = JSON.parse(start).map(String),
    values = { width: widths.map(String), layers: depths.map(String) },
    usual = { width, layers }
  const { recall } = moved(place, values, usual, {
    load: () => import("./growing/answer.mjs"),
    fields: (chosen, set) => [
      slider("width", values.width, chosen.width, "Width", `Width ${Number(chosen.width).toLocaleString("en")}`, set),
      slider("layers", values.layers, chosen.layers, "Layers", `Layers ${chosen.layers}`, set),
    ],
    draw(/** @type {Answering} */ answering, chosen) {
      const { said, panels } = answering.answer(place.dataset, [chosen.width, chosen.layers].map(Number))
      return { said, drawn: panels.map((one, i) => panel(one, i, answering)) }
    },
  })
  recall()
}
/**
 * @param {import("./growing/answer.mjs").Panel} panel
 * @param {number} i
 * @param {Answering} answering
 */
const panel = ({ title, areas, was, isChosen }, i, { WIDTH, HEIGHT, OPACITY }) =>
  html`<div key=${i} class=${isChosen ? "ep-bars lit" : "ep-bars"}>
    <p class="ep-panel-title">${title}</p>
    <svg class="ep-svg" viewBox=${`-1 -1 ${WIDTH + 2} ${HEIGHT + 2}`} role="img">
      <title>${title}</title>
      ${areas.map(
        ({ said, colour, box, outer, lines }) => html`<g>
          <title>${said}</title>
          <path d=${path([box])} fill=${colour} fill-opacity=${`${OPACITY}`} />
          <path d=${path(outer)} fill="none" class="outer" />
          ${lines.map(({ x, y, content, size, weight }) => text(x, y, content, size, weight))}
        </g>`,
      )}
      <rect x="1" y="1" width=${(WIDTH * was - 2).toFixed(1)}
        height=${(HEIGHT * was - 2).toFixed(1)} class="was" />
    </svg>
  </div>`
