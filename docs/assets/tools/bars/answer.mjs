// Bars to one scale: the values of the page's own figure, by the same compiled functions.

import { M } from "../../engine/base.mjs"
import "../../engine/bar_values.mjs"
import { py } from "../../problems.mjs"
import { bytes, flops, grouped, seconds, short } from "../figures.mjs"

const { bars, largest } = M["views.charts.bar_values"]

/**
 * @typedef {[title: string, colour: string, shape: string]} Kind
 * @typedef {[name: string, stops: number[], start: number]} Size
 * @typedef {{ kind: number, start: string, width: string, said: string }} Segment
 * @typedef {{ label: string, value: string, segments: Segment[] }} Bar
 * @typedef {{ state: bigint | undefined, isChosen: boolean, bars: Bar[] }} Panel at a state of the first size
 */

/** @param {string} unit @param {boolean} isExact @returns {(n: bigint) => string} */
function writer(unit, isExact) {
  if (unit === "bytes") return bytes
  if (unit === "FLOPs") return flops
  if (unit === "nanoseconds") return n => seconds(Number(n) / 1e9)
  return unit === "parameters" && !isExact ? short : grouped
}
const share = (/** @type {number} */ n) => `${n.toFixed(2)}%`

/**
 * @param {DOMStringMap} page
 * @param {number} n the place of the model among those of the page
 * @param {Record<string, string>} chosen by the names of the sizes
 * @returns {{ said: string, panels: Panel[], lines: string[] }} what is said of the chosen bars, and where lines cross
 */
export function answer({ kinds = "", lines = "", models = "", states = "", stops = "", unit = "" }, n, chosen) {
  /** @type {Kind[]} */
  const looks = JSON.parse(kinds),
    /** @type {Size[]} */
    sizes = JSON.parse(stops),
    /** @type {number[]} */
    drawn = JSON.parse(states),
    /** @type {[string, bigint][]} */
    cards = /** @type {any} */ (py.parse(lines)),
    rows = /** @type {any} */ (py.parse(models))[n][2]
  const given = sizes.map(([size]) => BigInt(chosen[size])),
    longest = largest(rows, (sizes[0]?.[1] ?? []).map(BigInt), given),
    most = [longest, ...cards.map(([, n]) => n).filter(n => n <= 2n * longest)].reduce((a, b) => (a > b ? a : b)),
    [write, exactly] = [writer(unit, false), writer(unit, true)],
    middle = Math.floor(drawn.length / 2)
  const segment = (/** @type {Engine.Bar["segments"][0]} */ { kind, amount, start, width }) => ({
    ...{ kind: Number(kind), start: share(start), width: share(width) },
    said: `${looks[Number(kind)][0]}: ${write(amount)}`,
  })
  const panel = (/** @type {bigint[]} */ state, isChosen = true) => ({
    ...{ state: drawn.length ? state[0] : undefined, isChosen },
    bars: bars(rows, state, most).map(({ label, total, segments }) => {
      return { label, value: write(total), segments: segments.filter(({ amount }) => amount).map(segment) }
    }),
  })
  const now = bars(rows, given, most),
    [{ segments, total }] = now
  const parts = segments.map(({ kind, amount }) => `${looks[Number(kind)][0]} ${exactly(amount)}`)
  return {
    said:
      now.length === 1 && segments.length > 1
        ? [...parts, `together ${exactly(total)}`].join("; ")
        : now.map(one => `${one.label} ${exactly(one.total)}`).join("; "),
    panels: drawn.length
      ? drawn.map((state, i) => (i === middle ? panel(given) : panel([BigInt(state), ...given.slice(1)], false)))
      : [panel(given)],
    lines: cards.filter(([, n]) => n <= most).map(([, n]) => share((100 * Number(n)) / Number(most))),
  }
}
