// What an inference engine puts into memory: each term with how it is known, the total, the sequences that fit.

import { M } from "../../engine/base.mjs"
import "../../engine/engines.mjs"
import { loadGguf } from "../../conditions.mjs"
import { loadRuns, notRun } from "../runs.mjs"
import { bytes, choice, exact, grouped, pause, Problem, py, tokensSaid, total, written } from "./fields.mjs"

const { ENGINES, TITLES, serve, longest_context, largest_batch } = M["counting.engines"]
const UNUSED = "what its blocks hold beyond the rows of the tokens"
// Engines that take their own options, and several devices: their rules are scripts of their own.
/** @type {Record<string, string>} */
const OTHERS = { sglang: "SGLang", ollama: "Ollama", "tensorrt-llm": "TensorRT-LLM" }
const WITH_OPTIONS = ["vllm", "llama.cpp", ...Object.keys(OTHERS)]
const ALL = [...ENGINES, ...Object.keys(OTHERS)]
const titled = (/** @type {string} */ name) => OTHERS[name] ?? TITLES.read(name, name)

export const SHARED = ["model", "on", "context", "batch", "weights", "cache"]
export const START = {}
const short = (/** @type {string} */ name) => (/** @type {string} */ text) => {
  if (text.length > 2000) throw Problem(`${name}: more than 2,000 characters`, "shorten it")
  return text
}
export const fields = () => [
  choice("Engine", "engine", ALL, "vllm", "engine", titled),
  written("Its options", "options", short, { size: 44, placeholder: "--tensor-parallel-size 2" }),
  written("Several devices", "cards", short, { size: 24, placeholder: "rtx-4090,free:20GB+rtx-5090" }),
  written("Version", "version", short, { size: 8 }),
]
/** Fields that do nothing for an engine that takes no options. @param {import("../plan.mjs").State} state */
export const idle = ({ engine }) => (WITH_OPTIONS.includes(engine) ? [] : ["options", "cards", "version"])

/**
 * The terms, and what is possible at most.
 * @param {Engine.Model} model
 * @param {Engine.Conditions} given
 * @param {Engine.Machine} on
 * @param {string} engine
 */
export async function counted({ costs }, given, on, engine) {
  const how = [on.memory_bytes, on.name, on.accelerator?.vendor ?? ""],
    serving = serve(engine, costs, given, ...how)
  await pause()
  const context = longest_context(engine, costs, given, ...how)
  await pause()
  return { serving, context, batch: largest_batch(engine, costs, given, ...how) }
}

/**
 * The largest batch that is certain to fit; null if every one does.
 * @param {Engine.Model} model
 * @param {Engine.Conditions} given
 * @param {Engine.Machine} on
 * @param {string} engine
 */
export async function largest(model, given, on, engine) {
  await rulesOf(model, engine)
  return /** @type {bigint?} */ ((await counted(model, given, on, engine)).batch)
}
/** Loads the rules of an engine that are scripts of their own. @param {Engine.Model} model @param {string} engine */
async function rulesOf({ counts: { formats } }, engine) {
  if (engine === "vllm" && (py.has("mxfp4", formats.names) || formats.architecture?.vllm.is_packed))
    await import("../../engine/vllm_server.mjs")
  if (engine === "llama.cpp") await Promise.all([loadGguf(), import("../../engine/llama_server.mjs")])
}

/**
 * The format that the engine serves there instead: a sentence after a space.
 * @param {string} engine
 * @param {Engine.Model} model
 * @param {Engine.Conditions} given
 * @param {Engine.Machine} on
 */
async function instead(engine, { costs, counts }, given, on) {
  await Promise.all([loadRuns(on.accelerator, true), loadGguf(), import("../../engine/served_instead.mjs")])
  const { served_instead } = M["counting.served_instead"]
  return served_instead(engine, costs, counts.formats, given, on.memory_bytes, on.name, on.accelerator?.vendor ?? "")
}

/** @param {import("../plan.mjs").Asked} all @returns {Promise<import("../plan.mjs").Answer>} */
export async function answer(all) {
  const { state, model, name, given, on } = all
  if (WITH_OPTIONS.includes(state.engine) && (state.options || state.cards || state.version || state.engine in OTHERS))
    return (await import("./deployed.mjs")).answer(all)
  await rulesOf(model, state.engine)
  const { serving, context, batch } = await counted(model, given, on, state.engine),
    { least, most, pool } = serving,
    limit = serving.limit(on.memory_bytes)
  const strange = notRun(model.costs, given, state.engine === "transformers" ? "" : titled(state.engine))
  const does = most <= limit ? "fits" : least <= limit ? "may fit" : "does not fit"
  const rows = [...serving.terms].flatMap(term => [
    [
      term.name,
      term.how.value ?? term.how,
      range(term.least, term.most),
      term.source ? { text: term.rule, source: term.source } : term.rule,
    ],
    ...(term.unused
      ? [["of which fragmentation", term.how.value ?? term.how, exact(term.unused, "bytes"), UNUSED]]
      : []),
  ])
  const settings = py.entries(serving.settings).map(([option, value]) => `${option} ${py.str(value)}`)
  return {
    said: [
      `${name} ${model.counts.formats.phrase(given.format)} ${does} on ${on.name} with ` + `${titled(state.engine)}: `,
      [
        `${rangeSaid(least, most)} of ${pool ? "the " : ""}${bytes(limit)}${pool ? " that it reserves" : ""} `,
        `at ${tokensSaid(given)}. ${longest(context)}`,
        batch ? ` The largest batch size that is certain to fit is ${grouped(batch)}.` : "",
        pool
          ? ` The cache pool gets ${rangeSaid(...two(pool.room))}: ` +
            (py.truth(pool.texts[1])
              ? `room for ${times(pool.texts[0])} to ${times(pool.texts[1])} sequences ` +
                `of ${grouped(given.context)} tokens.`
              : pool.is_used
                ? `no room for a sequence of ${grouped(given.context)} tokens.`
                : "the model keeps no cache, and does not use it.")
          : "",
        strange,
        most > limit || strange ? await instead(state.engine, model, given, on) : "",
      ].join(""),
    ],
    tables: [
      {
        caption: "Memory by term",
        head: ["Term", "Certainty", "#Memory", "Rule"],
        rows: [
          ...rows,
          total(["Total", "", range(least, most), ""]),
          ["Limit", "", exact(limit, "bytes"), pool ? `${percentOf(pool.share)} of the memory` : ""],
        ],
      },
    ],
    notes: [
      `With ${settings.join(" ")}.`,
      "Exact terms follow from shapes and the engine’s own allocation; an estimate follows a rule that the engine " +
        "does not promise; a range was measured.",
    ],
  }
}
const two = (/** @type {bigint[]} */ pair) => /** @type {[bigint, bigint]} */ ([pair[0], pair[1]])
const rangeSaid = (/** @type {bigint} */ least, /** @type {bigint} */ most) => {
  const [low, high] = [bytes(least), bytes(most)],
    [number, unit] = low.split(/\s/)
  return low === high ? low : `${high.endsWith(unit) ? number : low} to ${high}`
}
const range = (/** @type {bigint} */ least, /** @type {bigint} */ most) => {
  if (least === most) return exact(least, "bytes")
  return { text: rangeSaid(least, most), title: `${grouped(least)} to ${grouped(most)} bytes` }
}
const times = (/** @type {Engine.Exact} */ n) => (Math.floor(py.float(n) * 100) / 100).toFixed(2)
const percentOf = (/** @type {Engine.Exact} */ share) => `${Math.round(py.float(share) * 100)}%`
const longest = (/** @type {bigint?} */ context) =>
  context === null
    ? "Every context fits."
    : context === 0n
      ? "No context is certain to fit."
      : `The longest context that is certain to fit is ${grouped(context)} tokens.`
