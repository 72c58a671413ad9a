// The area map of a model at the width and with the layers that a reader chooses: counted and laid out by the same
// functions as the page served, compiled; elements are drawn of them here.

import { moved, once } from "./choices.mjs"
import { alert, html, labelled, render } from "./view.mjs"

const WIDTH = 260,
  HEIGHT = 200
/** What counts and lays out, loaded once it is needed. @type {() => Promise<Counting>} */
const counting = once(() =>
  Promise.all([
    import("../engine/base.mjs"),
    import("../problems.mjs"),
    import("./figures.mjs"),
    import("../engine/bar_values.mjs"),
    import("../engine/treemap.mjs"),
    import("../engine/memory_areas.mjs"),
  ]).then(([{ M }, { py }, figures]) => ({
    values: M["views.charts.bar_values"],
    treemap: M["views.charts.treemap"],
    areas: M["views.charts.memory_areas"],
    py,
    figures,
  })),
)
/**
 * @typedef {{
 *   values: Engine.BarValues,
 *   treemap: Engine.Treemap,
 *   areas: Engine.MemoryAreas,
 *   py: Engine.Python,
 *   figures: typeof import("./figures.mjs"),
 * }} Counting
 * @typedef {[title: string, colour: string, isInLayers: boolean, formula: unknown]} Part
 */

/** @param {HTMLElement} place */
export function mount(place) {
  const { devices = "", parts = "", start = "", states = "", stops = "" } = place.dataset,
    /** @type {[number[], number[]]} */
    [widths, depths] = JSON.parse(stops),
    /** @type {[number, number]} */
    [width, layers] = JSON.parse(start),
    /** @type {[number, number][]} */
    shown = JSON.parse(states),
    controls = /** @type {HTMLElement} */ (place.querySelector(".ep-controls")),
    panels = /** @type {HTMLElement} */ (place.querySelector(".ep-three")),
    output = /** @type {HTMLElement} */ (place.querySelector("output")),
    values = { width: widths.map(String), layers: depths.map(String) },
    usual = { width: `${width}`, layers: `${layers}` }
  const { recall, set } = moved(place, values, usual, { panels, counting, form, draw })
  output.setAttribute("aria-live", "polite")

  function form(/** @type {import("./choices.mjs").Chosen} */ chosen, problem = "") {
    const slider = (/** @type {"width" | "layers"} */ name, /** @type {string} */ said) =>
      labelled(
        said,
        html`<input type="range" name=${name} min="0" max=${values[name].length - 1} step="1"
          value=${values[name].indexOf(chosen[name])} aria-label=${name === "width" ? "Width" : "Layers"}
          aria-valuetext=${said}
          oninput=${(/** @type {any} */ { target }) => set({ [name]: values[name][target.value] }, target)} />`,
      )
    render(
      html`<form class="ep-whatif" onsubmit=${(/** @type {Event} */ event) => event.preventDefault()}>
        <div class="ep-row">
          ${slider("width", `Width ${Number(chosen.width).toLocaleString("en")}`)}
          ${slider("layers", `Layers ${chosen.layers}`)}
          <button type="button" onclick=${() => set(usual)}>Reset</button>
        </div>
        ${alert(problem)}
      </form>`,
      controls,
    )
  }

  /** @param {Counting} counting @param {import("./choices.mjs").Chosen} at */
  function draw({ values: of, treemap, areas, py, figures }, at) {
    const { bytes, grouped, percent, short } = figures,
      chosen = [Number(at.width), Number(at.layers)],
      /** @type {Part[]} */
      data = /** @type {any} */ (py.parse(parts)),
      middle = Math.floor(shown.length / 2),
      all = shown.map((state, i) => (i === middle ? chosen : state).map(BigInt))
    const counts = (/** @type {bigint[]} */ state) => data.map(([, , , tree]) => of.evaluate(tree, state))
    const totalOf = (/** @type {bigint[]} */ state) => counts(state).reduce((a, b) => a + b, 0n)
    const most = all.map(totalOf).reduce((a, b) => (a > b ? a : b)),
      published = totalOf([BigInt(width), BigInt(layers)])
    const titled = (/** @type {bigint[]} */ [w, l]) =>
      `Width ${grouped(w)}, ${l} layer${l > 1n ? "s" : ""}: ${short(totalOf([w, l]))}`
    const drawing = (/** @type {bigint[]} */ state) => {
      const total = totalOf(state),
        side = Math.sqrt(Number(total) / Number(most)),
        was = Math.min(1, Math.sqrt(Number(published) / Number(most))),
        counted = counts(state)
      const made = data.map(([name, , isInLayers], i) =>
        treemap.Area(name, isInLayers ? state[1] : 0n, counted[i], short(counted[i]), percent(counted[i], total), []),
      )
      return html`<svg class="ep-svg" viewBox=${`-1 -1 ${WIDTH + 2} ${HEIGHT + 2}`} role="img">
        <title>${titled(state)}</title>
        ${treemap.drawn(made, [0, HEIGHT * (1 - side), WIDTH * side, HEIGHT]).map(one => {
          const [name, colour] = data[Number(one.place)]
          return html`<g>
            <title>${`${name}: ${grouped(counted[Number(one.place)])} parameters`}</title>
            <path d=${path([one.box])} fill=${colour} fill-opacity=${`${treemap.USED}`} />
            <path d=${path(one.outer)} fill="none" class="outer" />
            ${one.lines.map(
              ({ x, y, content, size, weight }) =>
                html`<text x=${Number(x).toFixed(1)} y=${Number(y).toFixed(1)} font-size=${`${size}`}
                  font-weight=${weight ? `${weight}` : undefined} fill="currentColor">${content}</text>`,
            )}
          </g>`
        })}
        <rect x="1" y=${(HEIGHT * (1 - was) + 1).toFixed(1)} width=${(WIDTH * was - 2).toFixed(1)}
          height=${(HEIGHT * was - 2).toFixed(1)} class="was" />
      </svg>`
    }
    render(
      all.map(
        (state, i) => html`<div key=${i} class=${i === middle ? "ep-bars lit" : "ep-bars"}>
          <p class="ep-panel-title">${titled(state)}</p>${drawing(state)}
        </div>`,
      ),
      panels,
    )
    const total = totalOf(all[middle]),
      /** @type {[string, bigint][]} */
      listed = /** @type {any} */ (py.parse(devices)),
      machine = areas.device_for(
        2n * total,
        listed.map(([name, memory]) => areas.Device(name, memory)),
      ),
      on = machine
        ? `${machine.name} is the smallest of five machines that holds them`
        : "none of five machines holds them"
    const [w, l] = all[middle]
    output.textContent =
      `Width ${grouped(w)}, ${l} layer${l > 1n ? "s" : ""}: ${grouped(total)} parameters are ${bytes(2n * total)} ` +
      `in bfloat16: ${on}.`
  }
  recall()
}

const path = (/** @type {Engine.Box[]} */ boxes) =>
  boxes
    .map(box => box.map(x => Number(x).toFixed(1)))
    .map(([x, y, right, bottom]) => `M${x} ${y}H${right}V${bottom}H${x}z`)
    .join("")
