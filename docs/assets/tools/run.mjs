// Run a checkpoint: a folder from a reader's disk, read and run in a worker. The page shows the text in tokens, the
// next ones, the attention weights of every head, what each part adds, and what each number was made of. Nothing leaves
// the browser; the address keeps the choices, and never the files.

import { accepted, labelled, make, refusals, replace, select, steps, table } from "./elements.mjs"
import { numberOf, panel } from "./capitals/asked.mjs"
import { designs } from "./capitals/designs.mjs"
import { allHeads, contributions } from "./capitals/heads.mjs"
import { lines } from "./capitals/lines.mjs"
import { bar, matrix, percent, reach, two } from "./capitals/matrices.mjs"
import { patchTables } from "./capitals/patch_tables.mjs"
import { quoted, short, within } from "./capitals/rules.mjs"
import { Asked, Stopped } from "./run/asking.mjs"
import { dropped, KEPT } from "./run/dropped.mjs"

const MOST_MAPS = 400, // small maps that are drawn at once
  MOST_IN_TABLE = 32, // tokens of an opened map
  LONGEST = 4000 // characters of a text in the address
/**
 * @typedef {import("./run/asking.mjs").Tasks} Tasks
 * @typedef {import("./run/folder.mjs").Given} Given
 * @typedef {import("./run/session.mjs").About} About
 * @typedef {Awaited<ReturnType<Tasks["answer"]>> & { problem?: string }} Answer
 * @typedef {import("./run/session.mjs").Progress} Progress
 */

const FIRST = {
  ...{ text: "", source: "", added: "", temperature: "1", top_k: "", top_p: "", layer: "0", head: "0", off: "" },
  ...{ without: "", other: "", patch: "", position: "", word: "", lines: "", number: "", steps: "", step: "" },
}
/** @typedef {typeof FIRST} State */
const DESIGNS = {
  scaling: "Scaling of the scores",
  causal_mask: "Causal mask",
  norms: "All norms",
  residual_stream: "Residual stream",
}
const SHOW = 1, // what is there, once more
  CHOOSE = 2, // the next token in another way
  RUN = 3

const list = (/** @type {string} */ text) => text.split("|").filter(Boolean)
const each = (/** @type {string} */ name, /** @type {RegExp} */ part) => (/** @type {string} */ text) => {
  for (const one of text.split("|"))
    if (!part.test(one)) throw new Error(`${name} = ${quoted(one)}: not a part of a model`)
  return text
}
const whole = (/** @type {string} */ name, /** @type {number} */ most) => (/** @type {string} */ text) =>
  within(name, text, 0, most, true)
/** @type {Record<string, import("./elements.mjs").Rule>} */
const RULES = {
  text: text => short("text", text, LONGEST),
  source: text => short("source", text, LONGEST),
  other: text => short("other", text, LONGEST),
  added(text) {
    if (/^\d{1,9}(,\d{1,9}){0,999}$/.test(text)) return text
    throw new Error(`added = ${quoted(text)}: not a list of token ids`)
  },
  temperature: text => within("temperature", text, 0.1, 3),
  top_k: text => within("top_k", text, 1, 1e9, true),
  top_p: text => within("top_p", text, 0.01, 1),
  layer: whole("layer", 9999),
  head: whole("head", 9999),
  off: each("off", /^\d{1,4}\.(\d{1,4}|mlp|layer)$/),
  without: each("without", /^[\w.]{1,80}$/),
  patch: each("patch", /^\d{1,4}\.(\d{1,4}|mlp|stream)@\d{1,4}$/),
  position: whole("position", 9999),
  word: whole("word", 1e9),
  lines: text => within("lines", text, 1, 1, true),
  steps: text => within("steps", text, 1, 1, true),
  step: whole("step", 99_999),
  number: each("number", /^\w{1,12}(\/\w{1,12}){1,4}$/),
}

export async function mount(/** @type {HTMLElement} */ place) {
  const asked = new Asked(),
    state = { ...FIRST }
  /** @type {Given[]} */
  let files = []
  /** @type {About | null} */
  let about = null
  /** @type {Answer | null} */
  let now = null
  let isBusy = false,
    wanted = 0,
    runs = 0, // forward passes of a text, so far
    drawnMaps = "",
    isExact = false,
    began = "",
    told = "", // of the last run
    known = "" // the text of a link, or the last that ran: the next files run it, too
  /** @type {{ of: string, tables: NonNullable<Awaited<ReturnType<Tasks["moved"]>>> } | null} */
  let moved = null
  const names = /** @type {(keyof State)[]} */ (Object.keys(FIRST))
  const remember = steps(
    place,
    () => ({ values: Object.fromEntries(names.map(name => [name, state[name] === FIRST[name] ? null : state[name]])) }),
    recall,
  )

  const said = make("p", { class: "ep-answer", role: "status" }),
    problem = make("p", { class: "ep-problem", role: "alert", hidden: true }),
    refused = refusals(),
    bars = make("progress", { max: 1, value: 0, "aria-label": "Progress", hidden: true }),
    stop = make("button", { type: "button", hidden: true, onclick: () => asked.stop() }, "Stop")
  const room = () => make("div"),
    summary = room(),
    tokens = room(),
    words = room(),
    looks = room(),
    maps = room(),
    leftOut = room(),
    large = room(),
    parts = room(),
    patches = room(),
    stepsRoom = room(),
    lensRoom = room()
  /** @type {HTMLElementTagNameMap["details"]} */
  const lens = make(
    "details",
    { hidden: true, ontoggle: () => showLens() },
    make("summary", {}, "Logit lens"),
    lensRoom,
  )

  /** @type {HTMLElementTagNameMap["details"]} */
  const everyStep = make(
    "details",
    {
      hidden: true,
      ontoggle: () => everyStep.open !== (state.steps !== "") && set({ steps: everyStep.open ? "1" : "" }),
    },
    make("summary", {}, "Every step"),
    stepsRoom,
  )

  const typed = (/** @type {string} */ name) =>
    make("input", { type: "text", name, autocomplete: "off", spellcheck: "false", maxlength: LONGEST })
  const text = typed("text"),
    source = typed("source"),
    other = typed("other"),
    textLabel = make("span", {}, "Text"),
    otherLabel = make("span", {}, "Another text, of as many tokens"),
    ofSource = labelled("Text for the encoder", source),
    otherNote = make("p", { id: "ep-other", class: "ep-own-note" })
  other.classList.add("ep-own-text")
  other.setAttribute("aria-describedby", "ep-other")
  const fromOther = make(
    "details",
    { class: "ep-more" },
    make("summary", {}, "Patch from another text"),
    make("div", { class: "ep-row" }, make("label", {}, otherLabel, other), make("button", {}, "Read it")),
    otherNote,
  )
  const added = () => (state.added ? state.added.split(",").map(Number) : [])
  const append = (/** @type {number} */ id) => set({ added: [...added(), id].join(",") }, RUN)
  const go = make("button", { type: "submit" }, "Run"),
    next = make("button", { type: "button", onclick: () => now && append(now.likely[0].id) }, "Next token"),
    draw = make("button", { type: "button", onclick: drawn }, "Draw a token"),
    back = make(
      "button",
      { type: "button", onclick: () => set({ added: added().slice(0, -1).join(",") }, RUN) },
      "Remove last token",
    )
  const warmth = make("span", {}, "1")
  const number = (/** @type {string} */ name, /** @type {object} */ more) =>
    make("input", { type: "number", name, ...more })
  const asking = make(
    "form",
    { class: "ep-whatif", hidden: true, onsubmit: begin },
    make("div", { class: "ep-own" }, make("label", {}, textLabel, text)),
    ofSource,
    make(
      "div",
      { class: "ep-row" },
      [go, next, draw, back],
      labelled(
        make("span", {}, "Temperature ", warmth),
        make("input", { type: "range", name: "temperature", min: 0.1, max: 3, step: 0.1, value: 1 }),
      ),
      labelled("Top-k", number("top_k", { min: 1, step: 1, placeholder: "all" })),
      labelled("Top-p", number("top_p", { min: 0.01, max: 1, step: 0.01, placeholder: "1" })),
    ),
    fromOther,
  )
  asking.addEventListener("input", ({ target }) => {
    const field = /** @type {HTMLInputElement} */ (target)
    if (field.type === "text" || !field.checkValidity()) return
    Object.assign(state, { [field.name]: field.value })
    warmth.textContent = state.temperature
    remember(field)
    if (now) later(CHOOSE)
  })
  const chooser = (/** @type {object} */ more) =>
    make("input", {
      type: "file",
      multiple: true,
      ...more,
      onchange: (/** @type {{ target: HTMLInputElement }} */ { target }) =>
        take([...(target.files ?? [])].map(file => ({ path: file.webkitRelativePath || file.name, file }))),
    })
  const folder = chooser({})
  folder.setAttribute("webkitdirectory", "")
  const drop = make(
    "div",
    { class: "ep-whatif ep-drop ep-target" },
    make("p", {}, "Drop the folder of a checkpoint here, or choose it:"),
    make(
      "div",
      { class: "ep-row" },
      labelled("Folder", folder),
      labelled("Or its files", chooser({ accept: ".json,.safetensors" })),
    ),
  )
  drop.addEventListener("dragover", event => event.preventDefault())
  drop.addEventListener("drop", async event => {
    event.preventDefault()
    if (event.dataTransfer) take(await dropped(event.dataTransfer))
  })
  replace(place, drop, refused.line, problem, make("div", { class: "ep-row" }, said, bars, stop), summary, asking)
  place.append(tokens, words, looks, maps, leftOut, large, parts, patches, everyStep, lens)

  const how = () => ({
    temperature: Number(state.temperature),
    topK: Number(state.top_k) || 0,
    topP: Number(state.top_p) || 1,
  })
  // A choice: it goes into the address, and the page shows what becomes of it.
  function set(/** @type {Partial<State>} */ chosen, level = SHOW) {
    Object.assign(state, chosen)
    remember()
    return later(level)
  }

  // Reads the address; invalid parts are dropped.
  function recall() {
    const [values, wrong] = accepted(new URLSearchParams(location.search), RULES, FIRST)
    Object.assign(state, values)
    began = state.number
    known = state.text
    refused.show(wrong)
    text.value = state.text
    source.value = state.source
    other.value = state.other
    fromOther.open = state.other !== ""
    for (const name of /** @type {const} */ (["temperature", "top_k", "top_p"])) {
      const field = asking.elements.namedItem(name)
      if (field instanceof HTMLInputElement) field.value = state[name]
    }
    warmth.textContent = state.temperature
    if (about && state.text) later(RUN)
  }

  /**
   * Does something in the worker: the buttons wait, and a problem is one line.
   * @param {() => Promise<unknown>} task
   */
  async function doing(task) {
    if (isBusy) return
    isBusy = true
    problem.hidden = true
    stop.hidden = false
    for (const button of [go, next, draw, back]) button.disabled = true
    try {
      await task()
    } catch (error) {
      wanted = 0
      if (error instanceof Stopped) {
        said.textContent = about ? "Stopped. Run reads the weights again." : "Stopped."
        now = null
        replace(patches)
        lens.hidden = everyStep.hidden = true
      } else {
        said.textContent = ""
        problem.hidden = false
        problem.textContent = error instanceof Error ? error.message : String(error)
      }
    }
    isBusy = false
    stop.hidden = bars.hidden = true
    go.disabled = false
    for (const button of [next, draw]) button.disabled = !now || now.isFull
    back.disabled = !added().length
    if (wanted) doing(refresh)
  }
  // What is asked for while the worker computes comes next.
  function later(/** @type {number} */ level) {
    wanted = Math.max(wanted, level)
    return doing(refresh)
  }
  async function refresh() {
    while (wanted) {
      const level = asked.worker ? wanted : RUN // after a stop, what is shown has to be computed first
      wanted = 0
      if (level === RUN) await run()
      else if (level === CHOOSE && now) now = { ...now, ...(await asked.ask("answer", { how: how() })) }
      if (now) await show(now)
    }
  }
  const came =
    (/** @type {string} */ what) =>
    (/** @type {Progress} */ { done, of }) => {
      bars.hidden = false
      bars.value = of ? done / of : 1
      said.textContent = what
    }

  function take(/** @type {Given[]} */ given) {
    if (isBusy) asked.stop()
    files = given.filter(({ path }) => KEPT.test(path))
    about = now = null
    wanted = 0
    const rooms = [summary, tokens, words, looks, maps, leftOut, large, parts, patches, stepsRoom, lensRoom]
    for (const part of rooms) replace(part)
    asking.hidden = lens.hidden = everyStep.hidden = true
    // After a stop, which ends the earlier task first.
    setTimeout(() =>
      doing(async () => {
        await open()
        text.focus()
        if (state.text && state.text === known) wanted = RUN
      }),
    )
  }
  async function open() {
    said.textContent = "Reading the files …"
    const read = await asked.ask("open", { given: files }, came("Reading the weights …"))
    about = read
    said.textContent = "Ready."
    replace(
      summary,
      make(
        "p",
        {},
        make("strong", {}, `${read.architecture}, ${read.parameters} parameters. `),
        `${(read.bytes / 1e6).toLocaleString("en", { maximumFractionDigits: 1 })} MB of weights `,
        `(${read.types.join(", ")}) are in memory. A text may have up to ${read.longest} tokens.`,
      ),
      read.warnings.map(line => make("p", { class: "ep-conventions" }, `${line}.`)),
    )
    const isOfIds = !read.hasTokenizer
    textLabel.textContent = isOfIds ? "Token ids, separated by commas: there is no tokenizer.json" : "Text"
    otherLabel.textContent = isOfIds ? "As many others" : "Another text, of as many tokens"
    ofSource.hidden = !read.hasSource
    fromOther.hidden = read.hasSource
    asking.hidden = false
  }
  function begin(/** @type {Event} */ event) {
    event.preventDefault()
    const isNew = text.value !== state.text || source.value !== state.source
    set(
      {
        text: text.value,
        source: source.value,
        other: other.value,
        added: isNew ? "" : state.added,
        ...(isNew || other.value !== state.other ? { patch: "", position: "" } : {}),
      },
      RUN,
    )
  }
  async function run() {
    if (!asked.worker) await open()
    const given = {
      text: state.text,
      source: state.source,
      added: added(),
      how: how(),
      changed: {
        off: list(state.off),
        without: list(state.without),
        patches: list(state.patch),
        other: about?.hasSource ? "" : state.other,
      },
    }
    const answer = await asked.ask("run", given, came("Computing …"))
    now = answer
    known = state.text
    runs++
    const layer = answer.heads[Number(state.layer)] ? Number(state.layer) : Math.max(0, answer.heads.findIndex(Boolean))
    Object.assign(state, {
      layer: `${layer}`,
      head: `${Math.min(Number(state.head), Math.max(0, (answer.heads[layer] ?? 1) - 1))}`,
    })
    told = `${answer.tokens.length} tokens. The last step took ${answer.seconds.toFixed(2)} s.`
    otherNote.textContent = answer.problem
    other.setAttribute("aria-invalid", `${answer.problem !== ""}`)
    lens.hidden = !answer.hasLens
    if (/^(lens|ended)\//.test(state.number)) lens.open = true
    replace(lensRoom)
  }
  async function drawn() {
    /** @type {number | undefined} */
    let one
    await doing(async () => (one = await asked.ask("drawn", { how: how(), chance: Math.random() })))
    if (one !== undefined) append(one)
  }

  async function show(/** @type {Answer} */ answer) {
    const key = (/** @type {Element?} */ element) => (element instanceof HTMLElement ? element.dataset.key : undefined),
      at = place.contains(document.activeElement) ? key(document.activeElement) : undefined
    showTokens(answer)
    showWords(answer)
    await showMaps(answer)
    showDesigns(answer)
    await showLarge(answer)
    await showParts(answer)
    showPatches(answer)
    await showSteps()
    if (lens.open && !lens.hidden && !lensRoom.firstChild) await readLens()
    await showOrigin()
    place.querySelectorAll("table[role=grid]").forEach(table => reach(table))
    if (at && key(document.activeElement) !== at) focus(at)
    said.textContent = told
    bars.hidden = true
  }
  const focus = (/** @type {string} */ key) => {
    for (const element of place.querySelectorAll("[data-key]"))
      if (element instanceof HTMLElement && element.dataset.key === key) return element.focus()
  }

  // A number that a reader asks for: the panel comes to the table that it was first pressed in.
  const open_ = {
    async open(/** @type {string} */ number) {
      if (!document.activeElement?.closest(".ep-origin")) began = number
      await set({ number })
      focus("origin")
    },
    async close() {
      await set({ number: "" })
      focus(`cell ${began}`)
    },
    toggle() {
      isExact = !isExact
      later(SHOW)
    },
  }
  async function showOrigin() {
    place.querySelector(".ep-origin")?.remove()
    if (!state.number) return
    const origin = await asked.ask("origin", { place: state.number, how: how() }, came("Computing each number …"))
    if (!origin) return
    // Below the table that it was asked in.
    const cell = [...place.querySelectorAll("[data-key]")].find(
      one => one instanceof HTMLElement && one.dataset.key === `cell ${began}`,
    )
    const above = cell?.closest(".ep-scroll") ?? large.lastChild ?? words.lastChild
    if (above instanceof Element) above.after(panel(origin, { ...open_, isExact }))
  }

  function showTokens(/** @type {Answer} */ { tokens: all, cached }) {
    const begun = all.length - added().length
    replace(
      tokens,
      make(
        "ol",
        { class: "ep-tokens", "aria-label": "Tokens" },
        all.map((token, i) =>
          make(
            "li",
            { class: i < begun ? null : "newest" },
            make("span", {}, token.text || " "),
            make("small", {}, `${token.id}`),
          ),
        ),
      ),
      cached
        ? make(
            "p",
            { class: "ep-conventions" },
            `The cache holds ${cached.toLocaleString("en")} numbers for these tokens.`,
          )
        : null,
    )
  }
  const unchanged = () => (state.patch || state.without ? "Without the changes" : "With everything on")
  function showWords(/** @type {Answer} */ { likely, left, kept, vocabulary, isFull, first }) {
    const isCut = left < vocabulary
    replace(
      words,
      table(
        `Most likely next tokens, out of ${vocabulary.toLocaleString("en")}`,
        [
          ...["Token", "#Id", "#Logit", "#Probability"],
          ...(first ? [`#${unchanged()}`] : []),
          ...(isCut ? ["#After the cut"] : []),
          "",
        ],
        likely.map(one => {
          const name = visible(one.text)
          return [
            isFull
              ? name
              : make(
                  "button",
                  { type: "button", class: "ep-word", title: `Append ${name}`, onclick: () => append(one.id) },
                  name,
                ),
            `${one.id}`,
            numberOf(`Logit of ${name}`, `logit/${one.id}`, two(one.score), open_),
            numberOf(`Probability of ${name}`, `chance/${one.id}`, percent(one.share), open_),
            ...(first ? [percent(one.before ?? 0)] : []),
            ...(isCut
              ? [
                  one.left
                    ? numberOf(`Probability after the cut of ${name}`, `left/${one.id}`, percent(one.left), open_)
                    : `cut by ${one.by}`,
                ]
              : []),
            bar(isCut ? one.left : one.share),
          ]
        }),
      ),
      first &&
        make(
          "p",
          { class: "ep-conventions" },
          `${unchanged()}, the most likely token is ${visible(first.text)} (${percent(first.share)}). Now it is in `,
          `place ${first.place.toLocaleString("en")} of ${vocabulary.toLocaleString("en")}.`,
        ),
      isCut
        ? make(
            "p",
            { class: "ep-conventions" },
            `The choice is from ${left.toLocaleString("en")} tokens, which have ${percent(kept)} of the probability.`,
          )
        : null,
    )
  }

  const opened = () => ({ layer: Number(state.layer), head: Number(state.head) })
  async function showMaps(/** @type {Answer} */ { heads, feedForwards, tokens: all }) {
    const { layer, head } = opened(),
      isMany = heads.reduce((sum, n) => sum + n, 0) > MOST_MAPS,
      shown = [...heads.keys()].filter(i => !isMany || i === layer),
      drawn = JSON.stringify([runs, isMany && layer])
    const numbered = (/** @type {number[]} */ all) => all.map(i => /** @type {[string, string]} */ ([`${i}`, `${i}`]))
    const choice = (/** @type {"layer" | "head"} */ name, /** @type {number[]} */ all) =>
      select(name, numbered(all), state[name], {
        "data-key": name,
        onchange: (/** @type {{ target: HTMLSelectElement }} */ { target }) =>
          set(name === "layer" ? { layer: target.value, head: "0" } : { head: target.value }),
      })
    replace(
      looks,
      heads.some(Boolean)
        ? make(
            "div",
            { class: "ep-whatif" },
            make(
              "div",
              { class: "ep-row" },
              labelled(
                "Layer",
                choice(
                  "layer",
                  [...heads.keys()].filter(i => heads[i] || i === layer),
                ),
              ),
              labelled("Head", choice("head", [...Array(heads[layer] || 1).keys()])),
            ),
          )
        : make("p", {}, "This model has no attention weights to show for each token pair."),
    )
    if (drawn === drawnMaps) {
      for (const map of maps.querySelectorAll(".ep-head"))
        map.setAttribute("aria-pressed", `${map instanceof HTMLElement && map.dataset.key === `map ${layer}.${head}`}`)
      return
    }
    drawnMaps = drawn
    const size = all.length ** 2
    /** @type {Map<number, Uint8ClampedArray>} */
    const bytes = new Map()
    for (const i of shown) if (heads[i]) bytes.set(i, await asked.ask("small", { layer: i }))
    replace(
      maps,
      allHeads({
        one: "token",
        layers: shown.map(i => ({ number: i, heads: heads[i], hasFeedForward: feedForwards[i] })),
        off: new Set(list(state.off)),
        open: opened(),
        set: chosen => set(chosen, "off" in chosen ? RUN : SHOW),
        picture(layer, head) {
          const picture = make("span", { class: "ep-thumb ep-mask" }),
            its = bytes.get(layer)?.subarray(head * size, (head + 1) * size) ?? new Uint8ClampedArray(size)
          picture.style.maskImage = `url(${shaded(its, all.length)})`
          return picture
        },
      }),
    )
  }
  function showDesigns(/** @type {Answer} */ { designs: all, without }) {
    const known = new Map(Object.entries(DESIGNS))
    replace(
      leftOut,
      all.length
        ? designs(
            without,
            chosen => set(chosen, RUN),
            Object.fromEntries(all.map(name => [name, known.get(name) ?? `Norm ${name}`])),
          )
        : null,
    )
  }
  async function showLarge(/** @type {Answer} */ { heads, tokens: all }) {
    const { layer, head } = opened()
    if (!heads[layer]) return replace(large)
    const shares = await asked.ask("head", { layer, head }),
      keys = await asked.ask("keys", { layer, head }),
      from = Math.max(0, all.length - MOST_IN_TABLE),
      names = all.slice(from).map(({ text }) => visible(text)),
      ask = { ...open_, chosen: state.number },
      name = `Attention weights, layer ${layer}, head ${head}${from ? `, the last ${MOST_IN_TABLE} tokens` : ""}`
    const rows = names.map((_, i) =>
      names.map((_, j) => {
        const share = shares[(from + i) * all.length + from + j]
        return Number.isNaN(share) ? null : share
      }),
    )
    const first = keys ? Math.max(0, keys.length - MOST_IN_TABLE) : 0
    replace(
      large,
      matrix(name, names, names, rows, {
        place: (i, j) => `share/${layer}/${head}/${from + i}/${from + j}`,
        ask,
      }),
      make(
        "label",
        { class: "ep-on" },
        make("input", {
          type: "checkbox",
          "data-key": "lines",
          checked: state.lines === "1",
          onchange: () => set({ lines: state.lines ? "" : "1" }),
        }),
        "Lines from token to token",
      ),
      state.lines
        ? lines(
            names,
            rows.map(row => row.map(x => x ?? 0)),
            name,
          )
        : null,
      keys
        ? [
            matrix(
              `KV cache: the key of each token, layer ${layer}, head ${head}`,
              all.slice(all.length - keys.length + first).map(({ text }) => visible(text)),
              keys[0].map((_, i) => `${i + 1}`),
              keys.slice(first),
              { newest: keys.length - first - 1, place: (i, j) => `key/${layer}/${head}/${first + i}/${j}`, ask },
            ),
            make(
              "p",
              { class: "ep-conventions" },
              "The next step reads all of these rows and writes one more. Earlier rows are not computed again.",
            ),
          ]
        : null,
    )
  }

  async function showParts(/** @type {Answer} */ { likely }) {
    const known = likely.find(({ id }) => `${id}` === state.word) ?? likely[0],
      found = await asked.ask("parts", { token: known.id })
    replace(
      parts,
      contributions({
        one: "token",
        words: likely.map(({ id, text }) => [`${id}`, visible(text)]),
        chosen: { id: known.id, value: `${known.id}` },
        set,
        parts: found,
        ask: { ...open_, chosen: state.number },
      }),
    )
  }

  function showPatches(/** @type {Answer} */ answer) {
    const { tokens: all, other: its, answers, heads, problem } = answer
    if (!its || !answers || problem) return replace(patches)
    const at = Math.min(state.position === "" ? all.length - 1 : Number(state.position), all.length - 1),
      { layer } = opened(),
      key = JSON.stringify([state.text, state.added, state.other, state.off, state.without, layer, at]),
      tables = moved?.of === key ? moved.tables : null
    const compute = make(
      "button",
      {
        type: "button",
        "data-key": "moved",
        onclick: () =>
          doing(async () => {
            const tables = await asked.ask("moved", { layer, at }, came("Computing a forward pass for each patch …"))
            if (tables) moved = { of: key, tables }
            wanted = Math.max(wanted, SHOW)
          }),
      },
      `Patch each part of layer ${layer}`,
    )
    const chosen = list(state.patch),
      sentenceOf = (/** @type {{ text: string }[]} */ tokens) =>
        tokens
          .map(({ text }) => text)
          .join(about?.hasTokenizer ? "" : ",")
          .trim()
    replace(
      patches,
      patchTables({
        text: all.map(({ text }) => text.trim() || visible(text)),
        sentence: sentenceOf(all),
        other: sentenceOf(its),
        answers: /** @type {[string, string]} */ (answers.map(({ text }) => visible(text))),
        at,
        patches: new Set(chosen),
        layers: [layer],
        heads: heads[layer] && tables ? tables.parts.length - 2 : 0,
        moved: tables && { parts: [tables.parts], stream: tables.stream.map(one => [one]) },
        before: compute,
        set: chosen => set(chosen, "patch" in chosen ? RUN : SHOW),
      }),
      chosen.length
        ? make(
            "p",
            { class: "ep-row" },
            chosen.map(patch =>
              make(
                "button",
                {
                  type: "button",
                  "data-key": `patched ${patch}`,
                  onclick: () => set({ patch: chosen.filter(one => one !== patch).join("|") }, RUN),
                },
                `Take back the patch ${patch}`,
              ),
            ),
          )
        : null,
    )
  }

  async function showSteps() {
    everyStep.hidden = false
    everyStep.open = state.steps !== ""
    if (!everyStep.open) return replace(stepsRoom)
    const { layer, head } = opened(),
      all = await asked.ask("steps", { layer }, came("Computing each number …")),
      corner = state.step ? await asked.ask("corner", { step: Number(state.step), head }) : null
    replace(
      stepsRoom,
      table(
        `The steps of layer ${layer} and those around the layers, in the order in which they end`,
        ["Step", "Layer", "Weights", "Shape", "#Mean", "#Largest"],
        all.map(({ number, layer, name, weights, dims, mean, largest }) => [
          make(
            "button",
            {
              type: "button",
              class: "ep-word",
              "data-key": `step ${number}`,
              "aria-pressed": `${state.step === `${number}`}`,
              onclick: () => set({ step: `${number}` }),
            },
            name,
          ),
          layer === null ? "" : `${layer}`,
          weights,
          dims.join(" × "),
          mean.toFixed(4).replace("-", "−"),
          largest.toFixed(4),
        ]),
      ),
      corner &&
        matrix(corner.title, corner.heads, corner.columns, corner.numbers, {
          place: (i, j) => corner.places[i][j],
          ask: { ...open_, chosen: state.number },
        }),
    )
  }

  function showLens() {
    if (lens.open && now && !lensRoom.firstChild) doing(readLens)
  }
  async function readLens() {
    const before = said.textContent
    said.textContent = "Computing the logits after each layer …"
    const rows = await asked.ask("lens", undefined)
    said.textContent = before
    replace(
      lensRoom,
      table(
        "The most likely next tokens if the model ended there",
        ["Where", "First", "#Probability", "Second", "#Probability", "Third", "#Probability"],
        rows.map((row, i) => [
          i ? `After layer ${i - 1}` : "Before the first layer",
          ...row.flatMap(({ id, text, share }) => {
            const name = visible(text)
            return [name, numberOf(`Probability of ${name}`, `ended/${i}/${id}`, percent(share), open_)]
          }),
        ]),
      ),
    )
  }
  recall()
}

// A token whose spaces are seen.
const visible = (/** @type {string} */ text) =>
  text.trim() === text && text ? text : `“${text.replaceAll(" ", "\u00a0")}”`

// Bytes as a picture that covers what they say.
function shaded(/** @type {Uint8ClampedArray} */ bytes, /** @type {number} */ n) {
  const scale = Math.max(1, Math.ceil(64 / n)),
    canvas = Object.assign(document.createElement("canvas"), { width: n * scale, height: n * scale }),
    pixels = new ImageData(n * scale, n * scale)
  for (let y = 0, i = 3; y < n * scale; y++)
    for (let x = 0; x < n * scale; x++, i += 4)
      pixels.data[i] = bytes[Math.floor(y / scale) * n + Math.floor(x / scale)]
  canvas.getContext("2d")?.putImageData(pixels, 0, 0)
  return canvas.toDataURL()
}
