// Bars to one scale, of which a reader moves one state.

import { moved, slider } from "./choices.mjs"
import { html, labelled, select } from "./view.mjs"

/** @typedef {typeof import("./bars/answer.mjs")} Answering */
/** @typedef {import("./bars/answer.mjs").Kind} Kind */
/** @typedef {import("./bars/answer.mjs").Panel} Panel */

const title = (/** @type {string} */ name, /** @type {string | bigint} */ value) => {
  const said = name.replaceAll("_", " ")
  return `${said[0].toUpperCase()}${said.slice(1)} ${Number(value).toLocaleString("en")}`
}
const lower = (/** @type {string} */ text) => `${text[0].toLowerCase()}${text.slice(1)}`

/** @param {HTMLElement} place */
export function mount(place) {
  if (!place.querySelector(".ep-controls")) return // nothing to choose
  const { kinds = "", models = "", prefix = "", stops = "" } = place.dataset,
    /** @type {Kind[]} */
    looks = JSON.parse(kinds),
    /** @type {[slug: string, name: string][]} */
    all = JSON.parse(models),
    /** @type {import("./bars/answer.mjs").Size[]} */
    sizes = JSON.parse(stops),
    hasMenu = all.length > 1
  /** @type {Record<string, string[]>} */
  const values = Object.fromEntries(sizes.map(([name, known]) => [name, known.map(String)])),
    usual = Object.fromEntries(sizes.map(([name, , start]) => [name, `${start}`]))
  if (hasMenu) {
    values.model = all.map(([slug]) => slug)
    usual.model = all[0][0]
  }
  const { recall } = moved(place, values, usual, {
    load: () => import("./bars/answer.mjs"),
    fields(chosen, set) {
      const choose = (/** @type {any} */ { target }) => set({ model: target.value })
      return [
        hasMenu && labelled("Model", select("model", all, chosen.model, { onchange: choose })),
        ...sizes.map(([name]) => {
          const [label, said] = [title(name, "0").replace(/ 0$/, ""), title(name, chosen[name])]
          return slider(name, values[name], chosen[name], label, said, set)
        }),
      ]
    },
    draw(/** @type {Answering} */ { answer }, chosen) {
      const n = hasMenu ? values.model.indexOf(chosen.model) : 0,
        [, model] = all[n],
        { said, panels, lines } = answer(place.dataset, n, chosen)
      const states = sizes.map(([name]) => title(name, chosen[name])),
        begins = model ? [model, ...states.map(lower)].join(", ") : states.join(", "),
        titled = ({ state } = panels[0]) => (state === undefined ? model : title(sizes[0][0], state))
      return {
        said: `${begins && `${begins}: `}${said}.`,
        drawn: panels.map((one, i) => panel(one, i, titled(one), lines, looks, prefix)),
      }
    },
  })
  recall()
}
/**
 * @param {Panel} panel
 * @param {number} i
 * @param {string} titled
 * @param {string[]} lines
 * @param {Kind[]} looks
 * @param {string} prefix of the patterns
 */
const panel = ({ isChosen, bars }, i, titled, lines, looks, prefix) =>
  html`<div key=${i} class=${isChosen ? "ep-bars lit" : "ep-bars"}>
    ${titled && html`<p class="ep-panel-title">${titled}</p>`}
    <ul>
      ${bars.map(
        ({ label, value, segments }) => html`<li>
          <span>${label}</span>${" "}<b>${value}</b>
          <svg width="100%" height="16" aria-hidden="true">
            ${segments.map(({ kind, start, width, said }) => {
              const [, colour, shape] = looks[kind],
                fill = shape === "plain" || shape === "full" ? colour : `url(#${prefix}${kind}-${shape})`
              return html`<rect x=${start} y="1" width=${width} height="86%" fill=${fill} stroke=${colour}
                fill-opacity=${shape === "plain" ? ".3" : undefined}><title>${said}</title></rect>`
            })}
            ${lines.map(x => html`<line x1=${x} x2=${x} y1="0" y2="100%" class="device" />`)}
          </svg>
        </li>`,
      )}
    </ul>
  </div>`
