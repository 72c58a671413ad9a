// An engine with its own options, on one or several devices: memory of each, the figures of its log, its command line.

import { loadGguf } from "../../conditions.mjs"
import { M } from "../../engine/base.mjs"
import { loadRuns } from "../runs.mjs"
import { bytes, exact, grouped, oneListed, py, total } from "./fields.mjs"

/** @type {Record<string, string[]>} the scripts of each engine's rules */
const RULES = {
  vllm: ["vllm_options", "vllm_packed", "vllm_server"],
  sglang: ["vllm_packed", "vllm_server", "sglang"],
  "llama.cpp": ["llama_options", "llama_devices"],
  ollama: ["llama_options", "llama_devices", "ollama"],
  "tensorrt-llm": ["vllm_packed", "vllm_server", "tensorrt_llm"],
}
const script = (/** @type {string} */ name) => import(`../../engine/${name}.mjs`)

/**
 * The deployment for what is asked.
 * @param {import("../plan.mjs").Asked} asked
 */
export async function counted({ state, model, given, on, site }) {
  await Promise.all(["deploying", "engine_options", "cards", ...RULES[state.engine]].map(script))
  if (!["vllm", "sglang", "tensorrt-llm"].includes(state.engine)) await loadGguf()
  const { deploy, options, with_tower } = M["counting.deploying"],
    { words_of } = M["counting.engine_options"],
    { Card } = M["counting.deployments"]
  const [chosen] = options(state.engine, words_of(state.options)),
    tower = state.engine === "sglang" ? await site.towerOf(state.model) : null,
    values = with_tower(state.engine, chosen, tower === undefined ? [] : tower)
  const cards = state.cards
    ? M["counting.cards"].cards_of(state.cards, new py.Dict([...site.accelerators]), 1n)
    : [
        py.apply(Card, [], {
          name: on.name,
          memory_bytes: on.memory_bytes,
          free_bytes: on.memory_bytes,
          vendor: on.accelerator?.vendor ?? "",
          capability: on.accelerator?.capability ?? null,
          kind: on.accelerator?.kind ?? "GPU",
        }),
      ]
  const longest = model.raw.read("max_position_embeddings", 0n),
    length = typeof longest === "bigint" ? longest : 0n,
    draft = await draftIn(values, state.engine, site),
    deployed = (/** @type {Engine.WeightFormats?} */ formats) =>
      deploy(state.engine, model.costs, given, values, cards, state.version, length, draft, formats)
  const one = deployed(null),
    runs = state.engine === "ollama" ? "llama.cpp" : M["counting.deploying"].TITLES.read(state.engine),
    { published } = model.costs,
    isStrange = [...cards].some(card => M["counting.runs"].left_out(given.format, card, runs, published))
  if ((one.is_enough && !isStrange) || state.version) return one
  // The format that fits instead takes the tables of all formats.
  await Promise.all([loadRuns(on.accelerator, true), loadGguf(), script("fitting")])
  return deployed(model.counts.formats)
}

/**
 * The costs of the draft that an option names; null without one. Throws a problem for a model that is not listed,
 * unless the engine takes the draft to be like its target.
 * @param {Engine.Dict<string, any>} values
 * @param {string} engine
 * @param {import("../plan.mjs").Site} site
 */
async function draftIn(values, engine, site) {
  const said = values.read("draft", null),
    inside = said instanceof py.Dict && [null, "draft_model", "dflash"].includes(said.read("method", null)),
    name = inside ? said.read("model", null) : values.read("draft_model", null)
  if (typeof name !== "string" || !name) return null
  if (engine === "sglang" && !site.models.has(name)) return null
  return (await site.modelOf(oneListed("model", name, site.models))).costs
}

/** @param {import("../plan.mjs").Asked} asked @returns {Promise<import("../plan.mjs").Answer>} */
export async function answer(asked) {
  const { state, model, name, given } = asked,
    one = await counted(asked),
    { quoted } = M["counting.deployments"],
    title = M["counting.deploying"].TITLES.read(state.engine),
    command = M["counting.deploying"].COMMANDS.read(state.engine)
  const places = [...one.places],
    fullest = places.reduce((a, b) => (b.most - (b.limit ?? 0n) > a.most - (a.limit ?? 0n) ? b : a)),
    does = one.is_enough ? "fits" : one.may_be_enough ? "may fit" : "does not fit",
    words = quoted(one.command)
  return {
    said: [
      `${name} ${model.counts.formats.phrase(given.format)} ${does} with ${title} ${one.version}: `,
      [
        `${range(fullest)} of ${bytes(fullest.limit ?? 0n)}${places.length > 1 ? " on the fullest device" : ""}. `,
        [...one.advice].join(" "),
      ].join(""),
    ],
    tables: [
      {
        caption: "Memory of each device",
        head: ["Device", "Term", "Certainty", "#Memory", "Rule"],
        rows: places.flatMap((place, i) => [
          ...[...place.terms].map(term => [
            `${i} ${place.name}`,
            term.name,
            String(term.how.value ?? term.how),
            term.least === term.most ? exact(term.least, "bytes") : range(term),
            term.rule,
          ]),
          total([`${i} ${place.name}`, "Total", "", range(place), ""]),
        ]),
      },
      {
        caption: `As ${title} prints it`,
        head: ["Figure", "#Value", "Rule"],
        rows: [...one.figures].map(figure => [figure.what, figure.text, figure.rule]),
      },
    ],
    notes: [
      ...one.notes,
      `${state.engine === "ollama" ? `${words} ollama serve` : `${command} ${state.model} ${words}`}`,
      `Contexts of ${grouped(given.context)} tokens, unless an option says otherwise.`,
    ],
  }
}
const range = (/** @type {{ least: bigint, most: bigint }} */ { least, most }) => {
  const [low, high] = [bytes(least), bytes(most)]
  return low === high ? low : `${low} to ${high}`
}
