// Does it fit: weights and cache against the context, for the model, the users and the context that a reader chooses.
// The shapes are those of the pages' own drawing, compiled; elements are drawn of them here.

import { moved } from "./choices.mjs"
import { html, labelled, pairs, select } from "./view.mjs"

const USERS = ["1", "2", "4", "8", "16", "32", "64"],
  PARTS = 32, // steps of the context
  SHARE = 4 // the context of the static figure is this part of the longest

/** @param {HTMLElement} place */
export function mount(place) {
  /** @type {[slug: string, name: string, longest: number][]} */
  const all = JSON.parse(place.dataset.models ?? ""),
    parts = Array.from({ length: PARTS }, (_, i) => `${i + 1}`),
    values = { model: all.map(([slug]) => slug), users: USERS, part: parts },
    usual = { model: all[0][0], users: "1", part: `${PARTS / SHARE}` }
  const placeOf = (/** @type {Chosen} */ { model }) => values.model.indexOf(model),
    contextOf = (/** @type {Chosen} */ chosen) => Math.floor((all[placeOf(chosen)][2] * Number(chosen.part)) / PARTS)
  const { recall } = moved(place, values, usual, {
    load: () => import("./memory/answer.mjs"),
    fields: (chosen, set) => fields(all, chosen, contextOf(chosen), set),
    draw({ answer, WIDTH, HEIGHT }, chosen) {
      const { said, panels } = answer(place.dataset, placeOf(chosen), contextOf(chosen), BigInt(chosen.users))
      const drawn = panels.map(
        (one, i) => html`<div key=${one.of}>
          <p class="ep-panel-title">${one.title}</p>${drawing(one, `0 0 ${WIDTH} ${HEIGHT}`, `memory-now-${i}`)}
        </div>`,
      )
      return { said, drawn }
    },
  })
  recall()
}

/**
 * @typedef {import("./choices.mjs").Chosen} Chosen
 * @param {[slug: string, name: string, longest: number][]} all
 * @param {Chosen} chosen
 * @param {number} context
 * @param {import("./choices.mjs").Set} set
 */
function fields(all, chosen, context, set) {
  const names = all.map(([slug, name]) => /** @type {[string, string]} */ ([slug, name])),
    field =
      (/** @type {string} */ name) =>
      (/** @type {any} */ { target }) =>
        set({ [name]: target.value }, target)
  return html`${all.length > 1 && labelled("Model", select("model", names, chosen.model, { onchange: field("model") }))}
    ${labelled("Users", select("users", pairs(USERS), chosen.users, { onchange: field("users") }))}
    ${labelled(
      "Context of each",
      html`<input type="range" name="part" min="1" max=${`${PARTS}`} step="1" value=${chosen.part}
        aria-valuetext=${`${context.toLocaleString("en")} tokens`} oninput=${field("part")} />`,
    )}`
}

/**
 * @param {import("./memory/answer.mjs").Panel} panel
 * @param {string} viewBox
 * @param {string} prefix of the pattern
 */
function drawing({ of, areas: { weights, cache, devices, across, up, cursor, total } }, viewBox, prefix) {
  const [left, top, right, bottom] = weights,
    outline = `M${[...cache, [left, top]].map(point => point.map(x => x.toFixed(1)).join(" ")).join("L")}z`
  const text = (/** @type {number} */ x, /** @type {number} */ y, /** @type {string} */ said, anchor = "start") =>
    html`<text x=${x.toFixed(1)} y=${y.toFixed(1)} text-anchor=${anchor} font-size="12" class="halo">${said}</text>`
  const line = (/** @type {number} */ y, /** @type {string} */ cls) =>
    html`<line x1=${left} y1=${y.toFixed(1)} x2=${right} y2=${y.toFixed(1)} class=${cls} />`
  return html`<svg class="ep-svg" viewBox=${viewBox} role="img">
    <title>${`Memory of ${of}, against the context`}</title>
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
    ${devices.map(({ at, said, start, base }) => [line(at, "device"), text(start, base, said)])}
    <line x1=${cursor.toFixed(1)} y1=${total.toFixed(1)} x2=${cursor.toFixed(1)} y2=${bottom} class="cursor" />
    <circle cx=${cursor.toFixed(1)} cy=${total.toFixed(1)} r="4" class="cursor" />
  </svg>`
}
