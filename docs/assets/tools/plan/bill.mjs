// The bill of a token: seconds, joules and, at the reader's prices, money for a million of each kind.

import { M } from "../../engine/base.mjs"
import "../../engine/bill.mjs"
import {
  BOUNDS,
  changed,
  checked,
  choice,
  grouped,
  Problem,
  py,
  seconds,
  several,
  shorten,
  wholeOrNothing,
  written,
} from "./fields.mjs"

const { bill, Prices, Request } = M["counting.bill"],
  { amount_of: amountOf, share, whole } = M["counting.asked"],
  MILLION = 1_000_000,
  SECONDS = 3600 // of an hour

export const SHARED = ["model", "on", "batch", "weights", "cache", "devices"]
export const START = { on: "h100" }
// Engines whose memory on one device is counted for these conditions.
const ENGINES = ["any", "vllm", "llama.cpp", "transformers", "mlx"]
const titled = (/** @type {string} */ name) => (name === "vllm" ? "vLLM" : name === "mlx" ? "MLX" : name)
const numeric = { inputmode: "numeric" },
  decimal = { inputmode: "decimal" },
  price = { ...decimal, placeholder: "your price" }
const amount = checked((name, text) => text && amountOf(name, text))
const tokens = (/** @type {string} */ name) => (/** @type {string} */ text) => {
  if (!/^\d+$/.test(text)) throw Problem(`${name} = ${shorten(text)}: expected a whole number`, "correct it")
  return String(whole(name, BigInt(text), BOUNDS.MOST_TOKENS))
}
export const fields = () => [
  written("Input tokens", "input", tokens, numeric, "1000"),
  written("Cached before them", "cached", wholeOrNothing, { ...numeric, placeholder: "none" }),
  written("Output tokens", "output", tokens, numeric, "1000"),
  written("Share of the bound", "utilization", checked(share), decimal, "1"),
  written("Price of a device and hour", "price_per_hour", amount, price),
  written("or of its purchase", "purchase", amount, price),
  written("over years", "years", amount, { ...decimal, placeholder: "years" }),
  written("Price of a kWh", "electricity", amount, price),
  choice("Engine", "engine", ENGINES, "any", "engine", titled),
]
/** An engine is counted on one device. @param {import("../plan.mjs").State} state */
export const idle = ({ devices }) => (devices === "1" ? [] : ["engine"])

/**
 * The bill of the fields; without a utilization, at the one that is typed.
 * @param {Engine.Model} model
 * @param {Engine.Conditions} given
 * @param {Record<string, string>} state
 * @param {Engine.Exact} [reached]
 */
export function counted({ costs }, given, state, reached) {
  const prices = pricesOf(state),
    request = Request(BigInt(state.input), BigInt(state.output), BigInt(state.cached || 0), given.batch)
  costs.devices.check_split(given)
  return bill(costs, given, request, reached ?? share("utilization", state.utilization), prices)
}
/** @param {Record<string, string>} state */
function pricesOf(state) {
  const price = (/** @type {string} */ name) => (state[name] === "" ? null : amountOf(name, state[name]))
  return Prices(...["price_per_hour", "purchase", "years", "electricity"].map(price))
}

/**
 * What bounds the requests: as many at once as the engine is certain to hold, in the conditions, and that in words.
 * @param {import("../plan.mjs").Asked} asked
 * @returns {Promise<[given: Engine.Conditions, said: string]>}
 */
async function held({ state, model, given, on }) {
  if (state.engine === "any" || given.devices > 1n) return [given, ""]
  const engine = titled(state.engine),
    end = BigInt(state.input) + BigInt(state.output) + BigInt(state.cached || 0),
    most = await (await import("./engine.mjs")).largest(model, changed(given, { context: end }), on, state.engine)
  if (most === null || most >= given.batch) return [given, ` ${engine} holds them.`]
  if (!most) return [given, ` ${engine} is not certain to hold one request.`]
  return [
    changed(given, { batch: most }),
    ` ${engine} is certain to hold no more than these, not ${grouped(given.batch)}.`,
  ]
}
/**
 * @typedef {object} Run a published one
 * @property {string} model
 * @property {string} machine
 * @property {string} engine
 * @property {number} devices
 * @property {string} format
 * @property {string | null} batch
 * @property {number | null} watts
 * @property {[number, number]} rate output tokens per second
 * @property {string} share of the bound
 * @property {string} source
 */
/** @type {Promise<Run[]> | undefined} */
let published
/** The published runs of a model on a machine. @param {Record<string, string>} state @returns {Promise<Run[]>} */
async function runsOf({ model, on, engine }) {
  published ??= fetch(new URL("../../engine/served.json", import.meta.url)).then(answer => answer.json())
  const isOf = (/** @type {Run} */ run) => engine === "any" || run.engine.toLowerCase().startsWith(engine)
  return (await published).filter(run => run.model === model && run.machine === on && isOf(run))
}

const KINDS = { input: "Input", cached: "Cached input", output: "Output" }
const three = (/** @type {number} */ x) => (x >= 1000 ? grouped(BigInt(Math.round(x))) : x.toPrecision(3))
const hours = (/** @type {number} */ watts) => (watts < 1000 ? `${three(watts)} Wh` : `${three(watts / 1000)} kWh`)
const times = (/** @type {Engine.Exact} */ x) => py.float(x) * MILLION
const energy = (/** @type {Engine.Exact?} */ joules) => (joules === null ? "–" : hours(times(joules) / SECONDS))
const money = (/** @type {Engine.Exact?} */ sum) => (sum === null ? "–" : three(times(sum)))

/** @param {import("../plan.mjs").Asked} asked @returns {Promise<import("../plan.mjs").Answer>} */
export async function answer(asked) {
  const { state, model, name, on } = asked,
    [[given, bounded], runs] = await Promise.all([held(asked), runsOf(state)]),
    found = counted(model, given, state),
    last = found.lines.at(-1),
    isBound = py.truth(py.eq(found.utilization, 1n)),
    at = isBound ? "at the bound" : `at ${state.utilization} of the bound`,
    atShare = (/** @type {string} */ reached) => counted(model, given, state, share("utilization", reached))
  const parts = [seconds(times(last.seconds)), ...(last.joules === null ? [] : [energy(last.joules)])],
    paid = last.money === null ? "" : ` and ${money(last.money)} at your prices`
  return {
    said: [
      `${name} ${model.counts.formats.phrase(given.format)} on ${several(given, on)}: ` +
        `a million output tokens take ${parts.join(", ")}${paid}`,
      `, ${at} with ${grouped(given.batch)} at once.${bounded}`,
    ],
    tables: [
      tableOf("A million tokens", [
        ["the bound", isBound ? found : atShare("1")],
        ...(isBound ? [] : [/** @type {[string, any]} */ ([`${state.utilization} of it`, found])]),
        ...runs.map(run => /** @type {[string, any]} */ ([`${percentOf(run)} of it, as the run`, atShare(run.share)])),
      ]),
      ...(runs.length ? [measured(runs)] : []),
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
const percentOf = (/** @type {Run} */ run) => `${Math.round(Number(run.share) * 100)}%`

/**
 * A row for each kind of token at each share of the bound.
 * @param {string} caption
 * @param {[at: string, found: any][]} bills
 */
const tableOf = (caption, bills) => ({
  caption,
  head: ["Tokens", "At", "#Computing", "#Moving bytes", "Bound by", "#Time", "#Energy", "#Money"],
  rows: bills.flatMap(([at, { lines }]) =>
    [...lines].map((/** @type {any} */ line) => [
      KINDS[/** @type {keyof typeof KINDS} */ (line.name)],
      at,
      py.truth(line.compute_seconds) ? seconds(times(line.compute_seconds)) : "–",
      seconds(times(line.memory_seconds)),
      line.is_compute_bound ? "compute" : "memory",
      seconds(times(line.seconds)),
      energy(line.joules),
      money(line.money),
    ]),
  ),
})
/**
 * What the published runs measured.
 * @param {Run[]} runs
 */
const measured = runs => ({
  caption: "A million output tokens, as published runs measured them",
  head: ["Engine", "Weights", "#Devices", "#At once", "#Tokens per second", "#Share of the bound", "#Time", "#Energy"],
  rows: runs.map(run => {
    const rate = run.rate[0] / run.rate[1],
      joules = run.watts === null ? "–" : hours((MILLION / rate) * (run.watts / SECONDS))
    return [
      { text: run.engine, source: run.source },
      run.format,
      ...[`${run.devices}`, run.batch === null ? "–" : three(Number(run.batch)), three(rate)],
      ...[percentOf(run), seconds(MILLION / rate), joules],
    ]
  }),
})
