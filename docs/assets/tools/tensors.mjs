// The tensors of a published file held against those that a config gives, name by name and, where the file says them,
// shape by shape.

import { BOUNDS, layoutOf, named, Problem, tensorsOf, textOf } from "../model.mjs"
import { grouped, make, said } from "./kit.mjs"

const MOST_NAMES = 20

/** @typedef {Map<string, number[] | null>} Tensors the names of a list, each with its shape or null */

/**
 * Of an index, or of the header of a .safetensors file, of which no more is read; throws a problem.
 * @param {File} file
 * @returns {Promise<Tensors>}
 */
export async function tensorList(file) {
  if (file.name.endsWith(".safetensors")) {
    const text = await headerOf(file),
      listed = entriesOf(text, "has no valid header").filter(([name]) => name !== "__metadata__")
    return new Map(listed.map(([name, tensor]) => [name, shapeOf(name, tensor)]))
  }
  const index = new Map(entriesOf(await textOf(file, BOUNDS.LARGEST_INDEX), "is not an index of tensors")),
    map = index.get("weight_map")
  if (!isTable(map)) throw Problem("weight_map is missing", "give a model.safetensors.index.json")
  return new Map(Object.keys(map).map(name => [name, null]))
}

async function headerOf(/** @type {File} */ file) {
  if (file.size < 8) throw Problem("is too short to have a header", "give a safetensors file")
  const length = new DataView(await file.slice(0, 8).arrayBuffer()).getBigUint64(0, true)
  if (length > BOUNDS.LARGEST_HEADER)
    throw Problem(`has a header of ${grouped(length)} bytes, which is too large`, "give a safetensors file")
  if (file.size < length + 8n)
    throw Problem(`ends within its header, which has ${grouped(length)} bytes`, "download the whole header")
  return textOf(file.slice(8, 8 + Number(length)), BOUNDS.LARGEST_HEADER)
}

/** @returns {value is Record<string, unknown>} */
const isTable = (/** @type {unknown} */ value) => typeof value === "object" && value !== null && !Array.isArray(value)

/**
 * @param {string} text
 * @param {string} otherwise what is said of a text that is no table
 * @returns {[string, unknown][]}
 */
function entriesOf(text, otherwise) {
  /** @type {unknown} */
  let table
  try {
    table = JSON.parse(text)
  } catch (error) {
    throw Problem(`${otherwise}: ${said(error)}`, "choose another file")
  }
  if (!isTable(table)) throw Problem(otherwise, "choose another file")
  return Object.entries(table)
}

/**
 * @param {string} name
 * @param {unknown} tensor
 * @returns {number[]}
 */
function shapeOf(name, tensor) {
  const shape = isTable(tensor) ? tensor.shape : null
  if (Array.isArray(shape) && shape.length <= BOUNDS.MOST_AXES && shape.every(n => Number.isSafeInteger(n) && n >= 0))
    return shape
  throw Problem(`${named(name)} has no valid shape`, "give a safetensors file")
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
