// Builds a model from the keys of a config.json, with the engine and the counting that the build compiled from Python.

import { architectureOf, load, ofText, script } from "./architectures.mjs"
import { Problem, py } from "./conditions.mjs"
import { M } from "./engine/base.mjs"
import "./engine/counting.mjs"
import { MODULES } from "./engine/engine.mjs"

export { architectureOf, load } from "./architectures.mjs"
export * from "./conditions.mjs"
export const FIGURES = M["counting.figures"].FIGURES
export const fieldsOf = M["engine.architectures.config"].fields_of
export const continued = M["engine.keys"].continued

/** @returns {error is Engine.Problem} */
const isOneLine = (/** @type {unknown} */ error) => py.isinstance(error, [Problem])

/**
 * What makers call the class of a type with its own head; there once a config of a reader's own is.
 * @type {Engine.Dict<Engine.Json | undefined, string[]>}
 */
let classes
/**
 * Names that transformers still accepts.
 * @type {Engine.Keys}
 */
let there
async function loadHeads() {
  const loaded = await script("heads")
  classes = new py.Dict(Object.entries(loaded.CLASSES))
  there = loaded.THERE
  return M["engine.architectures.heads"]
}
/** Loads the rules for AMD Quark's files if the config names it. @param {Engine.Keys} raw */
async function loadQuark(raw) {
  const said = raw.read("quantization_config", null)
  if (said instanceof py.Dict && said.read("quant_method", null) === "quark") await script("quark")
}
const headOf = (/** @type {Engine.Architecture} */ architecture, /** @type {Engine.Keys} */ raw) =>
  raw.read("architectures", null) === null
    ? null
    : M["engine.architectures.heads"].find_head(architecture, raw, classes.read(raw.read("model_type"), []))

/**
 * The language model's keys in a user's config.json, once they are known to be countable; throws a problem if not.
 * @param {Engine.Keys} raw
 */
export async function described(raw) {
  const heads = await loadHeads()
  const [read, , strange] = heads.described(raw, [...MODULES], classes, there),
    type = read.read("model_type", null)
  try {
    if (typeof type === "string" && !ofText(type)) {
      await Promise.all([...new Set([...MODULES].map(name => MODULES.read(name))), "likeness"].map(script))
      throw M["engine.architectures.likeness"].unknown_type(read, M["engine.architectures"]._registered)
    }
    await load(type)
    await loadQuark(read)
    const keys = M["engine.architectures.otherwise"].with_rounded_head(read, architectureOf(read).rounds_heads),
      { sizes } = model(keys)
    if (strange === null || !sizes.length) return keys
    throw Problem(`unknown keys that name a size: ${sizes.map(name => py.repr(name)).join(", ")}`)
  } catch (error) {
    throw strange !== null && isOneLine(error) ? heads.of_whole(strange, type, error.what) : error
  }
}

/**
 * A file whose tensors decide about bytes: the keys that it has, as JSON, and its tensors by the weights of a trace.
 * @typedef {object} Stored
 * @property {number} id
 * @property {string} json
 * @property {(raw: Engine.Keys, trace: Engine.Trace) => Engine.FileWeights} weights
 */
/**
 * Builds a model from its keys, loading its type's forward pass. Throws a problem that names the key.
 * @param {Engine.Keys} raw
 * @param {Stored?} stored
 * @param {boolean} decides whether the sizes are those of the file
 * @returns {Engine.Model}
 */
export function model(raw, stored = null, decides = true) {
  const architecture = architectureOf(raw)
  const [config, unread] = architecture.config.read(raw),
    head = headOf(architecture, raw)
  const trace = M["engine.forward"].trace(architecture, config, head),
    file = stored?.weights(raw, trace),
    counts = M["counting.parameters"].Counts(trace, raw, architecture, ...(file ? [() => file] : []))
  if (file) file.decides = decides
  const sizes = M["engine.keys"].sizes_among(unread, raw),
    unknown = unread.filter(name => !sizes.includes(name))
  return {
    raw,
    config,
    head,
    file,
    sizes,
    unknown,
    otherwise: [...architecture.config.read_otherwise(raw)],
    counts,
    costs: M["counting.costs"].of(counts),
    architecture: architecture.name,
  }
}

// The context length that a model is made for, from its position table or its config; null if neither says.
export const madeFor = (/** @type {Engine.Model} */ { config, raw }) =>
  config.position_reach ?? M["counting.parameters"].stated_context(raw)

// Parameters of the embedding, of what mixes tokens, of the feed-forward parts, of norms and of the head.
export const categories = (/** @type {Engine.Model} */ model) =>
  (model.categories ??= [...M["counting.parts"].by_category(model.counts.parts).map.values()].map(([, n]) => n))

/** @typedef {Engine.Dict<string | null, string | undefined>} Titles by the roles of steps */
/**
 * The parts of a model, as the area map groups them.
 * @param {Engine.Model} model
 * @param {Titles} titles
 */
export const groupsOf = (model, titles) =>
  (model.groups ??= M["counting.parts"].grouped(
    model.counts.parts,
    ({ role }) => titles.read(role) ?? py.str(role ?? "others").replaceAll("_", " "),
  ))
/**
 * Every tensor of a model, with its full name and shape.
 * @param {Engine.Model} model
 * @returns {[name: string, shape: number[]][]}
 */
export const tensorsOf = model =>
  [...model.counts.tensors(), ...model.counts.tensors(model.counts.buffers)].map(([name, shape]) => [
    name,
    shape.map(Number),
  ])
/**
 * Maps a model's tensors to those of a file, however the file names and packs them.
 * @param {Engine.Model} model
 * @param {Map<string, number[] | null>} stored the names of a file's tensors, each with its shape or null
 */
export const layoutOf = ({ raw, config, head }, stored) => {
  const architecture = architectureOf(raw)
  /** @type {Engine.Dict<string, bigint[] | null>} */
  const shapes = new py.Dict()
  for (const [name, shape] of stored) shapes.put(name, shape && shape.map(BigInt))
  const renamed = M["engine.forward"].renaming(architecture, config, head)
  return M["engine.layouts"].Layout(architecture, shapes, renamed)
}

/**
 * @param {Engine.Model} model
 * @param {string} name
 * @param {Engine.Conditions} given
 * @returns {Engine.Exact | null} null where time is asked for of an amount of memory alone
 */
export const figure = (model, name, given) => {
  const known = FIGURES.read(name)
  return given.accelerator || !known.needs.includes("accelerator") ? known.of(model.counts, given) : null
}
