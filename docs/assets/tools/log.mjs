// Read a log: an engine's start-up log, each figure beside the counted one. The text stays in this page.

import "../engine/counting.mjs"
import { conditions, isProblem, loadFormats, loadGguf, Problem, py, WEIGHTS } from "../conditions.mjs"
import { M } from "../engine/base.mjs"
import { fetched } from "./figures.mjs"
import { about, data, modelOf, modelsByFamily, said } from "./kit.mjs"
import { finder } from "./tool.mjs"
import { alert, html, labelled, pairs, render, select, stay, table } from "./view.mjs"

/**
 * @typedef {object} Asked
 * @property {string} text of the log
 * @property {string} slug the reader's choice, or "" for the model that the log names
 * @property {string} weights the same for their format
 * @typedef {object} Reading
 * @property {string} line
 * @property {string} slug
 * @property {import("./view.mjs").Row[]} rows
 * @property {string[]} rest advice and notes
 * @property {string} command
 * @typedef {{ log: string, model: string, weights: string }} Values of the fields
 * @typedef {{ values: Values, reading: Reading | null, problem: string }} Shown
 */

const MOST = 16 * 2 ** 20 // characters of a log
const OF_ENGINES = [
  ...["deploying", "engine_options", "cards", "engines", "vllm_options", "vllm_packed", "vllm_server", "sglang"],
  ...["llama_options", "llama_devices", "ollama", "log_forms", "log_commands", "log_facts", "log_reader"],
  ...["log_rows", "log_replay"],
]
const SIZES = ["hidden_size", "num_hidden_layers"] // that a model must have as the log prints them
const script = (/** @type {string} */ name) => import(`../engine/${name}.mjs`)
const STATES = ["equal", "inside", "explained", "different"]

/**
 * Whether a model is of the architecture that a log names, if it names one.
 * @param {any} log
 * @param {Engine.Keys} keys
 */
async function isOf(log, keys) {
  const type = String(keys.read("model_type")),
    own = type.replace(/_text$/, "")
  if (!log.architecture) return true
  if (log.engine === "llama.cpp" || log.engine === "ollama") {
    const /** @type {Engine.Dict<string, string[]>} */ types = (await fetched("gguf_types.json")).read("types")
    return [...types.read(log.architecture, [])].some(one => one === type || one === own)
  }
  const /** @type {string | undefined} */ meant = (await fetched("vllm_classes.json")).read(log.architecture, undefined)
  return !meant || own === meant || (own.startsWith(meant) && /^\d+$/.test(own.slice(meant.length)))
}

/**
 * The model of the catalog that a log names, with the architecture and the sizes that it prints; none if there is no
 * such model.
 * @param {any} log
 * @returns {Promise<{ slug: string, format: string, why: string }>}
 */
async function modelIn(log) {
  const { inside } = await import("./what-if/names.mjs")
  for (const name of [log.model, log.file]) {
    if (!name) continue
    for (const one of await inside(name)) {
      const { keys } = await about(one.slug)
      const differs = (/** @type {[string, bigint]} */ [key, n]) => SIZES.includes(key) && keys.read(key, n) !== n
      if (![...log.sizes].some(differs) && (await isOf(log, keys))) return one
    }
  }
  return { slug: "", format: "", why: "" }
}

/** What a log says, beside what is counted. Throws a problem. @param {Asked} asked @returns {Promise<Reading>} */
export async function answer({ text, slug, weights }) {
  await Promise.all(OF_ENGINES.map(script))
  if (text.length > MOST) throw Problem("a log of more than 16 million characters", "give its start")
  const { read_log } = M["counting.log_reader"],
    log = read_log(text)
  if (!log.engine)
    throw Problem("no line that an engine prints", "paste a start-up log of vLLM, SGLang, llama.cpp or Ollama")
  const { models } = await data(),
    meant = slug ? { slug, format: "", why: "" } : await modelIn(log)
  if (!meant.slug) throw Problem("the log names no model that is known here", "choose it")
  const { keys, tower } = await about(meant.slug),
    [{ costs }] = await Promise.all([modelOf(keys), log.engine === "vllm" ? null : loadGguf()])
  const { format_in, replay: replayed } = M["counting.log_replay"]
  const format = weights || format_in(log, costs.formats.names, meant.format)
  await loadFormats(format)
  const given = conditions({ context: 4096n, batch: 1n, format, dtype: "bfloat16", devices: 1n, accelerator: null })
  const longest = keys.read("max_position_embeddings", 0n)
  const asked = M["counting.deploying"].with_tower(log.engine, new py.Dict(), tower === undefined ? [] : tower)
  const replay = replayed(log, costs, given, [], typeof longest === "bigint" ? longest : 0n, asked)
  const notes = meant.why.startsWith("taken for") ? [`The model is ${meant.why}.`] : []
  if (log.starts > 1n) notes.push(`The log has ${log.starts} starts: this is number ${log.start}.`)
  return readingOf(log, replay, meant.slug, String(models.get(meant.slug)?.read("name")), notes)
}

/**
 * @param {any} log
 * @param {any} replay
 * @param {string} slug
 * @param {string} name
 * @param {string[]} notes
 * @returns {Reading}
 */
function readingOf(log, replay, slug, name, notes) {
  const { COMMANDS } = M["counting.deploying"],
    { title_of } = M["counting.log_replay"],
    { quoted } = M["counting.deployments"],
    { deployment } = replay
  const state = (/** @type {any} */ row) => String(row.state.value ?? row.state)
  const counts = STATES.map(
    one => /** @type {const} */ ([one, [...replay.rows].filter(row => state(row) === one).length]),
  )
  const counted = counts.filter(([, n]) => n).map(([one, n]) => `${n} ${one}`)
  const words = quoted(deployment.command)
  return {
    line:
      `${title_of(log, deployment)} with ${name}: ${[...replay.rows].length} figures` +
      `${counted.length ? `: ${counted.join(", ")}` : ""}.`,
    slug,
    rows: [...replay.rows].map(row => [String(row.line), row.what, row.printed, row.counted, state(row), row.why]),
    rest: [...notes, ...replay.advice, ...deployment.notes],
    command: log.engine === "ollama" ? `${words} ollama serve` : `${COMMANDS.read(log.engine)} ${slug} ${words}`,
  }
}

// The view

/**
 * @typedef {object} Doing what can be done
 * @property {import("./view.mjs").Groups} groups of models
 * @property {(event: any) => void} typed
 * @property {(event: any) => void} dropped
 */
const FORMATS = () => [["", "as the log says"], ["published", "as published"], ...pairs([...WEIGHTS].slice(1))]

/** @param {Values} values @param {Doing} doing */
const fields = ({ log, model, weights }, { groups, typed, dropped }) => html`
  <form class="ep-whatif" onsubmit=${stay} oninput=${typed} ondragover=${stay} ondrop=${dropped}>
    ${labelled(
      "Log",
      html`<textarea name="log" rows="10" spellcheck="false" autocomplete="off" value=${log}
        placeholder="Paste the start-up log of vLLM, SGLang, llama.cpp or Ollama, or drop its file here." />`,
    )}
    <fieldset class="ep-row">
      <legend>What the log does not say</legend>
      ${labelled("Log file", html`<input type="file" name="file" accept=".log,.txt,text/plain" />`)}
      ${finder("Model", "model", groups, model)}
      ${labelled("Weights", select("weights", /** @type {import("./view.mjs").Groups} */ (FORMATS()), weights))}
    </fieldset>
  </form>`

const HEAD = ["#Line", "Figure", "#Printed", "#Counted", "State", "Why"]
/** @param {Shown} shown @param {Doing} doing */
const view = ({ values, reading, problem }, doing) => html`
  ${fields(values, doing)}${alert(problem)}
  <p class="ep-answer" role="status">${reading && html`<strong>${reading.line}</strong>`}</p>
  <div class="ep-stacks" hidden=${!reading}>${reading && table("Figures of the log", HEAD, reading.rows)}</div>
  <p class="ep-conventions" hidden=${!reading}>${reading?.rest.join(" ")}</p>
  <pre hidden=${!reading}><code>${reading?.command}</code></pre>`

export async function mount(/** @type {HTMLElement} */ place) {
  const { models } = await data(),
    box = document.createElement("div")
  /** @type {Shown} */
  const shown = { values: { log: "", model: "", weights: "" }, reading: null, problem: "" }
  /** @type {Doing} */
  const doing = {
    groups: [["In the log", [["", "as the log says"]]], ...modelsByFamily(models)],
    typed: ({ target }) => (target.name === "file" ? take(target.files?.[0]) : change({ [target.name]: target.value })),
    dropped(event) {
      stay(event)
      take(event.dataTransfer?.files[0])
    },
  }
  const draw = (/** @type {Partial<Shown>} */ more = {}) => render(view(Object.assign(shown, more), doing), box)
  let turn = 0

  async function take(/** @type {File | undefined} */ one) {
    if (one) change({ log: await one.slice(0, MOST).text() })
  }
  async function change(/** @type {Partial<Values>} */ values) {
    const mine = ++turn,
      began = performance.now()
    draw({ values: { ...shown.values, ...values }, problem: "" })
    const { log, model, weights } = shown.values
    if (!log.trim()) return
    try {
      const reading = await answer({ text: log, slug: model, weights })
      if (mine === turn) draw({ reading })
    } catch (error) {
      if (mine !== turn) return
      if (!isProblem(error)) throw error
      draw({ problem: said(error) })
    }
    place.dataset.milliseconds = (performance.now() - began).toFixed(1)
  }
  draw()
  place.replaceChildren(box)
}
