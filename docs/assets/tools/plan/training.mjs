// Training: in full or with adapters, split over devices; memory by term, trainable parameters, the time of a run.

import { M } from "../../engine/base.mjs"
import "../../engine/bill.mjs"
import "../../engine/training_plan.mjs"
import { architectureOf, asked as among, isProblem } from "../../model.mjs"
import { bytes, choice, exact, grouped, orNull, Problem, py, said } from "./fields.mjs"
import { BOUNDS, checked, percent, several, shorten, total, upper, written } from "./fields.mjs"

const { asked, narrowed, Narrowing, plan, run, amount_of_tokens, named, names, ZERO, UTILIZATION, MOST_WATTS } =
  M["counting.training_plan"]
const { GRADIENTS, METHODS, OPTIMIZERS, RECOMPUTED } = M["counting.training_setup"]
const { Adapter, RANK } = M["counting.adapter_choice"]
const { BIASES, MOST_RANK } = M["counting.adapters"]
const { Prices } = M["counting.bill"],
  { amount_of: amountOf } = M["counting.asked"]

export const SHARED = ["model", "on", "devices"]
export const START = { model: "llama3.1-8b", on: "h100", devices: "8" }
const TITLES = /** @type {Record<string, string>} */ ({
  full: "full fine-tuning",
  lora: "LoRA",
  dora: "DoRA",
  qlora: "QLoRA",
  adamw: "AdamW",
  "adamw-8bit": "8-bit AdamW",
  adafactor: "Adafactor",
  muon: "Muon",
  sgd: "SGD",
  "sgd-momentum": "SGD with momentum",
  0: "DDP",
  1: "ZeRO-1",
  2: "ZeRO-2",
  3: "ZeRO-3",
  fsdp: "FSDP",
})
const titled = (/** @type {string} */ name) => TITLES[name] ?? name
const whole = (/** @type {bigint} */ most) => (/** @type {string} */ name) => (/** @type {string} */ text) =>
  `${among.whole(name, text, most)}`
const wholeOr = (/** @type {bigint} */ most) => (/** @type {string} */ name) => (/** @type {string} */ text) =>
  text && whole(most)(name)(text)
/**
 * A number from 1.
 * @param {string} label
 * @param {string} name
 * @param {bigint} max
 */
const number = (label, name, max, start = "1") =>
  written(label, name, whole(max), { type: "number", min: 1, step: 1, inputmode: "numeric", max }, start)
/**
 * @param {string} label
 * @param {string} name
 * @param {string} start
 * @param {string[]} names
 */
const yesOrNo = (label, name, start, names) =>
  choice(label, name, names, start, text => {
    if (names.includes(text)) return text
    throw Problem(`${name} = ${shorten(text)}: expected yes or no`)
  })
const listed = (/** @type {string} */ name) => (/** @type {string} */ text) =>
  text === "" ? "" : [...names(name, text)].join(",")
const targets = (/** @type {string} */ name) => (/** @type {string} */ text) =>
  text && typeof named(name, text) === "string" ? text : listed(name)(text)
// PEFT's further options: whatever their text, the engine says whether it can be read.
const OF_PEFT = [
  "exclude_modules",
  "layers_to_transform",
  "layers_pattern",
  "rank_pattern",
  "alpha_pattern",
  "target_parameters",
]
const narrowing = checked((name, text) =>
  narrowed(Adapter(), Narrowing(...OF_PEFT.map(one => (one === name && text) || null))),
)
const runTokens = checked((_, text) => {
  try {
    if (text) amount_of_tokens(text)
  } catch (error) {
    throw isProblem(error) ? Problem(`tokens = ${said(error)}`) : error
  }
})
const amount = checked((name, text) => text && amountOf(name, text)),
  price = { inputmode: "decimal", placeholder: "your price", size: 9 }
const { MOST_DEVICES, MOST_TOKENS, MOST_TEXTS } = BOUNDS
export const fields = () => [
  choice("Method", "method", METHODS, "full", "method", titled),
  written("Rank", "rank", wholeOr(MOST_RANK), { inputmode: "numeric", placeholder: String(RANK), size: 5 }),
  written("Target modules", "target_modules", targets, { placeholder: "PEFT’s default", size: 20 }),
  written("Target parameters", "target_parameters", narrowing, { placeholder: "experts.gate_up_proj", size: 20 }),
  written("Exclude modules", "exclude_modules", narrowing, { placeholder: "none", size: 14 }),
  written("Layers to transform", "layers_to_transform", narrowing, { placeholder: "all, or 0-7", size: 10 }),
  written("Layers pattern", "layers_pattern", narrowing, { placeholder: "layers", size: 10 }),
  written("Rank pattern", "rank_pattern", narrowing, { placeholder: "q_proj=32", size: 14 }),
  written("Alpha pattern", "alpha_pattern", narrowing, { placeholder: "q_proj=32", size: 14 }),
  choice("Biases", "bias", BIASES, "none", "choice"),
  written("Modules to save", "modules_to_save", listed, { placeholder: "none", size: 14 }),
  choice("Optimizer", "optimizer", OPTIMIZERS, "adamw", "optimizer", titled),
  choice("Sharding", "zero", ZERO, "3", "stage of ZeRO", titled),
  number("Tensor parallel", "tensor", MOST_DEVICES),
  number("Pipeline stages", "pipeline", MOST_DEVICES),
  number("Expert parallel", "expert", MOST_DEVICES),
  yesOrNo("Sequence parallel", "sequence_parallel", "no", ["no", "yes"]),
  choice("Recompute", "recompute", RECOMPUTED, "selective", "recomputation"),
  choice("Gradients", "gradients", GRADIENTS, "bfloat16", "type"),
  yesOrNo("Master weights", "master_weights", "yes", ["yes", "no"]),
  number("Sequence length, tokens", "sequence", MOST_TOKENS, "4096"),
  number("Micro-batch", "micro_batch", MOST_TEXTS),
  written("Tokens of the run", "tokens", runTokens, { placeholder: "15T, 300B" }),
  written("Utilization", "utilization", checked(among.share), { inputmode: "decimal", size: 5 }, String(UTILIZATION)),
  written("Watts per device", "watts", wholeOr(MOST_WATTS), {
    inputmode: "numeric",
    placeholder: "as stated",
    size: 7,
  }),
  written("Price of a device and hour", "price_per_hour", amount, price),
  written("Price of a kWh", "electricity", amount, price),
]

const OF_ADAPTERS = ["rank", "target_modules", "bias", "modules_to_save", ...OF_PEFT]
export const idle = (/** @type {import("../plan.mjs").State} */ { method }) => (method === "full" ? OF_ADAPTERS : [])

/**
 * What it takes.
 * @param {Engine.Model} model
 * @param {import("../plan.mjs").State} state
 */
export function counted(model, state) {
  const isFull = state.method === "full"
  const [setup, adapter] = asked({
    devices: BigInt(state.devices),
    method: state.method,
    rank: isFull ? null : orNull(state.rank),
    target_modules: isFull || state.target_modules === "" ? null : state.target_modules,
    bias: isFull ? null : state.bias,
    modules_to_save: isFull ? null : state.modules_to_save || null,
    optimizer: state.optimizer,
    zero: state.zero,
    tensor: BigInt(state.tensor),
    pipeline: BigInt(state.pipeline),
    expert: BigInt(state.expert),
    sequence_parallel: state.sequence_parallel === "yes",
    recompute: state.recompute,
    sequence: BigInt(state.sequence),
    micro_batch: BigInt(state.micro_batch),
    gradients: state.gradients,
    no_master_weights: state.master_weights === "no",
  })
  const options = Narrowing(...OF_PEFT.map(name => (isFull ? null : state[name] || null)))
  return plan(model.costs, architectureOf(model.raw), setup, narrowed(adapter, options))
}
/**
 * The run of so many tokens; null where none are given.
 * @param {any} planned
 * @param {import("../plan.mjs").State} state
 * @param {Engine.Machine} on
 * @param {Map<string, bigint>} watts
 */
export const runOf = (planned, state, on, watts) =>
  run(
    planned,
    on.accelerator,
    state.tokens === "" ? null : amount_of_tokens(state.tokens),
    Number(state.utilization),
    orNull(state.watts) ?? watts.get(state.on) ?? on.accelerator?.watts ?? null,
  )

/**
 * The cost of a run at the user's prices; null without any.
 * @param {any} went
 * @param {import("../plan.mjs").State} state
 */
function moneyOf(went, state) {
  const price = (/** @type {string} */ name) => (state[name] === "" ? null : amountOf(name, state[name]))
  return went.money(Prices(price("price_per_hour"), null, null, price("electricity")))
}

const three = (/** @type {Engine.Exact} */ n) => Number(py.float(n).toPrecision(3)).toLocaleString("en")
/** @param {import("../plan.mjs").Asked} asked @returns {Promise<import("../plan.mjs").Answer>} */
export async function answer({ state, model, name, on, site }) {
  const planned = counted(model, state),
    went = runOf(planned, state, on, site.watts),
    paid = went && moneyOf(went, state),
    { adapters, trainable, setup } = planned,
    left = on.memory_bytes - planned.total,
    largest = planned.largest_micro_batch(on.memory_bytes)
  const how = adapters
    ? `with ${titled(state.method)} of rank ${grouped(adapters.adapter.rank)} on ${[...adapters.targets].join(", ")}`
    : "in full"
  return {
    said: [
      `Training ${name} ${how} ${left < 0n ? "does not fit" : "fits"} on ${several(setup, on)}: `,
      [
        `${bytes(planned.total)} of ${bytes(on.memory_bytes)}${setup.devices > 1n ? " on the fullest device" : ""}, `,
        `${grouped(trainable)} trainable parameters (${percent(trainable, model.counts.total)}). `,
        largest === null
          ? ""
          : largest
            ? `The largest micro-batch that fits is ${grouped(largest)}. `
            : "No micro-batch fits. ",
        went === null
          ? ""
          : `The run takes ${three(went.device_hours)} device-hours, ` +
            `${three(py.float(went.seconds) / 3600)} hours on ${grouped(went.devices)}` +
            `${went.joules === null ? "" : `, ${three(py.float(went.joules) / 3.6e6)} kWh`}` +
            `${paid === null ? "" : ` and ${three(paid)} at your prices`}.`,
      ].join(""),
    ],
    tables: [
      memoryOf(planned, left),
      ...(adapters ? [adaptedOf(adapters)] : []),
      ...(went ? [wentOf(went, paid)] : []),
    ],
    notes: [
      adapters && adapters.unmatched.length
        ? `Names that are no module’s: ${[...adapters.unmatched].slice(0, 9).map(shorten).join(", ")}. `
        : "",
      `${setup.devices > 1n ? `Split: ${setup.said}. ` : ""}Weights and gradients in 16 bits unless stated otherwise.`,
      went === null ? "Give the number of tokens to get the time of the run." : "Energy is that of the devices alone. ",
      paid === null ? "" : "Money is in the currency of your prices.",
    ],
  }
}

/** @typedef {import("../plan.mjs").Table} Table */
/** @param {any} planned @param {bigint} left bytes @returns {Table} */
const memoryOf = ({ setup, terms, total: sum }, left) => ({
  caption: `Memory${setup.devices > 1n ? " on the fullest device" : ""}`,
  head: ["Term", "#Memory"],
  rows: [
    ...py
      .entries(/** @type {Engine.Dict<string, bigint>} */ (terms))
      .filter(([, n]) => n)
      .map(([term, n]) => [upper(term), exact(n, "bytes")]),
    total(["Total", exact(sum, "bytes")]),
    [left < 0n ? "Missing" : "Left", exact(left < 0n ? -left : left, "bytes")],
  ],
})
/** @param {any} adapters @returns {Table} */
const adaptedOf = ({ modules, biases, saved }) => ({
  caption: "Adapted modules",
  head: ["Module", "#Out × in", "#Layers", "#Trainable"],
  rows: [
    ...[...modules].map(({ module, layers, count }) => [
      module.name,
      `${grouped(module.outputs)} × ${grouped(module.inputs)}`,
      grouped(BigInt(layers.length)),
      grouped(count),
    ]),
    ...(biases ? [["Biases", "", "", grouped(biases)]] : []),
    ...(saved ? [["Modules to save", "", "", grouped(saved)]] : []),
  ],
})
/** @param {any} went @param {Engine.Exact?} paid @returns {Table} */
const wentOf = (went, paid) => ({
  caption: "The run",
  head: ["Figure", "#Value"],
  rows: [
    ["FLOPs", exact(went.flops, "FLOPs")],
    ["Time, hours", three(py.float(went.seconds) / 3600)],
    ["Device-hours", three(went.device_hours)],
    ...(went.joules === null ? [] : [["Energy, kWh", three(py.float(went.joules) / 3.6e6)]]),
    ...(paid === null ? [] : [["Money", three(paid)]]),
  ],
})
