// What an inference engine puts into memory: each term with how it is known, the total, the sequences that fit.

import { M } from "../../engine/base.mjs"
import "../../engine/engines.mjs"
import { asked, loadGguf } from "../../conditions.mjs"
import { bytes, choice, exact, grouped, make, pause, py } from "./fields.mjs"

const { ENGINES, TITLES, serve, longest_context, largest_batch } = M["counting.engines"]
const UNUSED = "what its blocks hold beyond the rows of the tokens"
const titled = (/** @type {string} */ name) => TITLES.read(name, name)

export const SHARED = ["model", "on", "context", "batch", "weights", "cache"]
export const DEFAULTS = { engine: "vllm" }
export const fields = () => [choice("Engine", "engine", ENGINES, DEFAULTS.engine, titled)]
/** @returns {Record<string, import("../elements.mjs").Rule>} */
export const rules = () => ({ engine: text => asked.oneOf("engine", text, ENGINES, "engine") })

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

/** @param {import("../plan.mjs").Asked} asked @returns {Promise<import("../plan.mjs").Answer>} */
export async function answer({ state, model, name, given, on }) {
  if (state.engine === "llama.cpp") await Promise.all([loadGguf(), import("../../engine/llama_server.mjs")])
  const { serving, context, batch } = await counted(model, given, on, state.engine),
    { least, most, pool } = serving,
    limit = serving.limit(on.memory_bytes)
  const does = most <= limit ? "fits" : least <= limit ? "may fit" : "does not fit"
  const rows = [...serving.terms].flatMap(term => [
    [
      term.name,
      term.how.value ?? term.how,
      range(term.least, term.most),
      term.source ? make("a", { href: term.source, rel: "noreferrer" }, term.rule) : term.rule,
    ],
    ...(term.unused
      ? [["of which fragmentation", term.how.value ?? term.how, exact(term.unused, "bytes"), UNUSED]]
      : []),
  ])
  const settings = py.entries(serving.settings).map(([option, value]) => `${option} ${py.str(value)}`)
  return {
    line: [
      make("strong", {}, `${name} ${model.counts.formats.phrase(given.format)} ${does} on ${on.name} with `),
      make("strong", {}, `${titled(state.engine)}: `),
      `${rangeSaid(least, most)} of ${pool ? "the " : ""}${bytes(limit)}${pool ? " that it reserves" : ""} `,
      `at ${sequences(given)}. ${longest(context)}`,
      batch ? ` The largest batch size that is certain to fit is ${grouped(batch)}.` : "",
      pool
        ? ` The cache pool gets ${rangeSaid(...two(pool.room))}: room for ${times(pool.texts[0])} to ` +
          `${times(pool.texts[1])} sequences of ${grouped(given.context)} tokens.`
        : "",
    ],
    tables: [
      {
        caption: "Memory by term",
        head: ["Term", "Certainty", "#Memory", "Rule"],
        rows: [
          ...rows,
          Object.assign(["Total", "", range(least, most), ""], { cls: "total" }),
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
  return make("span", { title: `${grouped(least)} to ${grouped(most)} bytes` }, rangeSaid(least, most))
}
const times = (/** @type {Engine.Exact} */ n) => (Math.floor(py.float(n) * 100) / 100).toFixed(2)
const percentOf = (/** @type {Engine.Exact} */ share) => `${Math.round(py.float(share) * 100)}%`
const sequences = (/** @type {Engine.Conditions} */ given) =>
  `${given.batch > 1n ? `${grouped(given.batch)} sequences of ` : ""}${grouped(given.context)} tokens`
const longest = (/** @type {bigint?} */ context) =>
  context === null
    ? "Every context fits."
    : context === 0n
      ? "No context is certain to fit."
      : `The longest context that is certain to fit is ${grouped(context)} tokens.`
