// A model from the keys of a config.json, by the engine and the counting that the build compiled from Python.

import { M, MODULES, py } from "./engine/engine.mjs"

export { py }
export const FIGURES = M["counting.figures"].FIGURES, FORMATS = M["counting.formats"].FORMATS, CACHE_BYTES = M["counting.formats"].CACHE_BYTES
export const fieldsOf = M["engine.architectures.config"].fields_of
const { Problem } = M["engine.errors"], { ShapeError } = M["engine.rules"]

// Whether an error says what is wrong with a config; any other is a mistake in here.
export const isProblem = error => py.isinstance(error, [Problem, ShapeError])
export const said = error => (isProblem(error) ? py.str(error) : String(error?.message ?? error))

// The language model's keys of a config, and which parts were left out.
export const languagePart = raw => M["engine.keys"].language_part(raw)
export const WAYS = M["engine.ways"].WAYS
export const continued = M["engine.keys"].continued

// Loads the forward pass of a model type, once; says so where there is none.
export async function load(type) {
  if (typeof type !== "string") throw Problem("model_type is missing", 'add the published one, such as "llama"')
  if (!Object.hasOwn(MODULES, type)) throw Problem(`model_type = ${py.repr(type)} is not covered`, `${Object.keys(MODULES).length} are`)
  await import(`./engine/${MODULES[type]}.mjs`)
}

// A model by its keys; the forward pass of its type is loaded. Throws a problem that names the key.
export function model(raw) {
  const architecture = M["engine.architectures"]._registered.read(raw.read("model_type"))
  const [config, unknown] = architecture.config.read(raw)
  const counts = M["counting.parameters"].Counts(M["engine.forward"].trace(architecture, config))
  return { raw, config, unknown, counts, costs: M["counting.costs"].of(counts), architecture: architecture.name }
}

// Parameters of the embedding, of what mixes tokens, of the feed-forward parts, of norms and of the head.
export const categories = model => model.categories ??= [...M["counting.parts"].by_category(model.counts.parts).map.values()].map(([, n]) => n)

// The parts of a model as the area map has them, each with what it does; titles by the roles of steps, numbers written by `short` and `percent`.
export const treemap = M["views.treemap"]
export const groupsOf = (model, titles) => model.groups ??= M["counting.parts"].grouped(model.counts.parts, ({ role }) => titles.read(role) ?? py.str(role ?? "others").replaceAll("_", " "))
export const areasOf = (model, titles, short, percent) => model.areas ??= groupsOf(model, titles).map(group => {
  const tensors = group.weights.map(w => [w.name, py.int(w.count), py.int(w.active)]).map(([name, n, used]) =>
    treemap.Tensor(name.replace(/\.weight$/, "").split(".").at(-1), n, n ? Number(used) / Number(n) : 0, short(n)))
  const area = treemap.Area(group.title, BigInt(group.layers?.length ?? 0), group.count, short(group.count), percent(group.count, model.counts.total), tensors)
  return { area, category: group.parts[0].category.value }
})

// Every tensor of a model written out, name and shape; and the parts of names that some published files lack or add.
export const tensorsOf = model => [...model.counts.tensors(), ...model.counts.tensors(model.counts.buffers)].map(([name, shape]) => [name, shape.map(Number)])
export const spellingsOf = model => {
  const { stored_prefixes, spellings } = M["engine.architectures"]._registered.read(model.raw.read("model_type"))
  return { prefixes: [...stored_prefixes], parts: py.entries(spellings) }
}

export const accelerator = given => py.apply(M["counting.accelerators"].Accelerator, [], given)
export const conditions = given => py.apply(M["counting.figures"].Conditions, [], given)
export const figure = (model, name, given) => FIGURES.read(name).of(model.counts, given)
