// The area map of a model at any width and with any layers, counted and laid out by the compiled functions of the page.

import { M } from "../../engine/base.mjs"
import "../../engine/bar_values.mjs"
import "../../engine/memory_areas.mjs"
import "../../engine/treemap.mjs"
import { py } from "../../problems.mjs"
import { bytes, grouped, percent, short } from "../figures.mjs"

const { evaluate } = M["views.charts.bar_values"],
  { Device, device_for: deviceFor } = M["views.charts.memory_areas"],
  { Area, drawn, USED } = M["views.charts.treemap"]
export const WIDTH = 260,
  HEIGHT = 200,
  OPACITY = USED

/**
 * @typedef {[title: string, colour: string, isInLayers: boolean, formula: unknown]} Part
 * @typedef {ReturnType<typeof drawn>[0] & { colour: string, said: string }} Area
 * @typedef {{ title: string, areas: Area[], was: number, isChosen: boolean }} Panel with the side of the published map,
 *   1 for the largest
 */
const titled = (/** @type {bigint[]} */ [width, layers]) =>
  `Width ${grouped(width)}, ${layers} layer${layers > 1n ? "s" : ""}`
const side = (/** @type {bigint} */ n, /** @type {bigint} */ most) => Math.sqrt(Number(n) / Number(most))

/**
 * @param {DOMStringMap} page
 * @param {number[]} chosen width and layers
 * @returns {{ said: string, panels: Panel[] }}
 */
export function answer({ devices = "", parts = "", start = "", states = "" }, chosen) {
  /** @type {number[][]} */
  const shown = JSON.parse(states),
    /** @type {Part[]} */
    data = /** @type {any} */ (py.parse(parts)),
    /** @type {[string, bigint][]} */
    listed = /** @type {any} */ (py.parse(devices)),
    middle = Math.floor(shown.length / 2)
  const counted = (/** @type {number[]} */ of) => {
    const state = of.map(BigInt),
      counts = data.map(([, , , formula]) => evaluate(formula, state))
    return { state, counts, total: counts.reduce((a, b) => a + b, 0n) }
  }
  const all = shown.map((state, i) => counted(i === middle ? chosen : state)),
    most = all.map(one => one.total).reduce((a, b) => (a > b ? a : b)),
    was = Math.min(1, side(counted(JSON.parse(start)).total, most))
  const panels = all.map(({ state, counts, total }, i) => {
    const made = data.map(([name, , isInLayers], i) =>
        Area(name, isInLayers ? state[1] : 0n, counts[i], short(counts[i]), percent(counts[i], total), []),
      ),
      of = side(total, most)
    const areas = drawn(made, [0, 0, WIDTH * of, HEIGHT * of]).map(one => {
      const n = Number(one.place),
        [name, colour] = data[n]
      return Object.assign(one, { colour, said: `${name}: ${grouped(counts[n])} parameters` })
    })
    return { title: `${titled(state)}: ${short(total)}`, areas, was, isChosen: i === middle }
  })
  const { state, total } = all[middle],
    held = listed.map(([name, memory]) => Device(name, memory)),
    machine = deviceFor(2n * total, held),
    on = machine
      ? `${machine.name} is the smallest of five machines that holds them`
      : "none of five machines holds them"
  const said = `${titled(state)}: ${grouped(total)} parameters are ${bytes(2n * total)} in bfloat16: ${on}.`
  return { said, panels }
}
