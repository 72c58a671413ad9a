// Does it fit: what weights and cache take against the context, by the functions of the page's own drawing, compiled.

import { M } from "../../engine/base.mjs"
import "../../engine/memory_areas.mjs"
import { py } from "../../problems.mjs"
import { bytes, grouped } from "../figures.mjs"

const areas = M["views.charts.memory_areas"],
  { longest_context: longestContext } = M["counting.capacity"]
export const { HEIGHT, WIDTH } = areas

/** @typedef {{ title: string, of: string, areas: Engine.MemoryPanel }} Panel of one weight format */

/**
 * @param {DOMStringMap} of the page: its models and devices
 * @param {number} n the place of the model among them
 * @param {number} context of each user
 * @param {bigint} users
 * @returns {{ said: string, panels: Panel[] }}
 */
export function answer({ models = "", devices = "" }, n, context, users) {
  /** @type {[string, string, bigint, [string, bigint][], any, any][]} */
  const known = /** @type {any} */ (py.parse(models)),
    /** @type {[string, bigint][]} */
    listed = /** @type {any} */ (py.parse(devices))
  const [, name, longest, weights, kept, operations] = known[n],
    at = BigInt(context),
    held = listed.map(([title, memory]) => areas.Device(title, memory)),
    sizes = weights.map(([, n]) => n),
    now = areas.cache_bytes(kept, at, users)
  const verdict = (/** @type {string} */ format, /** @type {bigint} */ n) => {
    const device = areas.device_for(n, held)
    if (!device) return `${format}: on none of these devices`
    const most = longestContext(kept, operations, device.memory - n, users, 2n, longest),
      each = users > 1n ? " for each user" : ""
    return `${format}: ${device.name} holds ${most === longest ? "all " : ""}${grouped(most)} tokens${each}`
  }
  return {
    said:
      `${name}, ${users === 1n ? "1 user" : `${users} users`}, ${grouped(at)} tokens: ` +
      `${bytes(sizes[0])} of weights (${weights[0][0]}) and ${bytes(now)} of cache are ${bytes(sizes[0] + now)}.`,
    panels: areas
      .panels(kept, sizes, users, longest, at, held)
      .map((panel, i) => ({ title: verdict(...weights[i]), of: `${name}, ${weights[i][0]}`, areas: panel })),
  }
}
