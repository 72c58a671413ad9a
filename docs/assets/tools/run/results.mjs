// What a run shows: tables, maps and switches.

import { cellsOf, notesOf, numberOf } from "../capitals/asked.mjs"
import { designs } from "../capitals/designs.mjs"
import { allHeads, contributions } from "../capitals/heads.mjs"
import { attention, cache } from "../capitals/looking.mjs"
import { matrix, percent } from "../capitals/matrices.mjs"
import { patchTables } from "../capitals/patch_tables.mjs"
import { html, Kept, labelled, pairs, select, table } from "../view.mjs"
import { addedOf, list, mapped, openedOf, patchesOf, visible, wordsOf } from "./answer.mjs"

/**
 * @typedef {import("./answer.mjs").Answer} Answer
 * @typedef {import("./view.mjs").Shown} Shown
 * @typedef {import("./view.mjs").Doing} Doing
 */
export { panel } from "../capitals/asked.mjs"

/**
 * The parts of a run, each drawn again once what it shows has come.
 * @param {Shown} shown
 * @param {Doing} doing
 */
export function results(shown, doing) {
  const { answer, maps: pictures, moved, isDrawn, isStopped } = shown,
    { layer, head, number, position, patch, lines, step } = shown.state
  const part = (/** @type {unknown[]} */ of, /** @type {() => import("../view.mjs").Child} */ draw, name = "") =>
    html`<div data-part=${name || undefined}><${Kept} of=${of}>${draw}<//></div>`
  return html`
    ${part([answer], () => answer && tokens(answer, shown))}
    ${part([answer], () => answer && words(answer, shown, doing), "words")}
    ${part([pictures, layer, head], () => answer && pictures && looks(answer, shown, doing))}
    ${part([pictures, layer, head], () => answer && pictures && maps(answer, shown, doing))}
    ${part([answer], () => answer && answer.designs.length > 0 && leftOut(answer, doing))}
    ${part([shown.large, number, lines], () => large(shown, doing), "large")}
    ${part([shown.parts, number], () => answer && shown.parts && parts(answer, shown, doing))}
    ${part(
      [answer, moved, isStopped, layer, position, patch],
      () => answer && !isStopped && patches(answer, shown, doing),
    )}
    <${Kept} of=${[isDrawn, shown.steps, shown.state.steps, step, number]}>${() => everyStep(shown, doing)}<//>
    <${Kept} of=${[isDrawn, shown.lens, shown.isLens, answer]}>${() => lens(shown, doing)}<//>`
}

// What a part shows, in a sentence or two beside it.
const said = (/** @type {import("../view.mjs").Child} */ text) => html`<p class="ep-conventions">${text}</p>`
const KV_CACHE = new URL("../../../what-happens/kv-cache/", import.meta.url).href

/** @param {Answer} answer @param {Shown} shown */
const tokens = ({ tokens: all, cached }, { state }) => html`
  <ol class="ep-tokens" aria-label="Tokens">
    ${all.map(
      ({ text, id }, i) =>
        html`<li class=${i < all.length - addedOf(state).length ? undefined : "newest"}>
          <span>${text || " "}</span><small>${id}</small>
        </li>`,
    )}
  </ol>
  ${
    cached > 0 &&
    html`<p class="ep-conventions">
    ${`The cache holds ${cached.toLocaleString("en")} numbers for these tokens.`}
  </p>`
  }`

/** @param {Answer} answer @param {Shown} shown @param {Doing} doing */
function words(answer, { state }, { append, ask }) {
  const { caption, head, rows, notes } = wordsOf(answer, state)
  return html`
    ${said(
      html`Probabilities and attention weights are those of the last step, which computes new tokens only: the keys and
        values of the others are in the <a href=${KV_CACHE}>KV cache</a>. Press a logit, an attention weight, a cached
        key or a part of a logit to see what it was made of, back to the weights in the file; for that, the page
        computes the text again and keeps each result.`,
    )}
    ${table(
      caption,
      head,
      rows.map(one => cellsOf(one, { isFull: answer.isFull, append, ask, more: [`${one.id}`] })),
    )}
    ${notesOf(notes)}`
}

// Attention

/** @param {Answer} answer @param {Shown} shown @param {Doing} doing */
function looks({ heads }, { state }, { set }) {
  if (!heads.some(Boolean)) return html`<p>This model has no attention weights to show for each token pair.</p>`
  const { layer } = openedOf(state, { heads })
  const choice = (/** @type {"layer" | "head"} */ name, /** @type {number[]} */ all) =>
    select(name, pairs(all), state[name], {
      "data-key": name,
      onchange: (/** @type {any} */ { target: { value } }) =>
        set(name === "layer" ? { layer: value, head: "0" } : { head: value }),
    })
  const layers = [...heads.keys()].filter(i => heads[i] || i === layer)
  return html`<div class="ep-whatif">
    ${said("Switch a head, a feed-forward network or a layer off, and the forward pass runs without its output.")}
    <div class="ep-row">
      ${labelled("Layer", choice("layer", layers))}
      ${labelled("Head", choice("head", [...Array(heads[layer] || 1).keys()]))}
    </div>
  </div>`
}
/** @param {Answer} answer @param {Shown} shown @param {Doing} doing */
function maps(answer, { state, maps }, { set, run }) {
  const opened = openedOf(state, answer)
  return allHeads({
    one: "token",
    layers: mapped(answer, opened.layer).map(i => ({
      ...{ number: i, heads: answer.heads[i], hasFeedForward: answer.feedForwards[i] },
    })),
    off: new Set(list(state.off)),
    open: opened,
    set: chosen => ("off" in chosen ? run(chosen) : set(chosen)),
    picture: (layer, head) =>
      html`<span class="ep-thumb ep-mask" style=${{ maskImage: maps?.pictures.get(`${layer}.${head}`) }}></span>`,
  })
}
/** @param {Shown} shown @param {Doing} doing */
function large({ large, state }, { set, ask }) {
  if (!large) return null
  const { layer, head, keys } = large,
    of = { layer, head, ask: { ...ask, chosen: state.number } }
  return [attention({ ...large, ...of }, "token", state.lines !== "", set), keys && cache({ ...keys, ...of }, ROWS)]
}
const ROWS = "The next step reads all of these rows and writes one more. Earlier rows are not computed again."

// Changes

/** @type {Record<string, string>} */
const DESIGNS = {
  scaling: "Scaling of the scores",
  causal_mask: "Causal mask",
  norms: "All norms",
  residual_stream: "Residual stream",
}
/** @param {Answer} answer @param {Doing} doing */
const leftOut = ({ designs: all, without }, { run }) =>
  designs(
    without,
    run,
    Object.fromEntries(all.map(name => [name, Object.hasOwn(DESIGNS, name) ? DESIGNS[name] : `Norm ${name}`])),
  )
const OF_PARTS = [
  "What each part adds to a logit, the last norm’s statistics held as they are.",
  "Those of a norm that follows a part are held, too.",
  "Where the model caps its logits, the parts add up to the score before the cap.",
].join(" ")
/** @param {Answer} answer @param {Shown} shown @param {Doing} doing */
function parts({ likely }, { parts, state }, { set, ask }) {
  const id = parts?.id ?? 0
  const shown = contributions({
    one: "token",
    words: likely.map(({ id, text }) => [`${id}`, visible(text)]),
    chosen: { id, value: `${id}` },
    set,
    parts: parts?.parts,
    ask: { ...ask, chosen: state.number },
  })
  return html`${said(OF_PARTS)}${shown}`
}
/** @param {Answer} answer @param {Shown} shown @param {Doing} doing */
function patches(answer, { state, about, moved }, { set, run, patch }) {
  const of = patchesOf(answer, state, about)
  if (!of) return null
  const tables = moved?.of === of.key ? moved.tables : null,
    { patches, layer } = of
  const taken = patches.map(
    one =>
      html`<button type="button" data-key=${`patched ${one}`}
        onclick=${() => run({ patch: patches.filter(other => other !== one).join("|") })}>
        ${`Take back the patch ${one}`}
      </button>`,
  )
  return html`
    ${patchTables({
      ...of,
      patches: new Set(patches),
      layers: [layer],
      heads: of.heads && tables ? tables.parts.length - 2 : 0,
      moved: tables && { parts: [tables.parts], stream: tables.stream.map(one => [one]) },
      before: html`<button type="button" data-key="moved" onclick=${patch}>
        ${`Patch each part of layer ${layer}`}
      </button>`,
      set: chosen => ("patch" in chosen ? run(chosen) : set(chosen)),
    })}
    ${taken.length > 0 && html`<p class="ep-row">${taken}</p>`}`
}

// Steps and endings

/** @param {Shown} shown @param {Doing} doing */
function everyStep({ state, steps, isDrawn }, { set, ask }) {
  const isOpen = state.steps !== "",
    toggled = (/** @type {any} */ { target: { open } }) => open !== isOpen && set({ steps: open ? "1" : "" })
  const rows = (steps?.all ?? []).map(({ number, layer, name, weights, dims, mean, largest }) => [
    html`<button type="button" class="ep-word" data-key=${`step ${number}`} aria-pressed=${state.step === `${number}`}
      onclick=${() => set({ step: `${number}` })}>${name}</button>`,
    layer === null ? "" : `${layer}`,
    weights,
    dims.join(" × "),
    mean.toFixed(4).replace("-", "−"),
    largest.toFixed(4),
  ])
  const corner = steps?.corner
  return html`<details hidden=${!isDrawn} open=${isOpen} ontoggle=${toggled}>
    <summary>Every step</summary>
    <div>
      ${said(
        html`The steps of a layer with their shapes, as <code>run --trace</code> prints them. Inside a recurrence, such
          as Mamba’s, a number shows what stays of the state before and what the token writes into it.`,
      )}
      ${
        isOpen &&
        steps &&
        table(
          `The steps of layer ${steps.layer} and those around the layers, in the order in which they end`,
          ["Step", "Layer", "Weights", "Shape", "#Mean", "#Largest"],
          rows,
        )
      }
      ${
        isOpen &&
        corner &&
        matrix(corner.title, corner.heads, corner.columns, corner.numbers, {
          place: (i, j) => corner.places[i][j],
          ask: { ...ask, chosen: state.number },
        })
      }
    </div>
  </details>`
}
/** @param {Shown} shown @param {Doing} doing */
function lens({ answer, lens, isLens, isDrawn }, { lens: toggled, ask }) {
  const rows = (lens ?? []).map((row, i) => [
    i ? `After layer ${i - 1}` : "Before the first layer",
    ...row.flatMap(({ id, text, share }) => {
      const name = visible(text)
      return [name, numberOf(`Probability of ${name}`, `ended/${i}/${id}`, percent(share), ask)]
    }),
  ])
  return html`<details hidden=${!isDrawn || !answer?.hasLens} open=${isLens}
    ontoggle=${(/** @type {any} */ { target: { open } }) => toggled(open)}>
    <summary>Logit lens</summary>
    <div>
      ${said("The last norm and the LM head, applied to the residual stream after each layer.")}
      ${
        lens &&
        table(
          "The most likely next tokens if the model ended there",
          ["Where", "First", "#Probability", "Second", "#Probability", "Third", "#Probability"],
          rows,
        )
      }
    </div>
  </details>`
}
