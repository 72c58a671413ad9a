// Layers, or routed experts alone, in the host's memory: what is where, and the minimum time per token.

import { M } from "../../engine/base.mjs"
import "../../engine/offload.mjs"
import { machine } from "../../conditions.mjs"
import { bytes, exact, grouped, oneMachine, orNull, py } from "./fields.mjs"
import { secondsOf, total, wholeOrNothing, written } from "./fields.mjs"

const { asked_offload, placed } = M["counting.offload"]

export const SHARED = ["model", "on", "context", "batch", "weights", "cache"]
export const START = { model: "gpt-oss-120b" }
const HOST = "96GB,2xDDR5-5600,link:64GB/s"
export const fields = (/** @type {import("../plan.mjs").Site} */ { accelerators }) => [
  written(
    "Host: memory, bandwidth, link",
    "host",
    name => text => oneMachine(name, text, accelerators),
    { size: 28 },
    HOST,
  ),
  written("GPU layers", "gpu_layers", wholeOrNothing, { inputmode: "numeric", placeholder: "as many as fit" }),
  written("MoE layers on the host", "n_cpu_moe", wholeOrNothing, {
    ...{ inputmode: "numeric", placeholder: "as few as fit" },
  }),
]

/**
 * Where layers and experts are, and what each memory holds and reads.
 * @param {Engine.Model} model
 * @param {Engine.Conditions} given
 * @param {Engine.Machine} on
 * @param {bigint?} layers
 * @param {bigint?} experts
 */
export function counted({ costs }, given, on, layers, experts) {
  const offload = asked_offload(costs, given, on.memory_bytes, layers, experts)
  return { offload, there: placed(costs, given, offload) }
}
/**
 * The minimum times of a step; null if a machine states no bandwidth, or the host no link.
 * @param {any} there
 * @param {Engine.Machine} on
 * @param {Engine.Machine} host
 * @returns {(Engine.Exact | null)[]}
 */
export const timesOf = (there, on, host) =>
  on.accelerator && host.accelerator
    ? [there.computed_seconds(on.accelerator, host.accelerator), there.moved_seconds(on.accelerator, host.accelerator)]
    : [null, null]

const together = (/** @type {Engine.Dict<string, bigint>} */ terms) => py.sum(py.entries(terms).map(([, n]) => n))
/** @type {Record<string, string>} */
const TERMS = { weights: "Weights", cache: "KV cache", activations: "Largest operation" }
/** @param {import("../plan.mjs").Asked} asked @returns {Promise<import("../plan.mjs").Answer>} */
export async function answer({ state, model, name, given, on, site }) {
  const host = machine(state.host, site.accelerators),
    { offload, there } = counted(model, given, on, orNull(state.gpu_layers), orNull(state.n_cpu_moe)),
    every = model.costs.devices.n_layers,
    fits = there.fits(on.memory_bytes, host.memory_bytes),
    [computed, moved] = timesOf(there, on, host)
  const experts = offload.expert_layers > offload.layers ? offload.expert_layers : 0n
  const where = [
    offload.layers ? `${grouped(offload.layers)} of ${grouped(every)} layers` : "",
    experts ? `the routed experts of the first ${grouped(experts)} of ${grouped(every)} layers` : "",
  ].filter(Boolean)
  const rate = (/** @type {Engine.Exact} */ time) => (Number(given.batch) / py.float(time)).toPrecision(3)
  return {
    said: [
      `${name} ${model.counts.formats.phrase(given.format)} ` +
        `${fits ? "fits on" : "does not fit on"} ${on.name} with ${where.join(" and ") || "nothing"} ` +
        `in the host’s memory: `,
      [
        `${bytes(together(there.device))} of ${bytes(on.memory_bytes)} on the accelerator, `,
        `${bytes(together(there.host))} of ${bytes(host.memory_bytes)} on the host. `,
        computed === null
          ? "Give both bandwidths for the minimum time per token."
          : `At most ${rate(computed)} tokens per second if the CPU computes the host’s part` +
            (moved === null || !there.host_read ? "." : `, ${rate(moved)} if that part is moved to the accelerator.`),
      ].join(""),
    ],
    tables: [
      memoryOf(there),
      {
        caption: "Minimum time of a decode step",
        head: ["Host’s part", "#Time"],
        rows: [
          ["computed by the CPU", secondsOf(computed)],
          ["moved to the accelerator", secondsOf(moved)],
        ],
      },
    ],
    notes: [
      "As llama.cpp places them: the last layers on the accelerator (--n-gpu-layers), the routed experts of the " +
        "first layers on the host (--n-cpu-moe).",
      "Without either number, the host holds as little as possible.",
    ],
  }
}
/** @param {any} there @returns {import("../plan.mjs").Table} */
const memoryOf = there => ({
  caption: "Memory, and bytes read per token",
  head: ["Term", "#On the accelerator", "#On the host"],
  rows: [
    ...py
      .entries(/** @type {Engine.Dict<string, bigint>} */ (there.device))
      .map(([term, n]) => [TERMS[term] ?? term, exact(n, "bytes"), exact(there.host.read(term, 0n), "bytes")]),
    total(["Total", exact(together(there.device), "bytes"), exact(together(there.host), "bytes")]),
    ["Read per token", exact(there.device_read, "bytes"), exact(there.host_read, "bytes")],
  ],
})
