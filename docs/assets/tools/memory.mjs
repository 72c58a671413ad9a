// Does it fit: weights and cache against the context, for the model, the users and the context that a reader chooses.
// The shapes are those of the pages' own drawing, compiled; elements are drawn of them here.

import { moved, once } from "./choices.mjs"
import { alert, html, labelled, render, select } from "./view.mjs"

const USERS = ["1", "2", "4", "8", "16", "32", "64"],
  PARTS = 32, // steps of the context
  SHARE = 4 // the context of the static figure is this part of the longest

/** What counts, loaded once it is needed. @type {() => Promise<Counting>} */
const counting = once(() =>
  Promise.all([
    import("../engine/base.mjs"),
    import("../problems.mjs"),
    import("./figures.mjs"),
    import("../engine/memory_areas.mjs"),
  ]).then(([{ M }, { py }, { bytes, grouped }]) => ({
    areas: M["views.charts.memory_areas"],
    capacity: M["counting.capacity"],
    py,
    bytes,
    grouped,
  })),
)
/**
 * @typedef {(n: bigint) => string} Said
 * @typedef {object} Counting
 * @property {Engine.MemoryAreas} areas
 * @property {Engine.Modules["counting.capacity"]} capacity
 * @property {Engine.Python} py
 * @property {Said} bytes
 * @property {Said} grouped
 * @typedef {{ model: string, users: string, part: string }} Chosen
 */

/** @param {HTMLElement} place */
export function mount(place) {
  const { models = "", devices = "" } = place.dataset,
    /** @type {[slug: string, name: string, longest: number][]} */
    all = JSON.parse(models),
    controls = /** @type {HTMLElement} */ (place.querySelector(".ep-controls")),
    output = /** @type {HTMLElement} */ (place.querySelector("output")),
    three = /** @type {HTMLElement} */ (place.querySelector(".ep-three")),
    usual = { model: all[0][0], users: "1", part: `${PARTS / SHARE}` }
  output.setAttribute("aria-live", "polite")
  /** @type {Record<keyof Chosen, string[]>} */
  const values = {
    model: all.map(([slug]) => slug),
    users: USERS,
    part: Array.from({ length: PARTS }, (_, i) => `${i + 1}`),
  }
  /** @type {Chosen} */
  let chosen = { ...usual }
  const { recall, set } = moved(place, values, usual, {
    panels: three,
    counting,
    form(given, problem) {
      chosen = /** @type {Chosen} */ (given)
      form(problem)
    },
    draw,
  })
  const contextOf = (/** @type {number} */ longest) => Math.floor((longest * Number(chosen.part)) / PARTS)

  function form(problem = "") {
    const [, , longest] = all[values.model.indexOf(chosen.model)],
      field =
        (/** @type {keyof Chosen} */ name) =>
        (/** @type {any} */ { target }) =>
          set({ [name]: target.value }, target)
    const names = all.map(([slug, name]) => /** @type {[string, string]} */ ([slug, name])),
      users = USERS.map(n => /** @type {[string, string]} */ ([n, n]))
    render(
      html`<form class="ep-whatif" onsubmit=${(/** @type {Event} */ event) => event.preventDefault()}>
        <div class="ep-row">
          ${all.length > 1 && labelled("Model", select("model", names, chosen.model, { onchange: field("model") }))}
          ${labelled("Users", select("users", users, chosen.users, { onchange: field("users") }))}
          ${labelled(
            "Context of each",
            html`<input type="range" name="part" min="1" max=${`${PARTS}`} step="1" value=${chosen.part}
              aria-valuetext=${`${contextOf(longest).toLocaleString("en")} tokens`} oninput=${field("part")} />`,
          )}
          <button type="button" onclick=${() => set(usual)}>Reset</button>
        </div>
        ${alert(problem)}
      </form>`,
      controls,
    )
  }

  function draw(/** @type {Counting} */ { areas, capacity, py, bytes, grouped }) {
    /** @type {[string, string, bigint, [string, bigint][], any, any][]} */
    const known = /** @type {any} */ (py.parse(models)),
      /** @type {[string, bigint][]} */
      listed = /** @type {any} */ (py.parse(devices))
    const [, name, longest, weights, kept, operations] = known[values.model.indexOf(chosen.model)],
      users = BigInt(chosen.users),
      at = BigInt(contextOf(Number(longest))),
      held = listed.map(([title, memory]) => areas.Device(title, memory)),
      sizes = weights.map(([, n]) => n),
      panels = areas.panels(kept, sizes, users, longest, at, held)
    const verdict = (/** @type {string} */ format, /** @type {bigint} */ n) => {
      const device = areas.device_for(n, held)
      if (!device) return `${format}: on none of these devices`
      const most = capacity.longest_context(kept, operations, device.memory - n, users, 2n, longest)
      const each = users > 1n ? " for each user" : ""
      return `${format}: ${device.name} holds ${most === longest ? "all " : ""}${grouped(most)} tokens${each}`
    }
    const now = areas.cache_bytes(kept, at, users),
      each = users === 1n ? "1 user" : `${users} users`
    output.textContent =
      `${name}, ${each}, ${grouped(at)} tokens: ${bytes(sizes[0])} of weights (${weights[0][0]}) and ` +
      `${bytes(now)} of cache are ${bytes(sizes[0] + now)}.`
    render(
      panels.map(
        (panel, i) => html`<div key=${weights[i][0]}>
          <p class="ep-panel-title">${verdict(...weights[i])}</p>
          ${drawing(areas, panel, `${name}, ${weights[i][0]}`, `memory-now-${i}`)}
        </div>`,
      ),
      three,
    )
  }
  recall()
}

/**
 * @param {Engine.MemoryAreas} areas
 * @param {Engine.MemoryPanel} panel
 * @param {string} what
 * @param {string} prefix of the pattern
 */
function drawing(areas, { weights, cache, devices, across, up, cursor, total }, what, prefix) {
  const [left, top, right, bottom] = weights,
    outline = `M${[...cache, [left, top]].map(point => point.map(x => x.toFixed(1)).join(" ")).join("L")}z`
  const text = (/** @type {number} */ x, /** @type {number} */ y, /** @type {string} */ said, anchor = "start") =>
    html`<text x=${x.toFixed(1)} y=${y.toFixed(1)} text-anchor=${anchor} font-size="12" class="halo">${said}</text>`
  const line = (/** @type {number} */ y, /** @type {string} */ cls) =>
    html`<line x1=${left} y1=${y.toFixed(1)} x2=${right} y2=${y.toFixed(1)} class=${cls} />`
  return html`<svg class="ep-svg" viewBox=${`0 0 ${areas.WIDTH} ${areas.HEIGHT}`} role="img">
    <title>${`Memory of ${what}, against the context`}</title>
    <defs>
      <pattern id=${prefix} width="6" height="6" patternUnits="userSpaceOnUse">
        <rect width="6" height="6" class="ground" /><path d="M-1 7L7 -1M-1 1L1 -1M5 7L7 5" class="stroke" />
      </pattern>
    </defs>
    ${up.map(({ at, said }) => [line(at, "rule"), text(left - 5, at + 4, said, "end")])}
    ${across.map(({ at, said }) => text(at, bottom + 18, said, at === right ? "end" : "middle"))}
    <rect x=${left} y=${top.toFixed(1)} width=${right - left} height=${(bottom - top).toFixed(1)}
      fill=${`url(#${prefix})`} class="weights" />
    <path d=${outline} class="cache" />
    ${devices.map(({ at, said }) => [line(at, "device"), text(left + 4, at - 4, said)])}
    <line x1=${cursor.toFixed(1)} y1=${total.toFixed(1)} x2=${cursor.toFixed(1)} y2=${bottom} class="cursor" />
    <circle cx=${cursor.toFixed(1)} cy=${total.toFixed(1)} r="4" class="cursor" />
  </svg>`
}
