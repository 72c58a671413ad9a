// Several devices: the splits of a model, what each device holds and sends, the minimum times; a prefix that is shared.

import { M } from "../../engine/base.mjs"
import "../../engine/spreads.mjs"
import "../../engine/prefix.mjs"
import { asked } from "../../conditions.mjs"
import { bytes, choice, exact, grouped, make, orNull, Problem, py } from "./fields.mjs"
import { seconds, secondsOf, shorten, wholeOrNothing, written } from "./fields.mjs"

const { asked_splits, spread } = M["counting.spreads"]
const { DISPATCH_TYPES } = M["counting.links"]
const { shared_prefix } = M["counting.prefix"]

export const SHARED = ["model", "on", "devices", "context", "batch", "weights", "cache"]
export const DEFAULTS = {
  model: "llama3.3-70b",
  on: "h100",
  devices: "8",
  batch: "16",
  dispatch: "bfloat16",
  split: "",
  prefix: "",
}
export const fields = () => [
  choice("Type sent to experts", "dispatch", DISPATCH_TYPES, DEFAULTS.dispatch),
  written("Shared prefix, tokens", "prefix", { inputmode: "numeric", placeholder: "none" }),
]
/** @returns {Record<string, import("../elements.mjs").Rule>} */
export const rules = () => ({
  dispatch: text => asked.oneOf("dispatch", text, DISPATCH_TYPES, "type"),
  split: text => {
    if (text === "" || /^[1-9]\d{0,4}(,[1-9]\d{0,4}){2}$/.test(text)) return text
    throw Problem(`split = ${shorten(text)}: no split`, "write tensor, pipeline and data degrees as in 8,1,1")
  },
  prefix: wholeOrNothing("prefix"),
})

/**
 * Every split, with what it holds, sends and takes.
 * @param {Engine.Model} model
 * @param {Engine.Conditions} given
 * @param {string} dispatch
 */
export const counted = ({ costs }, given, dispatch) =>
  [...asked_splits(costs, given)].map(split => spread(costs, split, given, dispatch))

/**
 * What sharing a prefix saves.
 * @param {Engine.Model} model
 * @param {Engine.Conditions} given
 * @param {bigint} prefix
 */
export function sharing({ costs }, given, prefix) {
  asked.whole("prefix", String(prefix), given.context - 1n)
  return shared_prefix(costs, prefix, given)
}

/** @param {import("../plan.mjs").Asked} asked @returns {Promise<import("../plan.mjs").Answer>} */
export async function answer({ state, model, name, given, on, link }) {
  const found = counted(model, given, state.dispatch),
    codes = found.map(({ split }) => `${split.tensor},${split.pipeline},${split.data}`)
  if (state.split && !codes.includes(state.split))
    throw Problem(
      `split = ${shorten(state.split)}: not over ${grouped(given.devices)} devices`,
      "choose one from the list",
    )
  const fitting = found.filter(one => one.total <= on.memory_bytes),
    shown = found[codes.indexOf(state.split)] ?? fitting[0] ?? found[0]
  const marked = (/** @type {any} */ one, /** @type {any[]} */ cells) =>
    Object.assign(cells, one === shown ? { cls: "ep-differs" } : {})
  const named = (/** @type {any} */ one) =>
    link(one.split.letters || "one device", { split: codes[found.indexOf(one)] })
  const memory = found.map(one =>
    marked(one, [
      named(one),
      ...["weights", "cache", "activations"].map(term => exact(one.terms.read(term), "bytes")),
      exact(one.total, "bytes"),
      exact(on.memory_bytes - one.total, "bytes"),
      one.total <= on.memory_bytes ? "yes" : "no",
    ]),
  )
  const stepOf = (/** @type {"decode" | "prefill"} */ kind) =>
    found.map(one => {
      const { sent, total, limits } = one[kind]
      return marked(one, [
        one.split.letters || "one device",
        sentSaid(sent),
        sentSaid(total),
        secondsOf(limits?.compute, seconds),
        secondsOf(limits?.memory, seconds),
        secondsOf(limits?.links, seconds),
        limits?.limited_by ?? "–",
      ])
    })
  const messages = (/** @type {"decode" | "prefill"} */ kind, /** @type {string} */ caption) => ({
    caption,
    head: ["Message", "After", "#Times", "#Devices", "#Sent per device", "#Sent in total"],
    rows: [...shown[kind].transfers].map(t => [
      t.kind,
      t.after.replaceAll("_", " "),
      grouped(t.times),
      grouped(t.among),
      sentSaid(t.sent),
      sentSaid(t.total),
    ]),
  })
  const step = ["Split", "#Sent per device", "#Sent in total", "#Compute", "#Memory", "#Links", "Limited by"],
    chosen = shown.split.letters || "one device"
  const prefix = orNull(state.prefix),
    saved = prefix === null ? null : sharing(model, given, prefix)
  const several = `${grouped(given.devices)} × ${on.name}`
  return {
    line: [
      make("strong", {}, `${name} ${model.counts.formats.phrase(given.format)} on ${several}: `),
      `${grouped(BigInt(fitting.length))} of ${grouped(BigInt(found.length))} splits fit. `,
      `${chosen}: ${bytes(shown.total)} of ${bytes(on.memory_bytes)} on the fullest device at `,
      `${given.batch > 1n ? `${grouped(given.batch)} sequences of ` : ""}${grouped(given.context)} tokens.`,
    ],
    tables: [
      {
        caption: "Memory on the fullest device",
        head: ["Split", "#Weights", "#KV cache", "#Activations", "#Total", "#Left", "Fits"],
        rows: memory,
      },
      { caption: "Decode: one token of each sequence, minimum times", head: step, rows: stepOf("decode") },
      { caption: "Prefill: the whole context, minimum times", head: step, rows: stepOf("prefill") },
      ...(given.devices > 1n
        ? [
            messages("decode", `Messages of a decode step with ${chosen}`),
            messages("prefill", `Messages of the prefill with ${chosen}`),
          ]
        : []),
      ...(saved
        ? [
            {
              caption: `A prefix of ${grouped(prefix ?? 0n)} tokens, shared by ${grouped(given.batch)} sequences`,
              head: ["Figure", "#Per sequence", "#Shared", "#Saved"],
              rows: [
                [
                  "KV cache",
                  ...[saved.cache_bytes, saved.shared_cache_bytes, saved.saved_bytes].map(n => exact(n, "bytes")),
                ],
                ["Prefill", ...[saved.flops, saved.shared_flops, saved.saved_flops].map(n => exact(n, "FLOPs"))],
              ],
            },
          ]
        : []),
    ],
    notes: [
      "TP is tensor, PP pipeline, EP expert and DP data parallelism.",
      "Choose a split to see its messages.",
      "Times are lower bounds: peak FLOPS, full bandwidth, links in one direction, messages one after the other.",
      "The number of experts read is the expected value if tokens choose evenly.",
      given.accelerator ? "" : "Give a bandwidth, as in 24GB,1008GB/s, for times.",
    ].filter(Boolean),
  }
}
const sentSaid = (/** @type {Engine.Exact} */ n) => {
  if (!py.truth(n)) return "0"
  const whole = py.int(n)
  return make("span", { title: `${grouped(whole)} bytes`, "data-sort": String(whole) }, bytes(whole))
}
