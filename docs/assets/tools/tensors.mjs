// The tensors of a published file held against those that a config gives, name by name and, where the file says them,
// shape by shape.

import { spellingsOf, tensorsOf } from "../model.mjs"
import { grouped, make } from "./kit.mjs"

const MOST_NAMES = 20

/** @typedef {Map<string, number[] | null>} Tensors the names of a list, each with its shape or null */

/**
 * Of an index, or of the header of a .safetensors file.
 * @param {File} file
 * @returns {Promise<Tensors>}
 */
export async function tensorList(file) {
  if (file.name.endsWith(".safetensors")) {
    const length = Number(new DataView(await file.slice(0, 8).arrayBuffer()).getBigUint64(0, true))
    if (length > 1e8) throw new Error("this is no safetensors file: its header would be too long")
    /** @type {Record<string, { shape: number[] }>} */
    const header = JSON.parse(await file.slice(8, 8 + length).text())
    return new Map(
      Object.entries(header)
        .filter(([name]) => name !== "__metadata__")
        .map(([name, { shape }]) => [name, shape]),
    )
  }
  const { weight_map } = JSON.parse(await file.text())
  if (!weight_map) throw new Error("weight_map is missing: expected a model.safetensors.index.json")
  return new Map(Object.keys(weight_map).map(name => [name, null]))
}

/**
 * Published files put a part's name in front, or leave one out: the spelling with the most tensors in common counts.
 * @param {Engine.Model} model
 * @param {Tensors} listed
 * @param {Tensors} ours
 */
function spelled(model, listed, ours) {
  const { prefixes, parts } = spellingsOf(model)
  /** @type {((name: string) => string)[]} */
  const ways = [
    name => name,
    name => name.replace(/^language_model\./, ""),
    name => name.replace(/^model\.language_model\./, "model."),
    name => name.replace(/^language_model\.model\./, "model."),
    ...prefixes.map(p => (/** @type {string} */ name) => p + name),
    ...parts.map(
      ([here, there]) =>
        (/** @type {string} */ name) =>
          name.replace(there, here),
    ),
  ]
  const inCommon = (/** @type {typeof ways[number]} */ way) =>
    [...listed.keys()].filter(name => ours.has(way(name))).length
  const best = ways.map(way => ({ way, n: inCommon(way) })).reduce((a, b) => (b.n > a.n ? b : a)).way
  return new Map([...listed].map(([name, shape]) => [best(name), { name, shape }]))
}

/**
 * @param {Engine.Model} model
 * @param {Tensors} listed
 */
export function reconciled(model, listed) {
  const ours = new Map(tensorsOf(model)),
    theirs = spelled(model, listed, ours)
  const missing = [...ours.keys()].filter(name => !theirs.has(name)),
    more = [...theirs].filter(([name]) => !ours.has(name)).map(([, t]) => t.name)
  const other = [...ours].flatMap(([name, shape]) => {
    const its = theirs.get(name)?.shape
    return its && its.join() !== shape.join() ? [`${name}: [${its.join(", ")}] and not [${shape.join(", ")}]`] : []
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
            names.slice(0, MOST_NAMES).map(n => make("li", {}, make("code", {}, n))),
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
        `${grouped(BigInt(ours.size - missing.length))} of ${grouped(BigInt(ours.size))} tensors of the config `,
        "are in the file",
      ),
      missing.length || more.length || other.length ? ":" : ", and no others.",
    ),
    part("Not in the file", missing),
    part("Only in the file", more),
    part("Of another shape", other),
  )
}
