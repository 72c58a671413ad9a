// A worker: computes what a question asks for, by the engine that the tools use, while the search stays quick.

import {
  conditions,
  continued,
  fieldsOf,
  figure,
  FIGURES,
  loadFormats,
  machine,
  model as modelFrom,
  py,
} from "../model.mjs"
import { about, bytes, data, flops, grouped, modelOf, said, short } from "../tools/figures.mjs"

/**
 * @typedef {import("./meant.mjs").Computed} Computed
 * @typedef {{ title: string, said: string }} Answer
 */

const SHORTEST = 10_000n // from here on a number is also written short

const exact = (/** @type {bigint} */ n) => (n < SHORTEST ? grouped(n) : `${grouped(n)} (${short(n)})`)
const tokens = (/** @type {number} */ n) => `${grouped(BigInt(n))} tokens of context`

/**
 * The model with what was changed.
 * @param {Engine.Keys} keys
 * @param {Computed["changes"]} changes
 */
async function changed(keys, changes) {
  const base = await modelOf(keys)
  if (!changes.length) return base
  const made = new py.Dict(py.entries(keys))
  const known = [...fieldsOf(py.type(base.config))]
  for (const [size, key, value] of changes) {
    const wanted = BigInt(value)
    if (size === "n_layers")
      for (const [k, v] of py.entries(made)) made.put(k, continued(v, base.config.symbols.read("n_layers"), wanted))
    for (const spelling of known.find(field => field.key === key)?.also ?? []) made.map.delete(spelling)
    made.put(key, wanted)
  }
  return modelFrom(made)
}

/**
 * @param {Computed} asked
 * @returns {Promise<Answer>}
 */
async function answer(asked) {
  const format = asked.format ?? "published"
  const [{ accelerators }, file] = await Promise.all([data(), about(asked.slug), loadFormats(format)])
  const one = await changed(file.keys, asked.changes)
  const name = asked.changes.length
    ? `${asked.title} with ${asked.changes.map(([size, , value]) => `${size} = ${grouped(BigInt(value))}`).join(", ")}`
    : asked.title
  const isOfTime = asked.what === "tokens_per_second" || asked.what === "devices_needed"
  const on =
    asked.on || isOfTime
      ? machine(
          asked.on ?? [...accelerators.keys()].find(slug => slug === "h100") ?? [...accelerators.keys()][0],
          accelerators,
        )
      : null
  const given = conditions({
    context: BigInt(asked.context),
    batch: BigInt(asked.batch),
    format,
    dtype: "bfloat16",
    devices: BigInt(asked.devices),
    accelerator: on?.accelerator ?? null,
  })
  const value = (/** @type {string} */ what) => py.int(figure(one, what, given) ?? 0n)
  const phrase = one.counts.formats.phrase(given.format)
  const sequences = asked.batch > 1 ? `${grouped(BigInt(asked.batch))} × ` : "",
    at = `${sequences}${tokens(asked.context)}`
  if (asked.size) return ofSize(asked.size, name, one, file)
  if (!asked.what && on) return ofFit()
  switch (asked.what) {
    case "total": {
      const { total, active } = one.counts
      return {
        title: `${name}: ${exact(total)} parameters`,
        said:
          active < total ? `${exact(active)} of them are active per token.` : "All of them are active for every token.",
      }
    }
    case "active":
      return {
        title: `${name}: ${exact(one.counts.active)} active parameters`,
        said: `Of ${exact(one.counts.total)} in total.`,
      }
    case "embedding":
    case "non_embedding":
      return {
        title: `${name}: ${exact(value(asked.what))} ${FIGURES.read(asked.what).title}`,
        said: `Of ${exact(one.counts.total)} in total.`,
      }
    case "cache_bytes_per_token": {
      const n = value(asked.what)
      return {
        title: `${name}: ${grouped(n)} bytes of KV cache per token`,
        said: `At long context, 16 bits per element. It takes ${bytes(value("cache_bytes"))} with ${at}.`,
      }
    }
    case "cache_bytes":
      return {
        title: `${name}: ${bytes(value(asked.what))} of KV cache with ${at}`,
        said: `16 bits per element. At long context, a token adds ${grouped(value("cache_bytes_per_token"))} bytes.`,
      }
    case "weight_bytes":
      return {
        title: `${name}: ${bytes(value(asked.what))} of weights ${phrase}`,
        said: `${grouped(value(asked.what))} bytes for ${exact(one.counts.total)} parameters.`,
      }
    case "decode_flops":
      return {
        title: `${name}: ${flops(value(asked.what))} per generated token`,
        said: `With ${tokens(asked.context)}; a multiply-add counts as 2.`,
      }
    case "tokens_per_second": {
      const rate = on?.accelerator && figure(one, asked.what, given)
      if (!on || rate === null || rate === undefined)
        return {
          title: `${name}: tokens per second`,
          said: "A memory size alone gives no time: name an accelerator.",
        }
      return {
        title: `${name}: at most ${short(py.int(rate))} tokens per second on ${devices(on)}`,
        said: `Weights ${phrase}, ${at}: an upper bound from the hardware’s peaks.`,
      }
    }
    case "devices_needed": {
      const least = on && one.costs.least_split(given, on.memory_bytes)
      return {
        title: `${name} ${phrase}: ${least ? `${grouped(least.devices)} × ${on.name}` : `no split over ${on?.name}`}`,
        said: `For the weights and ${at}.`,
      }
    }
    case "device_bytes":
      return { title: `${name} ${phrase}: ${bytes(value(asked.what))} of memory`, said: terms() }
    default:
      return { title: `${name}: ${asked.what}`, said: "" }
  }

  function terms() {
    const [weights, cache] = [bytes(value("weight_bytes")), bytes(value("cache_bytes"))]
    return `${weights} of weights, ${cache} of KV cache with ${at}; the rest is for the largest operation.`
  }
  function devices(/** @type {Engine.Machine} */ { name: machine }) {
    return asked.devices > 1 ? `${grouped(given.devices)} × ${machine}` : machine
  }
  /** @returns {Answer} */
  function ofFit() {
    const split = on && one.costs.split(given, on.memory_bytes)
    if (!on || !split)
      return { title: `${name} on ${on ? devices(on) : ""}: no valid split`, said: "Try another number of devices." }
    const needed = py.sum([...one.costs.split_bytes(split, given).map.values()].map(([, n]) => n)),
      left = on.memory_bytes - needed
    const least = left < 0n ? one.costs.least_split(given, on.memory_bytes) : null,
      longest = left < 0n ? null : figure(one, "largest_context", given)
    const verdict = left < 0n ? "does not fit" : "fits",
      more = least && least.devices > 1n ? ` It takes ${grouped(least.devices)} of them.` : "",
      room = longest === null ? "" : ` The longest context that fits is ${grouped(py.int(longest))} tokens.`
    return {
      title: `${name} ${phrase}: ${bytes(value("weight_bytes"))} of weights; ${verdict} on ${devices(on)}`,
      said:
        `${bytes(needed)} in total with ${at}${asked.devices > 1 ? ", on each device" : ""}: ` +
        (left < 0n ? `${bytes(-left)} too much.${more}` : `${bytes(left)} left.${room}`),
    }
  }
}

/** @type {Record<string, string>} */
const SIZES = {
  n_layers: "layers",
  d_model: "dimensions in each token's vector (d_model)",
  d_ff: "dimensions inside the feed-forward network (d_ff)",
  n_heads: "attention heads",
  n_kv_heads: "KV heads",
  d_head: "dimensions in each head (d_head)",
  vocab_size: "tokens in the vocabulary",
  n_experts: "routed experts per MoE layer",
}
/**
 * @param {string} size
 * @param {string} name
 * @param {Engine.Model} one
 * @param {import("../tools/figures.mjs").Listed} file
 * @returns {Answer}
 */
function ofSize(size, name, one, file) {
  if (size === "context")
    return file.context
      ? {
          title: `${name}: ${grouped(py.int(file.context))} tokens of context`,
          said: "The longest context that its config allows.",
        }
      : { title: `${name}: no context length`, said: "Its config states none." }
  const n = one.config[size] ?? one.config.symbols.read(size, null)
  const field = [...fieldsOf(py.type(one.config))].find(f => f.field === size)
  if (n === null || n === undefined || Array.isArray(n))
    return { title: `${name}: ${size}`, said: Array.isArray(n) ? "It differs from layer to layer." : "It has none." }
  return {
    title: `${name}: ${grouped(py.int(n))} ${SIZES[size]}`,
    said: field?.key ? `${field.key} in its config.json.` : "",
  }
}

addEventListener("message", async ({ data: { number, asked } }) => {
  try {
    postMessage({ number, ...(await answer(asked)) })
  } catch (error) {
    postMessage({ number, problem: said(error) })
  }
})
