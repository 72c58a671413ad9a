// Answers a question about a model: the engine's part of answers.mjs.

import { M } from "../engine/base.mjs"
import "../engine/answering.mjs"
import { continued, fieldsOf, isProblem, loadFormats, machine, model as modelFrom, py, said } from "../model.mjs"
import { about, bytes, data, flops, modelOf, short } from "../tools/figures.mjs"

const BEST_OF = "Q4_K_M" // one of the formats that are tried where another does not fit
const { agreed, answered, OF_TIME, USUAL_MACHINE, Writing } = M["counting.answering"]

/**
 * The model with the question's changes.
 * @param {Engine.Keys} keys
 * @param {Engine.Asked["changes"]} changes
 */
async function changed(keys, changes) {
  const base = await modelOf(keys)
  if (!changes.length) return base
  const made = new py.Dict(py.entries(keys))
  const known = [...fieldsOf(py.type(base.config))]
  for (const [size, key, wanted] of changes) {
    if (size === "n_layers")
      for (const [k, v] of py.entries(made)) made.put(k, continued(v, base.config.symbols.read("n_layers"), wanted))
    for (const spelling of known.find(field => field.key === key)?.also ?? []) made.map.delete(spelling)
    made.put(key, wanted)
  }
  return modelFrom(made)
}

/**
 * The answer, with an error message in place of its sentence if the question is invalid.
 * @param {Engine.Asked} asked
 * @returns {Promise<Pick<Engine.Answer, "said" | "format"> & { title?: string }>}
 */
async function computed(asked) {
  try {
    return await counted(asked)
  } catch (error) {
    if (isProblem(error)) return { said: said(error), format: null }
    throw error
  }
}

/**
 * The answers, one for each model that is asked for, or the one that all of them share.
 * @param {Engine.Asked[]} asked
 */
export async function allComputed(asked) {
  const answers = await Promise.all(asked.map(computed))
  const whole = answers.flatMap(one => (one.title === undefined ? [] : [{ ...one, title: one.title }]))
  const one =
    whole.length === answers.length
      ? agreed(
          whole,
          asked.map(({ title }) => title),
        )
      : null
  return one ? [one] : answers
}

/** @returns {Promise<Engine.Answer>} */
async function counted(/** @type {Engine.Asked} */ asked) {
  const [{ accelerators }, file] = await Promise.all([
    data(),
    about(asked.slug),
    loadFormats(asked.on ? BEST_OF : (asked.format ?? "")),
  ])
  const one = await changed(file.keys, asked.changes),
    on = asked.on ?? (OF_TIME.includes(asked.what ?? "") ? USUAL_MACHINE : null),
    place = on === null ? null : machine(on, accelerators)
  return answered(asked, one.counts, one.config, file.context ?? null, place, Writing(bytes, short, flops))
}
