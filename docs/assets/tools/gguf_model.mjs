// The model of a GGUF file's header: its config, and the tensors that llama.cpp's converter makes of one. Nothing of a
// page, so that a worker can load it.

import { load } from "../architectures.mjs"
import { M } from "../engine/base.mjs"
import "../engine/gguf_config.mjs"
import { architectureOf, loadGguf, Problem, py, shorten } from "../model.mjs"
import { fetched } from "./figures.mjs"

/**
 * The config of a file, by its metadata and tensors; throws a problem.
 * @param {Engine.Gguf} gguf
 * @returns {Promise<Engine.Keys>}
 */
export async function configOf(gguf) {
  const /** @type {Engine.Dict<string, string[]>} */ known = (await fetched("gguf_types.json")).read("types"),
    types = known.read(gguf.architecture, [])
  if (!types.length) {
    const what = `general.architecture = ${shorten(gguf.architecture)}: no rules are known for it`
    throw Problem(what, "the coverage page lists those that are")
  }
  await Promise.all([loadGguf(), ...types.map(load)])
  return M["catalogue.gguf_config"].config_of(gguf, types)
}
/** The tensors of a model's file, by its config and weights. @param {Engine.Keys} raw @param {Engine.Trace} trace */
export const madeOf = (raw, { weights, symbols }) =>
  M["counting.gguf"].GgufFile(
    py.entries(weights).map(([, weight]) => weight),
    architectureOf(raw).gguf,
    raw.read("model_type"),
    symbols,
  )
/**
 * Throws a problem if the numbers of a type's files were not held against a checkpoint's.
 * @param {unknown} type
 */
export async function checkCompared(type) {
  const /** @type {unknown[]} */ compared = (await fetched("gguf_types.json")).read("compared")
  if (compared.includes(type)) return
  const what = `the numbers of ${shorten(type)} in GGUF files were not compared with a checkpoint's`
  throw Problem(what, "run the maker's safetensors")
}
