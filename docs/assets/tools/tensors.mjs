// The tensors of a published file held against those that a config gives, name by name and, where the file says them, shape by shape.

import { spellingsOf, tensorsOf } from "../model.mjs"
import { grouped, make } from "./kit.mjs"

const MOST_NAMES = 20

// The names of a list, each with its shape or null: an index, or the header of a .safetensors file.
export async function tensorList(file) {
  if (file.name.endsWith(".safetensors")) {
    const length = Number(new DataView(await file.slice(0, 8).arrayBuffer()).getBigUint64(0, true))
    if (length > 1e8) throw new Error("this is no safetensors file: its header would be too long")
    const header = JSON.parse(await file.slice(8, 8 + length).text())
    return new Map(Object.entries(header).filter(([name]) => name !== "__metadata__").map(([name, { shape }]) => [name, shape]))
  }
  const { weight_map } = JSON.parse(await file.text())
  if (!weight_map) throw new Error("weight_map is missing: expected a model.safetensors.index.json")
  return new Map(Object.keys(weight_map).map(name => [name, null]))
}

// Published files put a part's name in front, or leave one out: the spelling with the most tensors in common counts.
function spelled(model, listed, ours) {
  const { prefixes, parts } = spellingsOf(model)
  const ways = [name => name, name => name.replace(/^language_model\./, ""), name => name.replace(/^model\.language_model\./, "model."), name => name.replace(/^language_model\.model\./, "model."), ...prefixes.map(p => name => p + name), ...parts.map(([here, there]) => name => name.replace(there, here))]
  const inCommon = way => [...listed.keys()].reduce((n, name) => n + ours.has(way(name)), 0)
  const best = ways.map(way => [inCommon(way), way]).reduce((a, b) => b[0] > a[0] ? b : a)[1]
  return new Map([...listed].map(([name, shape]) => [best(name), { name, shape }]))
}

export function reconciled(model, listed) {
  const ours = new Map(tensorsOf(model)), theirs = spelled(model, listed, ours)
  const missing = [...ours.keys()].filter(name => !theirs.has(name)), more = [...theirs].filter(([name]) => !ours.has(name)).map(([, t]) => t.name)
  const other = [...ours].filter(([name, shape]) => theirs.get(name)?.shape && theirs.get(name).shape.join() !== shape.join()).map(([name, shape]) => `${name}: [${theirs.get(name).shape.join(", ")}] and not [${shape.join(", ")}]`)
  const part = (title, names) => names.length ? make("details", { open: true }, make("summary", {}, `${title}: ${grouped(BigInt(names.length))}`), make("ul", {}, names.slice(0, MOST_NAMES).map(n => make("li", {}, make("code", {}, n))), names.length > MOST_NAMES ? make("li", {}, `and ${grouped(BigInt(names.length - MOST_NAMES))} more`) : null)) : null
  return make("section", { class: "ep-reconciled", "aria-label": "The file’s tensors" },
    make("p", {}, make("strong", {}, `${grouped(BigInt(ours.size - missing.length))} of ${grouped(BigInt(ours.size))} tensors of the config are in the file`), missing.length || more.length || other.length ? ":" : ", and no others."),
    part("Not in the file", missing), part("Only in the file", more), part("Of another shape", other))
}
