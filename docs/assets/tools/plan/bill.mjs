// The bill of a token: seconds, joules and, at the reader's prices, money for a million of each kind.

import { M } from "../../engine/base.mjs"
import "../../engine/bill.mjs"
import { BOUNDS, grouped, Problem, py, seconds, shorten, wholeOrNothing, written } from "./fields.mjs"

const { bill, Prices, Request } = M["counting.bill"],
  { amount_of: amountOf, share, whole } = M["counting.asked"],
  MILLION = 1_000_000,
  SECONDS = 3600 // of an hour

export const SHARED = ["model", "on", "batch", "weights", "cache", "devices"]
export const DEFAULTS = {
  on: "h100",
  input: "1000",
  cached: "",
  output: "1000",
  utilization: "1",
  price_per_hour: "",
  purchase: "",
  years: "",
  electricity: "",
}
const MONEY = { inputmode: "decimal", placeholder: "your price" }
export const fields = () => [
  written("Input tokens", "input", { inputmode: "numeric" }),
  written("Cached before them", "cached", { inputmode: "numeric", placeholder: "none" }),
  written("Output tokens", "output", { inputmode: "numeric" }),
  written("Share of the bound", "utilization", { inputmode: "decimal" }),
  written("Price of a device and hour", "price_per_hour", MONEY),
  written("or of its purchase", "purchase", MONEY),
  written("over years", "years", { inputmode: "decimal", placeholder: "years" }),
  written("Price of a kWh", "electricity", MONEY),
]

/** @returns {import("../address.mjs").Rule} */
const amount = (/** @type {string} */ name) => text => {
  if (text) amountOf(name, text)
  return text
}
const tokens = (/** @type {string} */ name) => (/** @type {string} */ text) => {
  if (!/^\d+$/.test(text)) throw Problem(`${name} = ${shorten(text)}: expected a whole number`, "correct it")
  return String(whole(name, BigInt(text), BOUNDS.MOST_TOKENS))
}
/** @returns {Record<string, import("../address.mjs").Rule>} */
export const rules = () => ({
  input: tokens("input"),
  cached: wholeOrNothing("cached"),
  output: tokens("output"),
  utilization: text => {
    share("utilization", text)
    return text
  },
  price_per_hour: amount("price_per_hour"),
  purchase: amount("purchase"),
  years: amount("years"),
  electricity: amount("electricity"),
})

/**
 * The bill of the fields.
 * @param {Engine.Model} model
 * @param {Engine.Conditions} given
 * @param {Record<string, string>} state
 */
export function counted({ costs }, given, state) {
  const price = (/** @type {string} */ name) => (state[name] === "" ? null : amountOf(name, state[name]))
  const prices = Prices(...["price_per_hour", "purchase", "years", "electricity"].map(price)),
    request = Request(BigInt(state.input), BigInt(state.output), BigInt(state.cached || 0), given.batch)
  costs.devices.check_split(given)
  return bill(costs, given, request, share("utilization", state.utilization), prices)
}

const KINDS = { input: "Input", cached: "Cached input", output: "Output" }
const three = (/** @type {number} */ x) => (x >= 1000 ? grouped(BigInt(Math.round(x))) : x.toPrecision(3))
const hours = (/** @type {number} */ watts) => (watts < 1000 ? `${three(watts)} Wh` : `${three(watts / 1000)} kWh`)
const times = (/** @type {Engine.Exact} */ x) => py.float(x) * MILLION

/** @param {import("../plan.mjs").Asked} asked @returns {Promise<import("../plan.mjs").Answer>} */
export async function answer({ state, model, name, given, on }) {
  const found = counted(model, given, state),
    last = found.lines.at(-1),
    several = given.devices > 1n ? `${grouped(given.devices)} × ` : "",
    at = py.truth(py.eq(found.utilization, 1n)) ? "at the bound" : `at ${state.utilization} of the bound`,
    energy = (/** @type {Engine.Exact?} */ joules) => (joules === null ? "–" : hours(times(joules) / SECONDS)),
    money = (/** @type {Engine.Exact?} */ sum) => (sum === null ? "–" : three(times(sum)))
  const parts = [seconds(times(last.seconds)), ...(last.joules === null ? [] : [energy(last.joules)])],
    paid = last.money === null ? "" : ` and ${money(last.money)} at your prices`
  return {
    said: [
      `${name} ${model.counts.formats.phrase(given.format)} on ${several}${on.name}: ` +
        `a million output tokens take ${parts.join(", ")}${paid}`,
      [`, ${at} with ${grouped(given.batch)} at once.`].join(""),
    ],
    tables: [
      {
        caption: "A million tokens",
        head: ["Tokens", "#Computing", "#Moving bytes", "Bound by", "#Time", "#Energy", "#Money"],
        rows: found.lines.map((/** @type {any} */ line) => [
          KINDS[/** @type {keyof typeof KINDS} */ (line.name)],
          py.truth(line.compute_seconds) ? seconds(times(line.compute_seconds)) : "–",
          seconds(times(line.memory_seconds)),
          line.is_compute_bound ? "compute" : "memory",
          seconds(times(line.seconds)),
          energy(line.joules),
          money(line.money),
        ]),
      },
    ],
    notes: [
      "Time is of all devices together: the longer of computing and moving bytes. Programs reach a share of it.",
      found.watts === null
        ? "No source that was read states the power of this machine, so energy is left out."
        : `Energy is at the limit of the devices’ power, ${grouped(found.watts)} W, without CPUs and cooling.`,
      "Money is in the currency of your prices: a device by the hour, or bought for years, and electricity.",
    ],
  }
}
