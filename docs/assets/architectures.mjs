// The architectures that the build compiled from Python: what a config.json says, and the forward pass of its type.

import { M, MODULES, py } from "./engine/engine.mjs"

export { py }
export const { Problem } = M["engine.errors"]
const { LARGEST_TEXT } = M["engine.bounds"]

/**
 * JSON from elsewhere; throws a problem, as the command line says it.
 * @param {string} source
 */
export function parsed(source) {
  const { whole, special_float, check_data } = M["engine.json_data"]
  if (source.length > LARGEST_TEXT) throw tooLarge(source.length, LARGEST_TEXT)
  let value
  try {
    value = py.parse(source, { whole, table: special_float })
  } catch (error) {
    throw error instanceof SyntaxError ? Problem(error.message, "check it") : error
  }
  check_data(value)
  return value
}
export function tooLarge(/** @type {number} */ size, /** @type {bigint} */ most) {
  const [bytes, limit] = [BigInt(size), most].map(n => py.format(n, ","))
  return Problem(`cannot be read: it has ${bytes} bytes, more than ${limit}`, "check the file")
}

// The type that a model type is read as: a multimodal model's is that of its text.
export const ofText = (/** @type {unknown} */ type) =>
  [`${type}`, `${type}_text`].find(name => Object.hasOwn(MODULES, name))
// The architecture of a config's keys; its forward pass is loaded.
export const architectureOf = (/** @type {Engine.Keys} */ raw) =>
  M["engine.architectures"]._registered.read(ofText(raw.read("model_type")))
export const script = (/** @type {string} */ name) => import(`./engine/${name}.mjs`)

// Loads the forward pass of a model type, once; says so where there is none.
export async function load(/** @type {unknown} */ type) {
  if (typeof type !== "string") throw Problem("model_type is missing", 'add the published one, such as "llama"')
  const known = ofText(type)
  if (!known) throw Problem(`model_type = ${py.repr(type)} is not known`, `${Object.keys(MODULES).length} are`)
  await script(MODULES[known])
}
