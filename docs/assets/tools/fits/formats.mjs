// The formats of a model on a machine, and the machines that it fits on: once one is asked for.

import { loadGguf, machine, Problem, py } from "../../conditions.mjs"
import { answer as counted, BEST, chosen, fitting, isListed, LADDER } from "../../fitting.mjs"
import { order_of_machines, smallest } from "../../fitting.mjs"
import { about, bytes, grouped, modelOf } from "../kit.mjs"
import { notRun } from "../runs.mjs"
import { several } from "../words.mjs"
import { amounts, conditionsOf, conditionsSaid, formatSaid, nameOf, RULE, TIME, timeOf } from "./answer.mjs"

const BEFORE_MORE = 20 // milliseconds in which an answer is seen before the rest of it

/**
 * @typedef {import("./answer.mjs").Able} Able
 * @typedef {import("./answer.mjs").Answer} Answer
 * @typedef {import("./answer.mjs").Asked} Asked
 * @typedef {import("./answer.mjs").Table} Table
 * @typedef {object} Model that is asked about
 * @property {Asked} asked
 * @property {Able} one
 * @property {Engine.Sized} sized
 * @property {Engine.Costs} costs
 * @property {string} wanted format
 */

/**
 * @param {Asked} asked
 * @param {Map<string, Able>} able
 * @param {import("../tool.mjs").Going} going
 * @returns {Promise<Answer | null>}
 */
export async function ofModel(asked, able, going) {
  const { values, given, on } = asked,
    one = /** @type {Able} */ (able.get(values.model)),
    { keys, page, caveat } = await about(values.model),
    [{ costs, counts }] = await Promise.all([modelOf(keys), loadGguf()])
  if (!going()) return null
  const there = conditionsOf(values, undefined, on.accelerator),
    sized = given.devices === 1n && isListed(values.weights) ? one.sized : costs,
    isBest = values.weights === BEST,
    wanted = isBest ? (chosen(costs, BEST, there, on.memory_bytes) ?? smallest(costs, on.accelerator)) : values.weights,
    name = nameOf(asked, values.model),
    model = { asked, one, sized, costs, wanted }
  if (!costs.is_there(wanted)) throw Problem(`weights = ${wanted}: ${name} has no such format`, "choose another")
  const here = counted(sized, conditionsOf(values, wanted), on)
  if (!here) throw costs.devices.without_split(given.devices, given.batch)
  const first = {
    said: sentence(model, here, `${name} ${counts.formats.phrase(wanted)}`),
    ...{ list: null, formats: formatsOf(model) },
  }
  going(first)
  await new Promise(resolve => setTimeout(resolve, BEFORE_MORE))
  if (!going()) return null
  return {
    ...first,
    machines: machinesOf(model, isBest ? "published" : wanted),
    notes: [RULE, TIME, caveat].filter(Boolean).join(" "),
    links: { page, name, others: `All models that fit on ${several(given, on)}` },
  }
}
/**
 * Whether a model fits, with what, and how long a context may be.
 * @param {Model} model
 * @param {Engine.Fitting} here
 * @param {string} phrase its name and format
 * @returns {Answer["said"]}
 */
function sentence({ asked: { values, given, on }, one, costs, wanted }, here, phrase) {
  const fits = here.left >= 0n,
    made = one.context !== null && (here.longest_context === null || here.longest_context > one.context)
  return [
    `${phrase} ${fits ? "fits" : "does not fit"} on ${several(given, on)}: `,
    [
      `at ${conditionsSaid(given, values)}, it takes ${bytes(here.total)} of ${bytes(on.memory_bytes)}`,
      given.devices > 1n ? ` on the fullest device (${here.split.said}), ` : ", ",
      fits ? `which leaves ${bytes(here.left)} free. ` : `${bytes(-here.left)} too much. `,
      longestSaid(here.longest_context),
      made ? `; the model supports ${grouped(one.context ?? 0n)}. ` : ". ",
      fits ? "" : enoughSaid(costs.devices.least_split(conditionsOf(values, wanted), on.memory_bytes)),
      notRun(costs, conditionsOf(values, wanted, on.accelerator)),
    ].join(""),
  ]
}
const longestSaid = (/** @type {bigint?} */ context) =>
  context === null
    ? "Memory does not limit the context"
    : context
      ? `The longest context that fits is ${grouped(context)} tokens`
      : "Not even one token of context fits"
const enoughSaid = (/** @type {Engine.Split?} */ enough) =>
  enough
    ? `It fits on ${grouped(enough.devices)} devices: ${enough.said}.`
    : "It fits with none of the splits that are tried."

/** @param {Model} model @returns {Table} */
function formatsOf({ asked: { values, given, on }, one, sized, costs, wanted }) {
  const isTimed = on.accelerator !== null,
    other = [...LADDER].includes(wanted) ? [] : [wanted],
    isRun = (/** @type {string} */ format) => !notRun(costs, conditionsOf(values, format, on.accelerator)),
    formats = [...LADDER, ...other].filter(
      f => costs.is_there(f) && f !== one.said("published") && (f === wanted || isRun(f)),
    )
  const rows = formats.flatMap(format => {
    const said = counted(sized, conditionsOf(values, format), on)
    if (!said) return []
    const devices = costs.devices.least_split(conditionsOf(values, format), on.memory_bytes),
      bits = py.float(said.bits_per_weight),
      [total, left, context, batch] = amounts(said)
    const cells = [
      { text: formatSaid(one, format), to: { weights: format } },
      { text: bits.toFixed(2), sort: `${bits}` },
      ...[total, left, context, said.left < 0n ? "–" : batch],
      ...(isTimed ? [said.left < 0n ? "–" : timeOf(said)] : []),
      howMany(devices),
    ]
    return [Object.assign(cells, format === wanted ? { cls: "ep-differs" } : {})]
  })
  return {
    caption: `Formats on ${several(given, on)}`,
    head: [
      ...["Weights", "#Bits per weight", "#Memory used", "#Free", "#Longest context", "#Largest batch"],
      ...(isTimed ? ["#Minimum time per token"] : []),
      "#Devices needed",
    ],
    rows,
  }
}

/**
 * The machines of the list: in which format a model fits, and how many devices it needs in the chosen format.
 * @param {Model} model
 * @param {string} wanted
 * @returns {Table}
 */
function machinesOf({ asked: { values, given, accelerators }, one, sized, costs }, wanted) {
  const at = conditionsOf(values, wanted)
  const answers = [...accelerators].map(([slug, accelerator]) => {
    const on = machine(slug, accelerators),
      said = fitting(sized, values.weights, given, on),
      enough = costs.devices.least_split(at, on.memory_bytes)
    return { slug, accelerator, said, enough, order: [...order_of_machines(said, enough, on)] }
  })
  answers.sort((a, b) => {
    const i = [0, 1, 2].find(i => a.order[i] !== b.order[i])
    return i === undefined ? (a.slug < b.slug ? -1 : 1) : a.order[i] < b.order[i] ? -1 : 1
  })
  return {
    caption: given.devices > 1n ? `Machines with ${grouped(given.devices)} devices each` : "Machines",
    head: [
      ...["Machine", "#Memory", "Weights", "#Memory used", "#Free", "#Longest context", "#Largest batch"],
      "#Minimum time per token",
      wanted === "published" ? "#Devices needed, as published" : `#Devices needed in ${wanted}`,
    ],
    rows: answers.map(({ slug, accelerator, said, enough }) => [
      { text: accelerator.name, to: { on: slug } },
      { value: accelerator.memory_bytes, unit: "bytes" },
      said ? formatSaid(one, said.format) : "does not fit",
      ...(said ? [...amounts(said), timeOf(said)] : Array(5).fill("–")),
      howMany(enough),
    ]),
  }
}

/** @returns {import("../cells.mjs").Cell} */
const howMany = (/** @type {Engine.Split?} */ split) =>
  split ? { text: grouped(split.devices), range: split.letters && ` (${split.letters})` } : "–"
