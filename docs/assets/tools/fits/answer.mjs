// Which models fit on a machine; or in which formats a model fits, and on which machines. The rule is the engine's,
// compiled from the Python that `fits` runs.

import { conditions, loadGguf, paced, py } from "../../conditions.mjs"
import { allKeys, BEST, capacitiesIn, capacitiesOn, fitting, in_order, in_words } from "../../fitting.mjs"
import { isListed, LADDER } from "../../fitting.mjs"
import { grouped, modelOf, pause, seconds, short } from "../kit.mjs"
import { several, tokensSaid } from "../words.mjs"

const AT_ONCE = 30 // milliseconds of counting, before a browser may paint
const BETWEEN = 250 // milliseconds between two drawings of what is counted so far

/**
 * @typedef {import("../../fitting.mjs").Able} Able
 * @typedef {import("../cells.mjs").Cell} Cell
 * @typedef {Cell[] & { cls?: string }} Cells of a row
 * @typedef {object} Asked
 * @property {Record<string, string>} values by the names of the fields
 * @property {import("../figures.mjs").Models} models
 * @property {Map<string, Engine.Accelerator>} accelerators
 * @property {Engine.Conditions} given
 * @property {Engine.Machine} on
 * @typedef {{ slug: string, able: Able, said: Engine.Fitting }} Found a model that fits
 * @typedef {object} Counted so far
 * @property {Found[]} found
 * @property {number} shorter how many more fit that are made for a shorter context
 * @property {number} number of models that were looked at
 * @property {number} whole number of models
 * @typedef {{ caption: string, head: string[], rows: Cells[] }} Table
 * @typedef {object} List
 * @property {string} caption
 * @property {string[]} head
 * @property {Found[]} items
 * @property {(one: Found) => Cells} rowOf
 * @property {boolean} isWhole whether all models are counted
 * @typedef {object} Answer
 * @property {[head: string, rest: string]} said
 * @property {Table | null} formats of a model
 * @property {Table | null} machines that it fits on
 * @property {List | null} list of models
 * @property {string} notes
 * @property {{ page: string | undefined, name: string, others: string } | null} links of a model
 */

export const sizeOf = (/** @type {string} */ text) => Number(text.slice(0, -1)) * UNITS[text.slice(-1)]
/** @type {Record<string, number>} */
const UNITS = { M: 1e6, B: 1e9 }
export const nameOf = (/** @type {Asked} */ { models }, /** @type {string} */ slug) =>
  models.get(slug)?.read("name") ?? slug
/**
 * @param {Record<string, string>} values
 * @param {string} [format] for those of one format
 * @param {Engine.Accelerator | null} [accelerator] that they run on
 */
export const conditionsOf = ({ context, batch, cache, devices }, format, accelerator = null) =>
  conditions({
    ...{ context: BigInt(context), batch: BigInt(batch), dtype: cache, devices: BigInt(devices), accelerator },
    ...(format === undefined ? {} : { format }),
  })

/**
 * The answer; of one that takes a while, `going` gets the parts that are there. Throws a problem.
 * @param {Asked} asked
 * @param {import("../tool.mjs").Going} going
 * @returns {Promise<Answer | null>}
 */
export async function answer(asked, going) {
  const { model, weights } = asked.values,
    able = await capacitiesIn(model && !isListed(weights) ? BEST : weights)
  await pause()
  if (!going()) return null
  if (!model) return ofMachine(asked, able, going)
  const { ofModel } = await import("./formats.mjs")
  return ofModel(asked, able, going)
}

// A machine

/**
 * @param {Asked} asked
 * @param {Map<string, Able>} able
 * @param {import("../tool.mjs").Going} going
 */
async function ofMachine(asked, able, going) {
  const { values, given, on } = asked,
    rest = paced(AT_ONCE),
    [inOrder, sizedOf] = await sizes(asked, able)
  /** @type {Counted} */
  const soFar = { found: [], shorter: 0, number: 0, whole: able.size }
  let last = performance.now()
  for (const [slug, one] of inOrder) {
    const sized = await sizedOf(slug, one),
      said = sized && fitting(sized, values.weights, given, on)
    soFar.number++
    if (said && one.context !== null && one.context < given.context) soFar.shorter++
    else if (said) soFar.found.push({ slug, able: one, said })
    await rest()
    if (!going()) return null
    if (given.devices > 1n && performance.now() - last > BETWEEN) {
      going(listOf(asked, soFar))
      await pause()
      last = performance.now()
    }
  }
  return listOf(asked, soFar)
}

/**
 * Every model, and what is known of its sizes. For numbers of devices that the build has no data of, each is traced,
 * the largest first, but for those that do not fit with the least bytes of their weights.
 * @typedef {Engine.Sized | null} Sizes
 * @param {Asked} asked
 * @param {Map<string, Able>} able
 * @returns {Promise<[Iterable<[string, Able]>, (slug: string, one: Able) => Sizes | Promise<Sizes>]>}
 */
async function sizes({ values, given, on }, able) {
  if (given.devices === 1n) return [able, (_, { sized }) => sized]
  const divided = await capacitiesOn(given.devices, values.weights)
  if (divided) return [able, (slug, { sized }) => divided.get(slug) ?? sized]
  const [keys] = await Promise.all([allKeys(), loadGguf()]),
    most = on.memory_bytes * given.devices
  return [
    [...able].sort(([, a], [, b]) => (a.sized.total < b.sized.total ? 1 : -1)),
    (slug, { sized }) => (leastBytes(sized) > most ? null : costsOf(slug, keys)),
  ]
}
const leastBytes = (/** @type {Engine.Capacity} */ sized) =>
  [...sized.weights].map(name => sized.weights.read(name).total).reduce((a, b) => (b < a ? b : a))

/** @type {Map<string, Promise<Engine.Costs>>} */
const traced = new Map()
/**
 * @param {string} slug
 * @param {Engine.Dict<string, Engine.Keys>} keys
 */
function costsOf(slug, keys) {
  const costs = traced.get(slug) ?? modelOf(keys.read(slug)).then(one => one.costs)
  traced.set(slug, costs)
  return costs
}

/**
 * @param {Asked} asked
 * @param {Counted} counted
 * @returns {Answer}
 */
function listOf(asked, { found, shorter, number, whole }) {
  const { values, given, on } = asked,
    shown = found.filter(isShown(asked)),
    bySlug = new Map(shown.map(one => [one.slug, one])),
    inOrder = [...in_order(shown.map(({ slug, able, said }) => [slug, able.sized.total, said]))],
    isTimed = on.accelerator !== null
  const head = [
    ...["Model", "#Parameters", "Weights", "#Memory used", "#Free", "#Longest context", "#Largest batch"],
    ...(isTimed ? ["#Minimum time per token"] : []),
    ...(given.devices > 1n ? ["Split"] : []),
    "Kind",
  ]
  return {
    said: [
      `${found.length} of ${whole} models fit on ${several(given, on)}`,
      [
        ` at ${conditionsSaid(given, values)}, ${howSaid(values)}.`,
        shown.length < found.length ? ` Showing ${shown.length}.` : "",
        shorter ? ` ${shorter} more would fit but support only a shorter context.` : "",
        number < whole ? ` Counted so far: ${number} of ${whole}.` : "",
      ].join(""),
    ],
    list: {
      ...{ caption: "Models that fit, the largest first", head },
      ...{ items: inOrder.flatMap(([slug]) => bySlug.get(slug) ?? []), isWhole: number === whole },
      rowOf: one => rowOf(asked, one),
    },
    notes: [RULE, isTimed ? TIME : NO_TIME, ...new Set(shown.flatMap(({ able }) => able.caveat ?? []))].join(" "),
    ...{ formats: null, machines: null, links: null },
  }
}
/** Whether the filters leave a model. @param {Asked} asked */
const isShown = ({ values, models }) => {
  const { family, kind, licence, least, most } = values
  return (/** @type {Found} */ { slug, able }) => {
    const n = Number(able.sized.total)
    return (
      (!family || models.get(slug)?.read("family") === family) &&
      (!kind || able.kind === kind) &&
      (!licence || able.licence === licence) &&
      (!least || n >= sizeOf(least)) &&
      (!most || n <= sizeOf(most))
    )
  }
}
/**
 * A model of the list.
 * @param {Asked} asked
 * @param {Found} found
 * @returns {Cells}
 */
function rowOf(asked, { slug, able, said }) {
  const name = nameOf(asked, slug),
    { total } = able.sized
  return [
    { text: name, to: { model: slug, weights: said.format }, sort: name },
    { text: short(total), title: `${grouped(total)} parameters`, sort: `${total}` },
    formatSaid(able, said.format),
    ...amounts(said),
    ...(asked.on.accelerator ? [timeOf(said)] : []),
    ...(asked.given.devices > 1n ? [said.split.letters] : []),
    able.kind === MIXTURE ? { text: "MoE", abbreviates: MIXTURE } : able.kind,
  ]
}
const MIXTURE = "mixture of experts"

// Words

/** @param {Engine.Conditions} given @param {Record<string, string>} values */
export const conditionsSaid = (given, { cache }) => `${tokensSaid(given)} with the KV cache in ${cache}`
const howSaid = (/** @type {Record<string, string>} */ { weights }) =>
  weights === BEST
    ? "each in the best format that fits"
    : weights === "published"
      ? "with weights as published"
      : `with weights in ${weights}`
export const formatSaid = (/** @type {Able} */ one, /** @type {string} */ format) => in_words(format, one.said(format))
/** Memory used and free, the longest context, the largest batch. @param {Engine.Fitting} said @returns {Cell[]} */
export const amounts = ({ total, left, longest_context: context, largest_batch: batch }) => [
  { value: total, unit: "bytes" },
  { value: left, unit: "bytes" },
  context === null ? { text: "unlimited", sort: "1e99" } : context ? grouped(context) : "–",
  grouped(batch),
]
export const timeOf = (/** @type {Engine.Fitting} */ { seconds: time }) =>
  time === null ? "–" : seconds(py.float(time))
export const RULE =
  `The best format is the first one that fits: as published, then ${[...LADDER].slice(1).join(", ")}. ` +
  "Models with at least four bits per weight come first, then those with fewer; in both groups, the largest first. " +
  "Memory covers weights, KV cache and the largest operation; engines use more."
export const TIME = "Times are lower bounds."
const NO_TIME = "Add a bandwidth, as in 24GB,1008GB/s, to get the minimum time per token."
