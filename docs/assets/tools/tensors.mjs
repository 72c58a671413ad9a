// The tensors of a published file held against those that a config gives, name by name and, where the file says them,
// shape by shape.

import { BOUNDS, layoutOf, named, Problem, tensorsOf, textOf } from "../model.mjs"
import { entriesOf, headerOf, isTable, shapeOf } from "../safetensors.mjs"
import { grouped, make } from "./kit.mjs"

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
  const part = (/** @type {string} */ title, /** @type {string[]} */ names) =>
    names.length
      ? make(
          "details",
          { open: true },
          make("summary", {}, `${title}: ${grouped(BigInt(names.length))}`),
          make(
            "ul",
            {},
            names.slice(0, MOST_NAMES).map(n => make("li", {}, make("code", {}, named(n, 300n)))),
            names.length > MOST_NAMES ? make("li", {}, `and ${grouped(BigInt(names.length - MOST_NAMES))} more`) : null,
          ),
        )
      : null
  return make(
    "section",
    { class: "ep-reconciled", "aria-label": "The file’s tensors" },
    make(
      "p",
      {},
      make(
        "strong",
        {},
        `${grouped(BigInt(ours.length - missing.length))} of ${grouped(BigInt(ours.length))} tensors of this config `,
        "are in the file",
      ),
      missing.length || more.length || other.length ? ":" : ", which has no others.",
    ),
    part("Missing from the file", missing),
    part("Only in the file", more),
    part("Different shape", other),
  )
}
