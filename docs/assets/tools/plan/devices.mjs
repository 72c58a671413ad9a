// Several devices: the splits of a model, what each device holds and sends, the minimum times; a prefix that is shared.

import { M } from "../../engine/base.mjs"
import "../../engine/spreads.mjs"
import "../../engine/prefix.mjs"
import { asked } from "../../conditions.mjs"
import { bytes, choice, exact, grouped, orNull, Problem, py } from "./fields.mjs"
import { secondsOf, shorten, tokensSaid, wholeOrNothing, written } from "./fields.mjs"

const { asked_splits, spread } = M["counting.spreads"]
const { DISPATCH_TYPES } = M["counting.links"]
const { shared_prefix } = M["counting.prefix"]

export const SHARED = ["model", "on", "devices", "context", "batch", "weights", "cache"]
export const START = { model: "llama3.3-70b", on: "h100", devices: "8", batch: "16" }
/** @returns {import("./fields.mjs").Field[]} */
export const fields = () => [
  choice("Type sent to experts", "dispatch", DISPATCH_TYPES, "bfloat16", "type"),
  {
    ...{ name: "split", label: "", start: "" },
    rule: text => {
      if (text === "" || /^[1-9]\d{0,4}(,[1-9]\d{0,4}){2}$/.test(text)) return text
      throw Problem(`split = ${shorten(text)}: no split`, "write tensor, pipeline and data degrees as in 8,1,1")
    },
  },
  written("Shared prefix, tokens", "prefix", wholeOrNothing, { inputmode: "numeric", placeholder: "none" }),
]

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

const lettersOf = (/** @type {any} */ one) => one.split.letters || "one device"
/** @param {import("../plan.mjs").Asked} asked @returns {Promise<import("../plan.mjs").Answer>} */
export async function answer({ state, model, name, given, on }) {
  const found = counted(model, given, state.dispatch),
    codes = found.map(({ split }) => `${split.tensor},${split.pipeline},${split.data}`)
  if (state.split && !codes.includes(state.split))
    throw Problem(
      `split = ${shorten(state.split)}: not over ${grouped(given.devices)} devices`,
      "choose one from the list",
    )
  const fitting = found.filter(one => one.total <= on.memory_bytes),
    shown = found[codes.indexOf(state.split)] ?? fitting[0] ?? found[0],
    chosen = lettersOf(shown),
    prefix = orNull(state.prefix)
  return {
    said: [
      `${name} ${model.counts.formats.phrase(given.format)} on ${grouped(given.devices)} × ${on.name}: `,
      [
        `${grouped(BigInt(fitting.length))} of ${grouped(BigInt(found.length))} splits fit. `,
        `${chosen}: ${bytes(shown.total)} of ${bytes(on.memory_bytes)} on the fullest device at `,
        `${tokensSaid(given)}.`,
      ].join(""),
    ],
    tables: [
      memoryOf(found, shown, codes, on),
      stepOf("decode", "Decode: one token of each sequence, minimum times", found, shown),
      stepOf("prefill", "Prefill: the whole context, minimum times", found, shown),
      ...(given.devices > 1n
        ? [
            messagesOf(shown.decode, `Messages of a decode step with ${chosen}`),
            messagesOf(shown.prefill, `Messages of the prefill with ${chosen}`),
          ]
        : []),
      ...(prefix === null ? [] : [savedOf(model, given, prefix)]),
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

/** @typedef {import("../plan.mjs").Table} Table */
const marked = (/** @type {boolean} */ isShown, /** @type {import("../cells.mjs").Cell[]} */ cells) =>
  Object.assign(cells, isShown ? { cls: "ep-differs" } : {})
/**
 * @param {any[]} found
 * @param {any} shown
 * @param {string[]} codes of the splits in an address
 * @param {Engine.Machine} on
 * @returns {Table}
 */
const memoryOf = (found, shown, codes, on) => ({
  caption: "Memory on the fullest device",
  head: ["Split", "#Weights", "#KV cache", "#Activations", "#Total", "#Left", "Fits"],
  rows: found.map((one, i) =>
    marked(one === shown, [
      { text: lettersOf(one), to: { split: codes[i] } },
      ...["weights", "cache", "activations"].map(term => exact(one.terms.read(term), "bytes")),
      exact(one.total, "bytes"),
      exact(on.memory_bytes - one.total, "bytes"),
      one.total <= on.memory_bytes ? "yes" : "no",
    ]),
  ),
})
/**
 * @param {"decode" | "prefill"} kind
 * @param {string} caption
 * @param {any[]} found
 * @param {any} shown
 * @returns {Table}
 */
const stepOf = (kind, caption, found, shown) => ({
  caption,
  head: ["Split", "#Sent per device", "#Sent in total", "#Compute", "#Memory", "#Links", "Limited by"],
  rows: found.map(one => {
    const { sent, total, limits } = one[kind],
      times = [limits?.compute, limits?.memory, limits?.links].map(time => secondsOf(time))
    return marked(one === shown, [
      ...[lettersOf(one), sentSaid(sent), sentSaid(total), ...times],
      limits?.limited_by ?? "–",
    ])
  }),
})
/** @param {any} step @param {string} caption @returns {Table} */
const messagesOf = ({ transfers }, caption) => ({
  caption,
  head: ["Message", "After", "#Times", "#Devices", "#Sent per device", "#Sent in total"],
  rows: [...transfers].map(t => [
    ...[t.kind, t.after.replaceAll("_", " "), grouped(t.times), grouped(t.among)],
    ...[sentSaid(t.sent), sentSaid(t.total)],
  ]),
})
/** @param {Engine.Model} model @param {Engine.Conditions} given @param {bigint} prefix @returns {Table} */
function savedOf(model, given, prefix) {
  const saved = sharing(model, given, prefix)
  return {
    caption: `A prefix of ${grouped(prefix)} tokens, shared by ${grouped(given.batch)} sequences`,
    head: ["Figure", "#Per sequence", "#Shared", "#Saved"],
    rows: [
      ["KV cache", ...[saved.cache_bytes, saved.shared_cache_bytes, saved.saved_bytes].map(n => exact(n, "bytes"))],
      ["Prefill", ...[saved.flops, saved.shared_flops, saved.saved_flops].map(n => exact(n, "FLOPs"))],
    ],
  }
}
/** @returns {import("../cells.mjs").Cell} */
const sentSaid = (/** @type {Engine.Exact} */ n) => {
  if (!py.truth(n)) return "0"
  const whole = py.int(n)
  return { text: bytes(whole), title: `${grouped(whole)} bytes`, sort: String(whole) }
}
