// The architectures that the build compiled from Python: the forward pass for each model type in a config.json.

import { M } from "./engine/base.mjs"
import { MODULES } from "./engine/engine.mjs"
import { Problem, py } from "./problems.mjs"

// The type that a model type is read as: for a multimodal model, the type of its text model.
export const ofText = (/** @type {unknown} */ type) => [`${type}`, `${type}_text`].find(name => MODULES.has(name))
// The architecture of a config's keys; its forward pass is loaded.
export const architectureOf = (/** @type {Engine.Keys} */ raw) =>
  M["engine.architectures"]._registered.read(ofText(raw.read("model_type")))
export const script = (/** @type {string} */ name) => import(`./engine/${name}.mjs`)

// Loads a model type's forward pass once; throws if there is none.
export async function load(/** @type {unknown} */ type) {
  if (typeof type !== "string") throw Problem("model_type is missing", 'add the published one, such as "llama"')
  const known = ofText(type)
  if (!known) throw Problem(`model_type = ${py.repr(type)} is not known`, `${[...MODULES].length} are`)
  await script(MODULES.read(known))
}
