// Which models fit: the data that the build exports for every model, and the rule, compiled from Python. Used by the
// tool and the catalog's filter.

import { BOUNDS, asked, conditions, isProblem, loadGguf, machine, paced, Problem, py, said } from "./conditions.mjs"
import { M } from "./engine/base.mjs"
import "./engine/fitting.mjs"
import { data, fetched } from "./tools/figures.mjs"

export const {
  answer,
  BEST,
  DIVIDED_ON_SITE,
  fitting,
  in_order,
  in_words,
  LADDER,
  LISTED,
  order_of_machines,
  smallest,
  chosen,
} = M["counting.fitting"]

/**
 * If the requested format does not fit or has no kernel there, suggests the best one that does: a space and a sentence.
 * @param {Engine.Model} model
 * @param {Engine.Conditions} given
 * @param {Engine.Machine} on
 */
export async function instead({ costs, counts }, given, on) {
  await loadGguf()
  return M["counting.fitting"].instead(costs, counts.formats, given, on.memory_bytes)
}

/**
 * @typedef {object} Able a model of the site
 * @property {Engine.Capacity} sized
 * @property {bigint?} context that it is made for
 * @property {string} kind
 * @property {string} licence
 * @property {string?} caveat what is to be said of its figures
 * @property {(format: string) => string} said what a format means for it, in words
 */

/** @type {Promise<Map<string, Able>> | undefined} */
let loaded
// Every model by its slug.
export const capacities = () => (loaded ??= allCapacities())
async function allCapacities() {
  const file = await fetch(new URL("engine/capacity.json", import.meta.url)),
    text = await file.text()
  /** @type {Map<string, Able>} */
  const all = new Map(),
    rest = paced(8)
  for (const [slug, data] of modelByModel(text)) {
    all.set(slug, ableOf(data))
    await rest()
  }
  return all
}

/**
 * The models in a file, each parsed on first access; all at once if a number is too large for a JavaScript number.
 * @param {string} text
 * @returns {Iterable<[slug: string, data: Engine.Dict<string, any>]>}
 */
function* modelByModel(text) {
  const read = (/** @type {string} */ one) => /** @type {Engine.Dict<string, any>} */ (py.parse(one))
  if (/\d{16}/.test(text)) yield* py.entries(read(text))
  else for (const [slug, data] of Object.entries(JSON.parse(text))) yield [slug, read(JSON.stringify(data))]
}
function ableOf(/** @type {Engine.Dict<string, any>} */ data) {
  const of = (/** @type {string} */ key) => data.read(key),
    words = of("said"),
    weights = of("weights"),
    published = weights.read("published")
  if (typeof published === "string") weights.put("published", weights.read(published)) // the same as that format
  return {
    sized: M["counting.capacity"].Capacity(data),
    context: of("context"),
    kind: of("kind"),
    licence: of("licence"),
    caveat: of("caveat"),
    said: (/** @type {string} */ format) => words.read(format, format),
  }
}

// Whether the list of models has a format; of a single model every one is traced.
export const isListed = (/** @type {string} */ format) => [BEST, ...LADDER, ...LISTED].includes(format)

/** @type {Map<string, Promise<void>>} */
const added = new Map()
/**
 * The models, with their weights in a format that is not tried by default.
 * @param {string} format
 */
export async function capacitiesIn(format) {
  const all = await capacities()
  if (format === BEST || [...LADDER].includes(format)) return all
  if (!isListed(format))
    throw Problem(`weights = ${format}: computed only for a single model`, "choose a model or another format")
  const adding =
    added.get(format) ??
    fetched(`weights/${format}.json`).then(weights => {
      for (const [slug, data] of py.entries(weights)) all.get(slug)?.sized.add(format, data)
    })
  added.set(format, adding)
  await adding
  return all
}

/** @type {Map<bigint, Promise<Map<string, Engine.Divided>>>} */
const divided = new Map()
/**
 * The models on several devices; null if the build has no data for that many, or for this format.
 * @param {bigint} devices
 * @param {string} format
 */
export async function capacitiesOn(devices, format) {
  if (![...DIVIDED_ON_SITE].includes(devices) || (format !== BEST && ![...LADDER].includes(format))) return null
  const made = divided.get(devices) ?? allDivided(devices)
  divided.set(devices, made)
  return made
}
async function allDivided(/** @type {bigint} */ devices) {
  const [file, all] = await Promise.all([
    fetch(new URL(`engine/divided/${devices}.json`, import.meta.url)),
    capacities(),
    import("./engine/divided.mjs"),
  ])
  /** @type {Map<string, Engine.Divided>} */
  const found = new Map(),
    rest = paced(8)
  for (const [slug, data] of modelByModel(await file.text())) {
    const one = all.get(slug)
    if (one) found.set(slug, M["counting.divided"].Divided(one.sized, data))
    await rest()
  }
  return found
}

/** The keys of every model's config, of models that are traced. @returns {Promise<Engine.Dict<string, Engine.Keys>>} */
export const allKeys = () => (keys ??= fetched("keys.json"))
/** @type {Promise<Engine.Dict<string, Engine.Keys>> | undefined} */
let keys

/**
 * The slugs of the models that fit on a machine in some format, and are made for the context. Throws an error of one
 * line.
 * @param {string} on
 * @param {string} context
 */
export async function modelsThatFit(on, context) {
  const [{ accelerators }, all] = await Promise.all([data(), capacities()])
  try {
    const { memory_bytes: memory } = machine(on, accelerators),
      tokens = BigInt(asked.whole("context", context, BOUNDS.MOST_TOKENS)),
      given = conditions({ context: tokens })
    const able = [...all].filter(
      ([, one]) => (one.context ?? tokens) >= tokens && chosen(one.sized, BEST, given, memory) !== null,
    )
    return new Set(able.map(([slug]) => slug))
  } catch (error) {
    throw isProblem(error) ? new Error(said(error)) : error
  }
}
