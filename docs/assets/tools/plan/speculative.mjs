// Speculative decoding: a draft proposes tokens, the target checks them in one step; the bound by acceptance.

import { M } from "../../engine/base.mjs"
import "../../engine/speculative.mjs"
import { asked } from "../../conditions.mjs"
import { checked, grouped, modelsByFamily, oneListed, orNull } from "./fields.mjs"
import { Problem, py, secondsOf, several, written } from "./fields.mjs"

const { best_of, lengths, speculated, vocabularies_differ, MOST_DRAFTED } = M["counting.speculative"]

export const SHARED = ["model", "on", "devices", "context", "batch", "weights", "cache"]
const FREE = "none"
const rate = (/** @type {string} */ text) => asked.share("acceptance", text, true)
export const START = { model: "llama3.3-70b", on: "h200" }
/** @returns {import("./fields.mjs").Field[]} */
export const fields = (/** @type {import("../plan.mjs").Site} */ { models }) => [
  {
    ...{ label: "Draft model", name: "draft", start: "llama3.2-1b", isFound: true },
    rule: text => (text === FREE ? FREE : oneListed("draft", text, models)),
    groups: [[FREE, "free drafts (n-grams)"], ...modelsByFamily(models)],
  },
  written("Draft tokens", "draft_tokens", name => text => text && `${asked.whole(name, text, MOST_DRAFTED)}`, {
    ...{ inputmode: "numeric", placeholder: "best" },
  }),
  written(
    "Acceptance rate",
    "acceptance",
    checked((_, text) => rate(text)),
    { inputmode: "decimal" },
    "0.8",
  ),
]

/**
 * The minimum times of a step, with a draft and without.
 * @param {Engine.Model} target
 * @param {Engine.Model?} draft
 * @param {Engine.Conditions} given
 * @param {string} acceptance
 * @param {bigint?} tokens
 */
export const counted = (target, draft, given, acceptance, tokens) =>
  speculated(target.costs, draft?.costs ?? null, rate(acceptance), tokens, given)

const ACCEPTANCES = ["0.5", "0.6", "0.7", "0.8", "0.9", "1"]
/** @param {import("../plan.mjs").Asked} asked @returns {Promise<import("../plan.mjs").Answer>} */
export async function answer({ state, model, name, given, on, site }) {
  if (!given.accelerator) throw Problem(`on = ${on.name}: a time needs a bandwidth`, "write it as in 24GB,1008GB/s")
  const draft = state.draft === FREE ? null : await site.modelOf(state.draft),
    tokens = orNull(state.draft_tokens),
    found = counted(model, draft, given, state.acceptance, tokens)
  const each = tokens === null ? lengths(model.costs, draft?.costs ?? null, given) : [found]
  const others = [...new Set([...ACCEPTANCES, state.acceptance])].sort((a, b) => Number(a) - Number(b))
  const perSecond = (/** @type {any} */ time) => (Number(given.batch) / py.float(time)).toPrecision(3),
    three = (/** @type {Engine.Exact} */ n) => py.float(n).toPrecision(3)
  const drafted = `${grouped(found.drafted)} draft token${found.drafted > 1n ? "s" : ""}`
  return {
    said: [
      `${name} with ${draft ? `${site.nameOf(state.draft)} as its draft` : "free drafts"} ` +
        `on ${several(given, on)}: at best ${three(found.speedup)} times as fast. `,
      [
        `With ${drafted} at an acceptance rate of ${state.acceptance} a step gives ${three(found.tokens)} tokens: `,
        "at most ",
        `${perSecond(found.seconds_per_token)} tokens per second instead of ${perSecond(found.plain.seconds)}.`,
        ...[...vocabularies_differ(model.costs, draft?.costs ?? null)].map(warning => ` Warning: ${warning}.`),
      ].join(""),
    ],
    tables: [
      {
        caption: "Minimum times",
        head: ["Step", "#Time", "Limited by"],
        rows: [
          ["Draft, all steps", secondsOf(found.draft_seconds), found.draft?.limited_by ?? "–"],
          ["Target, verification", secondsOf(found.verify.seconds), found.verify.limited_by],
          ["Whole step", secondsOf(found.seconds), ""],
          ["Per token", secondsOf(found.seconds_per_token), ""],
          ["Per token, target alone", secondsOf(found.plain.seconds), found.plain.limited_by],
        ],
      },
      {
        caption: "By acceptance rate",
        head: ["Acceptance rate", "#Draft tokens", "#Tokens per step", "#Tokens per second", "#Speedup"],
        rows: others.map(one => {
          const said = best_of(each, rate(one))
          return Object.assign(
            [
              { text: one, to: { acceptance: one } },
              grouped(said.drafted),
              three(said.tokens),
              perSecond(said.seconds_per_token),
              three(said.speedup),
            ],
            one === state.acceptance ? { cls: "ep-differs" } : {},
          )
        }),
      },
    ],
    notes: [
      "Each proposed token is accepted with this probability, independently of the others.",
      "Times are lower bounds: peak FLOPS and full bandwidth.",
      tokens === null ? "The number of draft tokens is the best one up to 16." : "",
    ].filter(Boolean),
  }
}
