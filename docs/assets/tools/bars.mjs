// Bars to one scale, of which a reader moves one state: the values are those of the page's own figure, by the same
// compiled functions.

import { moved, once } from "./choices.mjs"
import { alert, html, labelled, render, select } from "./view.mjs"

/** What evaluates, loaded once it is needed. @type {() => Promise<Counting>} */
const counting = once(() =>
  Promise.all([
    import("../engine/base.mjs"),
    import("../problems.mjs"),
    import("./figures.mjs"),
    import("../engine/bar_values.mjs"),
  ]).then(([{ M }, { py }, figures]) => ({ values: M["views.charts.bar_values"], py, figures })),
)
/**
 * @typedef {{ values: Engine.BarValues, py: Engine.Python, figures: typeof import("./figures.mjs") }} Counting
 * @typedef {[title: string, colour: string, shape: string]} Kind
 * @typedef {[name: string, stops: number[], start: number]} Size
 */

/** @param {typeof import("./figures.mjs")} figures @param {string} unit @param {boolean} isExact */
function writer({ bytes, flops, grouped, seconds, short }, unit, isExact) {
  if (unit === "bytes") return bytes
  if (unit === "FLOPs") return flops
  if (unit === "microseconds") return (/** @type {bigint} */ n) => seconds(Number(n) / 1e6)
  return unit === "parameters" && !isExact ? short : grouped
}
const title = (/** @type {string} */ name, /** @type {string} */ value) => {
  const said = name.replaceAll("_", " ")
  return `${said[0].toUpperCase()}${said.slice(1)} ${Number(value).toLocaleString("en")}`
}
const lower = (/** @type {string} */ text) => `${text[0].toLowerCase()}${text.slice(1)}`

/** @param {HTMLElement} place */
export function mount(place) {
  if (!place.querySelector(".ep-controls")) return // nothing to choose
  const { kinds = "", lines = "", models = "", prefix = "", states = "", stops = "", unit = "" } = place.dataset,
    /** @type {Kind[]} */
    looks = JSON.parse(kinds),
    /** @type {[slug: string, name: string][]} */
    all = JSON.parse(models),
    /** @type {Size[]} */
    sizes = JSON.parse(stops),
    /** @type {number[]} */
    drawn = JSON.parse(states),
    controls = /** @type {HTMLElement} */ (place.querySelector(".ep-controls")),
    panels = /** @type {HTMLElement} */ (place.querySelector(".ep-three")),
    output = /** @type {HTMLElement} */ (place.querySelector("output")),
    hasMenu = all.length > 1
  /** @type {Record<string, string[]>} */
  const values = Object.fromEntries(sizes.map(([name, known]) => [name, known.map(String)])),
    usual = Object.fromEntries(sizes.map(([name, , start]) => [name, `${start}`]))
  if (hasMenu) {
    values.model = all.map(([slug]) => slug)
    usual.model = all[0][0]
  }
  const { recall, set } = moved(place, values, usual, { panels, counting, form, draw })
  output.setAttribute("aria-live", "polite")

  function form(/** @type {import("./choices.mjs").Chosen} */ chosen, problem = "") {
    const slider = (/** @type {Size} */ [name, known]) => {
      const said = title(name, chosen[name])
      return labelled(
        said,
        html`<input type="range" name=${name} min="0" max=${known.length - 1} step="1"
          value=${values[name].indexOf(chosen[name])} aria-label=${title(name, "0").replace(/ 0$/, "")}
          aria-valuetext=${said}
          oninput=${(/** @type {any} */ { target }) => set({ [name]: values[name][target.value] }, target)} />`,
      )
    }
    const names = all.map(([slug, name]) => /** @type {[string, string]} */ ([slug, name])),
      choose = (/** @type {any} */ { target }) => set({ model: target.value })
    render(
      html`<form class="ep-whatif" onsubmit=${(/** @type {Event} */ event) => event.preventDefault()}>
        <div class="ep-row">
          ${hasMenu && labelled("Model", select("model", names, chosen.model, { onchange: choose }))}
          ${sizes.map(slider)}
          <button type="button" onclick=${() => set(usual)}>Reset</button>
        </div>
        ${alert(problem)}
      </form>`,
      controls,
    )
  }

  function draw(/** @type {Counting} */ { values: of, py, figures }, /** @type {Record<string, string>} */ chosen) {
    /** @type {[string, string, unknown][]} */
    const known = /** @type {any} */ (py.parse(models)),
      [, name, rows] = known[hasMenu ? values.model.indexOf(chosen.model) : 0],
      given = sizes.map(([size]) => BigInt(chosen[size])),
      /** @type {[string, bigint][]} */
      cards = /** @type {any} */ (py.parse(lines)),
      longest = of.largest(rows, (sizes[0]?.[1] ?? []).map(BigInt), given),
      most = [longest, ...cards.map(([, n]) => n).filter(n => n <= 2n * longest)].reduce((a, b) => (a > b ? a : b)),
      write = writer(figures, unit, false)
    const bar = (/** @type {Engine.Bar} */ one) => html`<li>
      <span>${one.label}</span>${" "}<b>${write(one.total)}</b>
      <svg width="100%" height="16" aria-hidden="true">
        ${one.segments.map(({ kind, amount, start, width }) => {
          if (!amount) return null
          const [what, colour, shape] = looks[Number(kind)],
            isPlain = shape === "plain" || shape === "full"
          return html`<rect x=${`${start.toFixed(2)}%`} y="1" width=${`${width.toFixed(2)}%`} height="86%"
            fill=${isPlain ? colour : `url(#${prefix}${kind}-${shape})`} stroke=${colour}
            fill-opacity=${shape === "plain" ? ".3" : undefined}><title>${`${what}: ${write(amount)}`}</title></rect>`
        })}
        ${cards
          .filter(([, n]) => n <= most)
          .map(([, n]) => `${((100 * Number(n)) / Number(most)).toFixed(2)}%`)
          .map(x => html`<line x1=${x} x2=${x} y1="0" y2="100%" class="device" />`)}
      </svg>
    </li>`
    const middle = Math.floor(drawn.length / 2)
    const panel = (/** @type {string} */ said, /** @type {bigint[]} */ state, /** @type {number} */ i) =>
      html`<div key=${i} class=${i === middle ? "ep-bars lit" : "ep-bars"}>
        ${said && html`<p class="ep-panel-title">${said}</p>`}
        <ul>${of.bars(rows, state, most).map(bar)}</ul>
      </div>`
    const states = drawn.map((state, i) => (i === middle ? given : [BigInt(state), ...given.slice(1)]))
    render(
      states.length
        ? states.map((state, i) => panel(title(sizes[0][0], `${state[0]}`), state, i))
        : panel(name, given, 0),
      panels,
    )
    output.textContent = sentence(of.bars(rows, given, most), name, chosen, writer(figures, unit, true))
  }
  /**
   * @param {Engine.Bar[]} bars
   * @param {string} model
   * @param {Record<string, string>} chosen
   * @param {(n: bigint) => string} write
   */
  function sentence(bars, model, chosen, write) {
    const states = sizes.map(([name]) => title(name, chosen[name])),
      begins = model ? [model, ...states.map(lower)].join(", ") : states.join(", "),
      [{ segments, total }] = bars
    const parts =
      bars.length === 1 && segments.length > 1
        ? [
            ...segments.map(({ kind, amount }) => `${looks[Number(kind)][0]} ${write(amount)}`),
            `together ${write(total)}`,
          ]
        : bars.map(one => `${one.label} ${write(one.total)}`)
    return `${begins && `${begins}: `}${parts.join("; ")}.`
  }
  recall()
}
