// The tensors of a published file held against those that a config gives, name by name and, where the file says them,
// shape by shape.

import { BOUNDS, layoutOf, named, Problem, tensorsOf, textOf } from "../model.mjs"
import { entriesOf, headerOf, isTable, shapeOf } from "../safetensors.mjs"
import { grouped } from "./kit.mjs"
import { html } from "./view.mjs"

const MOST_NAMES = 20

/** @typedef {Map<string, number[] | null>} Tensors the names of a list, each with its shape or null */

/**
 * Of an index, or of the header of a .safetensors file, of which no more is read; throws a problem.
 * @param {File} file
 * @returns {Promise<Tensors>}
 */
export async function tensorList(file) {
  if (file.name.endsWith(".safetensors")) {
    const { entries } = await headerOf(file)
    return new Map(entries.map(([name, tensor]) => [name, shapeOf(name, tensor)]))
  }
  const index = new Map(entriesOf(await textOf(file, BOUNDS.LARGEST_INDEX), "is not an index of tensors")),
    map = index.get("weight_map")
  if (!isTable(map)) throw Problem("weight_map is missing", "give a model.safetensors.index.json")
  return new Map(Object.keys(map).map(name => [name, null]))
}

/** @type {{ listed: Tensors, type: unknown, head: string | undefined, layout: Engine.Layout } | undefined} */
let last
/**
 * The layout of a list, kept while the model is of one type: a change of its sizes changes nothing in it.
 * @param {Engine.Model} model
 * @param {Tensors} listed
 */
function layoutFor(model, listed) {
  const type = model.raw.read("model_type"),
    head = model.head?.name
  if (last?.listed !== listed || last.type !== type || last.head !== head)
    last = { listed, type, head, layout: layoutOf(model, listed) }
  return last.layout
}

/**
 * @param {Engine.Model} model
 * @param {Tensors} listed
 */
export function reconciled(model, listed) {
  const ours = tensorsOf(model),
    layout = layoutFor(model, listed),
    places = new Map(ours.map(([name]) => [name, layout.find(name)])),
    used = new Set([...places.values()].flatMap(place => (place ? place.cuts.map(cut => cut.stored) : [])))
  const missing = ours.flatMap(([name]) => (places.get(name) ? [] : [name])),
    more = [...listed.keys()].filter(name => !used.has(name))
  const other = ours.flatMap(([name, shape]) => {
    const place = places.get(name),
      its = place && layout.shape(place)
    return its && its.join() !== shape.join() ? [`${name}: [${its.join(", ")}] instead of [${shape.join(", ")}]`] : []
  })
  return differences(ours.length - missing.length, ours.length, { missing, more, other })
}

/**
 * How the tensors of a file differ from those that a model asks for.
 * @param {number} found
 * @param {number} asked
 * @param {Record<"missing" | "more" | "other", string[]>} names
 */
export function differences(found, asked, { missing, more, other }) {
  const number = (/** @type {number} */ n) => grouped(BigInt(n))
  const part = (/** @type {string} */ title, /** @type {string[]} */ names) =>
    names.length > 0 &&
    html`<details open>
      <summary>${title}: ${number(names.length)}</summary>
      <ul>
        ${names.slice(0, MOST_NAMES).map(name => html`<li><code>${named(name, 300n)}</code></li>`)}
        ${names.length > MOST_NAMES && html`<li>and ${number(names.length - MOST_NAMES)} more</li>`}
      </ul>
    </details>`
  const held = `${number(found)} of ${number(asked)} tensors of this config are in the file`
  return html`<section class="ep-reconciled" aria-label="The file’s tensors">
    <p>
      <strong>${held}</strong>${missing.length || more.length || other.length ? ":" : ", which has no others."}
    </p>
    ${part("Missing from the file", missing)}${part("Only in the file", more)}${part("Different shape", other)}
  </section>`
}
