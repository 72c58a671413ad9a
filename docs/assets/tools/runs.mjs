// Which formats of weights an engine runs on a machine: by the tables of the engine, compiled from Python and loaded
// where a machine may not run every format: NVIDIA's run all from compute capability 8.0 on.

import { M } from "../engine/base.mjs"
import { WEIGHTS } from "../conditions.mjs"

const mayLack = (/** @type {Engine.Accelerator | null | undefined} */ one) =>
  one?.vendor && (one.vendor !== "NVIDIA" || (one.capability ?? 0n) < 80n)
const leftOut = (/** @type {Parameters<typeof M["counting.runs"]["left_out"]>} */ ...asked) =>
  M["counting.runs"]?.left_out(...asked)
const { FLOATS } = M["counting.formats"]
/**
 * Whether a model's weights are floats of 16 or 32 bits, which run everywhere.
 * @param {Engine.Costs} costs
 * @param {Engine.Conditions} given
 */
export const isPlain = ({ published }, { format }) =>
  FLOATS.includes(format) || (format === "published" && ![...published].length)
/**
 * Loads the tables, if a machine or one engine alone may not run every format.
 * @param {Engine.Accelerator | null} accelerator
 * @param {boolean} isOfEngine
 */
export async function loadRuns(accelerator, isOfEngine = false) {
  if (isOfEngine || mayLack(accelerator)) await import("../engine/runs.mjs")
}
/**
 * Why an engine, or any engine, does not run a model's weights there, as a sentence after a space; "" if one does.
 * @param {Engine.Costs} costs
 * @param {Engine.Conditions} given
 * @param {string} [engine] as the tables call it
 */
export function notRun({ published }, { format, accelerator }, engine = "") {
  const said = leftOut(format, accelerator, engine, published)
  return said ? ` ${said}` : ""
}
/**
 * The formats to choose from on a machine; one that is chosen and that no engine runs there says so.
 * @param {Engine.Accelerator | null} accelerator
 * @param {string} chosen
 * @returns {[name: string, said: string][]}
 */
export const offered = (accelerator, chosen) =>
  [...WEIGHTS].slice(1).flatMap(one => {
    if (!mayLack(accelerator) || !leftOut(one, accelerator)) return [[one, one]]
    return one === chosen ? [[one, `${one}, not run there`]] : []
  })
