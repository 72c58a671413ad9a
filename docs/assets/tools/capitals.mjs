// The small model, asked: any sentence of its words, word by word, with its attention, its cache, and the logits after
// each layer. The facts load with the page, the model and the engine that runs it once a reader turns to the form.

import { accepted, steps } from "./address.mjs"
import { labelled, make, refusals, replace, select } from "./elements.mjs"
import { combobox } from "./combobox.mjs"
import { percent, two } from "./capitals/numbers.mjs"
import { LONGEST, oneOf, quoted, short, within } from "./capitals/rules.mjs"

const FOLDER = new URL("../capitals/", import.meta.url),
  SHOWN = 8,
  COMPARED = 5
/**
 * @typedef {"country" | "sentence" | "text" | "added" | "temperature" | "top_k" | "top_p" | "layer" | "head"} Field
 * @typedef {"off" | "without" | "with" | "other" | "patch" | "position" | "word" | "lines" | "number"} Chosen
 * @typedef {Record<Field | Chosen, string>} State
 * @typedef {typeof import("./capitals/inside.mjs") & typeof import("./capitals/small.mjs") &
 *   typeof import("./capitals/patching.mjs") & typeof import("./capitals/lines.mjs") &
 *   typeof import("./capitals/designs.mjs") & typeof import("./capitals/shown.mjs")} Inside
 * @typedef {import("./capitals/small.mjs").Small} Small
 * @typedef {import("./run/seen.mjs").Seen} Run
 * @typedef {Small & { inside: Inside }} Known
 * @typedef {import("./capitals/inside.mjs").Candidate[]} Candidates
 * @typedef {object} Answer
 * @property {string[]} text so far
 * @property {number} begun how many of its words were given
 * @property {Run} run what the model makes of it
 * @property {Run} base the same without patches
 * @property {Run | null} from another sentence to patch from
 * @property {string} problem with that sentence
 * @property {Candidates} all
 * @property {Candidates | null} whole the words without any change, if there is one
 * @property {import("./run/session.mjs").How} how the next word is chosen
 * @typedef {Known & Answer} Now
 */

const FIRST = {
  country: "France",
  sentence: "0",
  text: "",
  added: "",
  temperature: "1",
  top_k: "",
  top_p: "",
  off: "",
  without: "",
  with: "",
  other: "",
  patch: "",
  position: "",
  word: "",
  lines: "",
  number: "",
}
const text = async (/** @type {string} */ name) => {
  const answer = await fetch(new URL(name, FOLDER))
  if (!answer.ok) throw new Error(`${name} could not be loaded: ${answer.status}`)
  return answer.text()
}

/** @type {Promise<{ countries: Record<string, string>[], sentences: string[] }> | undefined} */
let known
/** @type {Promise<Known> | undefined} */
let loaded
// The countries with their facts, and the sentences.
const facts = () =>
  (known ??= Promise.all([text("countries.csv"), text("sentences.txt")]).then(([rows, sentences]) => {
    const [head, ...lines] = rows
      .trim()
      .split("\n")
      .map(line => line.trim().split(","))
    return {
      countries: lines.map(line => Object.fromEntries(head.map((name, i) => [name, line[i]]))),
      sentences: sentences
        .trim()
        .split("\n")
        .map(line => line.trim()),
    }
  }))
// The model, its words, and the engine.
const theModel = () => (loaded ??= load())
/** @returns {Promise<Known>} */
async function load() {
  // At once, and not as each asks for the next; an error is of the one that needs it.
  const scripts = ["python", "engine", "numpy", "loaded", "ablations", "gpt2"].map(name => `engine/${name}`)
  const parts = ["capitals/changes", "capitals/chances", "capitals/patch_tables", "run/session", "run/seen", "run/tape"]
  for (const name of [...scripts, ...parts.map(part => `tools/${part}`), "architectures", "running"])
    import(`../${name}.mjs`).catch(() => {})
  const insides = await Promise.all([
    import("./capitals/small.mjs"),
    import("./capitals/inside.mjs"),
    import("./capitals/patching.mjs"),
    import("./capitals/lines.mjs"),
    import("./capitals/designs.mjs"),
    import("./capitals/shown.mjs"),
  ])
  const inside = /** @type {Inside} */ (Object.assign({}, ...insides))
  return { ...(await inside.smallModel()), inside }
}

const list = (/** @type {string} */ text) => text.split("|").filter(Boolean)
const start = (/** @type {string} */ sentence) => sentence.slice(0, sentence.lastIndexOf("{")).trim()
const filled = (/** @type {string} */ sentence, /** @type {Record<string, string>} */ country) =>
  start(sentence)
    .split(" ")
    .map(word => word.replace(/\{(\w+)\}/, (_, name) => country[name]))

export async function mount(/** @type {HTMLElement} */ place) {
  const { countries, sentences } = await facts()
  const { layer = "0", head = "0" } = place.dataset // of the static example
  /** @type {State} */
  const DEFAULTS = { ...FIRST, layer, head }
  const names = /** @type {(keyof State)[]} */ (Object.keys(DEFAULTS))
  const state = { ...DEFAULTS }
  const remember = steps(
    place,
    () => ({
      values: Object.fromEntries(names.map(name => [name, state[name] === DEFAULTS[name] ? null : state[name]])),
    }),
    recall,
  )

  const results = make("div", {}, ...place.childNodes),
    said = make("p", { class: "ep-answer", role: "status" }),
    refused = refusals(),
    looks = make("div", { class: "ep-row" })
  const next = make("button", { type: "button", onclick: () => add() }, "Next word"),
    draw = make("button", { type: "button", onclick: () => add(null) }, "Draw a word"),
    back = make("button", { type: "button", onclick: remove }, "Remove last word")
  const warmth = make("span", {}, state.temperature),
    own = ownText(value => {
      Object.assign(state, { text: value, added: "" })
      changed(own.field)
    })
  const other = otherText(countries.map(c => c.country))
  const form = make(
    "form",
    { class: "ep-whatif", onsubmit: (/** @type {Event} */ event) => event.preventDefault() },
    make(
      "div",
      { class: "ep-row" },
      labelled(
        "Country",
        select(
          "country",
          countries.map(c => [c.country, c.country.replace(/^the /, "The ")]),
          state.country,
        ),
      ),
      labelled(
        "Sentence",
        select(
          "sentence",
          sentences.map((s, i) => [`${i}`, `${start(s).replace(/\{\w+\}/, "…")} …`]),
          state.sentence,
        ),
      ),
    ),
    own.element,
    make(
      "div",
      { class: "ep-row" },
      next,
      draw,
      back,
      labelled(
        make("span", {}, "Temperature ", warmth),
        make("input", { type: "range", name: "temperature", min: 0.1, max: 3, step: 0.1, value: state.temperature }),
      ),
      labelled("Top-k", make("input", { type: "number", name: "top_k", min: 1, step: 1, placeholder: "all" })),
      labelled(
        "Top-p",
        make("input", { type: "number", name: "top_p", min: 0.01, max: 1, step: 0.01, placeholder: "1" }),
      ),
    ),
    looks,
    other.element,
  )
  replace(place, form, refused.line, said, results)
  form.addEventListener("input", event => {
    const field = /** @type {HTMLInputElement | HTMLSelectElement} */ (event.target),
      { name, value } = field
    if (name === "text" || !field.checkValidity()) return
    if (name === "country" || name === "sentence") Object.assign(state, { text: "", added: "" })
    if (name === "with" || name === "other") Object.assign(state, { with: "", other: "", patch: "" })
    Object.assign(state, { [name]: value })
    warmth.textContent = state.temperature
    changed(field)
  })
  for (const sign of ["focusin", "pointerover"])
    form.addEventListener(sign, () => theModel().catch(() => (loaded = undefined)), { once: true })
  function changed(/** @type {EventTarget?} */ field = null) {
    refused.show([])
    remember(field)
    return show()
  }

  // Reads the address; invalid parts are dropped.
  async function recall() {
    const given = new URLSearchParams(location.search)
    if (!loaded && !names.some(name => given.has(name))) return
    const { config, vocabulary, inside } = await theModel().catch(() => ({
      config: null,
      vocabulary: null,
      inside: null,
    }))
    const upTo = (/** @type {number | undefined} */ n) => Array.from({ length: n ?? 0 }, (_, i) => `${i}`)
    const [values, wrong] = accepted(
      given,
      {
        country: text =>
          oneOf(
            "country",
            text,
            countries.map(c => c.country),
          ),
        sentence: text => oneOf("sentence", text, upTo(sentences.length)),
        layer: text => oneOf("layer", text, upTo(config?.n_layer)),
        head: text => oneOf("head", text, upTo(config?.n_head)),
        temperature: text => within("temperature", text, 0.1, 3),
        top_k: text => within("top_k", text, 1, config?.vocab_size ?? 1, true),
        top_p: text => within("top_p", text, 0.01, 1),
        off: text => {
          const parts = upTo(config?.n_layer).flatMap(l =>
            [...upTo(config?.n_head), "mlp", "layer"].map(p => `${l}.${p}`),
          )
          for (const part of text.split("|")) oneOf("off", part, parts)
          return text
        },
        without: text => {
          for (const name of text.split("|")) oneOf("without", name, Object.keys(inside?.DESIGNS ?? {}))
          return text
        },
        with: text =>
          oneOf(
            "with",
            text,
            countries.map(c => c.country),
          ),
        other: text => short("other", text),
        patch: text => {
          const parts = upTo(config?.n_layer).flatMap(l =>
            [...upTo(config?.n_head), "mlp", "stream"].map(p => `${l}.${p}`),
          )
          for (const patch of text.split("|")) {
            const [part, at] = patch.split("@")
            oneOf("patch", part, parts)
            oneOf("patch", at ?? "", upTo(config?.n_positions))
          }
          return text
        },
        position: text => oneOf("position", text, upTo(config?.n_positions)),
        lines: text => oneOf("lines", text, ["1"]),
        number: text => {
          if (/^\w{1,12}(\/\w{1,12}){1,4}$/.test(text)) return text
          throw new Error(`number = ${quoted(text)}: not a place in this model`)
        },
        word: text => oneOf("word", text, vocabulary?.words ?? []),
        text: text => short("text", text),
        added: text => {
          const strange = text.split("|").find(word => word && !vocabulary?.ids.has(word))
          if (strange === undefined) return text
          throw new Error(`added = ${quoted(strange)}: not in the model’s vocabulary`)
        },
      },
      DEFAULTS,
    )
    Object.assign(state, values)
    const [, layer, head] = /^(?:share|score|mixed|found)\/(\d+)\/(\d+)\//.exec(state.number) ?? []
    if (!given.has("layer") && !given.has("head"))
      if (upTo(config?.n_layer).includes(layer) && upTo(config?.n_head).includes(head))
        Object.assign(state, { layer, head })
    const isNew = state.number !== "" && state.number !== began
    began = state.number
    await show()
    refused.show(config ? wrong : [])
    if (isNew) focus("origin")
  }

  const added = () => list(state.added)
  /** Adds a word; without one, the most probable, or with `null` one of those that are left, by chance. */
  async function add(/** @type {string | null | undefined} */ word = undefined) {
    if (typeof word !== "string") {
      const now = await run()
      if (!now) return
      const { vocabulary, all, inside } = now
      word = vocabulary.words[word === null ? inside.drawn(all, Math.random()) : all[0].id]
    }
    state.added = [...added(), word].join("|")
    changed()
  }
  function remove() {
    state.added = added().slice(0, -1).join("|")
    changed()
  }

  // The words that were given, known or not, as far as the first that is not.
  function given(/** @type {Small["vocabulary"]} */ vocabulary) {
    if (!state.text) {
      const country = countries.find(c => c.country === state.country) ?? countries[0]
      return { words: filled(sentences[Number(state.sentence)], country), unknown: null, pieces: [] }
    }
    const pieces = vocabulary.cut(state.text),
      strange = pieces.findIndex(({ id }) => id === undefined)
    return {
      words: pieces.slice(0, strange < 0 ? pieces.length : strange).map(piece => piece.text),
      unknown: strange < 0 ? null : pieces[strange],
    }
  }

  // The other sentence, and what is wrong with it: it needs a word for each of the text.
  /** @returns {{ words: string[] | null, problem: string }} */
  function another(/** @type {Small["vocabulary"]} */ vocabulary, /** @type {string[]} */ text) {
    const none = (/** @type {string} */ problem) => ({ words: null, problem })
    if (!state.with && !state.other) return none("")
    const pieces = state.other ? vocabulary.cut(state.other) : []
    const unknown = pieces.find(({ id }) => id === undefined)
    if (unknown) return none(`“${unknown.text}” is unknown.`)
    const named = countries.find(c => c.country === state.with) ?? countries[0]
    const words = state.other
      ? pieces.map(piece => piece.text)
      : state.text
        ? text.map(word => (countries.some(c => c.country === word) ? named.country : word))
        : filled(sentences[Number(state.sentence)], named)
    if (words.length !== text.length)
      return none(`It has ${words.length} words, and the sentence above has ${text.length}: a patch needs as many.`)
    return { words, problem: "" }
  }

  // The text so far: only new tokens are computed, the others are in the cache.
  /** @returns {Promise<Now | null>} null if there is no word */
  async function run() {
    const known = await theModel(),
      { session, inside, vocabulary, config } = known,
      { words } = given(vocabulary)
    const text = [...words, ...added().filter(word => vocabulary.ids.has(word))].slice(0, config.n_positions)
    if (!text.length) return null
    const idsOf = (/** @type {string[]} */ words) => words.map(word => /** @type {number} */ (vocabulary.ids.get(word)))
    const how = {
        temperature: Number(state.temperature),
        topK: Number(state.top_k) || config.vocab_size,
        topP: Number(state.top_p) || 1,
      },
      other = another(vocabulary, text)
    session.run(idsOf(text), [], undefined, {
      off: list(state.off),
      without: list(state.without),
      patches: list(state.patch),
      other: other.words && idsOf(other.words),
    })
    const { now: run, base, from = null, plain } = session
    if (!run || !base || !plain) return null
    const all = inside.candidates(run.scores, how),
      whole = run === plain ? null : inside.candidates(plain.scores, how)
    return { ...known, text, begun: Math.min(words.length, text.length), run, base, from, all, whole, how, ...other }
  }

  async function show() {
    if (!loaded) said.textContent = "Loading the model …"
    let now, vocabulary
    try {
      now = await run()
      ;({ vocabulary } = await theModel())
    } catch (error) {
      loaded = undefined
      said.textContent = error instanceof Error ? error.message : String(error)
      return
    }
    const { words: known, unknown } = given(vocabulary)
    other.show(state, now?.problem ?? "")
    own.show([...known, ...added()].join(" "), state.text, vocabulary, unknown, now?.run.scores ?? [])
    for (const button of [next, draw])
      button.disabled = !now || unknown !== null || now.text.length >= now.config.n_positions
    back.disabled = !added().length
    if (!now) {
      said.textContent = state.text ? "Write a word that the model knows." : ""
      return drawn(null, (await theModel()).inside)
    }
    const { config, text } = now,
      isFull = text.length >= config.n_positions
    if (!looks.firstChild)
      replace(
        looks,
        labelled("Layer", select("layer", numbered(config.n_layer), state.layer)),
        labelled("Head", select("head", numbered(config.n_head), state.head)),
      )
    for (const field of form.querySelectorAll("select, input"))
      if (field instanceof HTMLSelectElement || field instanceof HTMLInputElement)
        if (!["text", "with", "other"].includes(field.name) && field !== document.activeElement)
          field.value = state[/** @type {keyof State} */ (field.name)]
    warmth.textContent = state.temperature
    replace(
      said,
      text.slice(0, now.begun).join(" "),
      text.slice(now.begun).flatMap(word => [" ", make("strong", {}, word)]),
      isFull ? "" : " …",
    )
    const at = document.activeElement instanceof HTMLElement ? document.activeElement.dataset.key : undefined,
      isOf = (/** @type {string[]} */ ...kinds) => kinds.includes(began.split("/")[0]),
      found = state.number ? now.session.origin(state.number, now.how) : null,
      origin = found && now.inside.panel(found, { ...asking, isExact })
    pair = found?.pair ?? []
    drawn(
      [
        words(now, isFull),
        isOf("logit", "chance", "left") ? origin : null,
        layers(now),
        isOf("lens") ? origin : null,
        now.inside.allHeads({
          one: "word",
          layers: now.run.layers.map((_, i) => ({ number: i, heads: config.n_head, hasFeedForward: true })),
          off: now.run.off,
          open: { layer: Number(state.layer), head: Number(state.head) },
          set,
          picture: (layer, head) => now.inside.small(rowsOf(now.run, layer, head)),
        }),
        now.inside.designs(now.run.without, set),
        attention(now),
        !isOf("logit", "chance", "left", "lens", "part") ? origin : null,
        now.inside.patching(now, state, set),
        parts(now),
        isOf("part") ? origin : null,
        cache(now),
      ],
      now.inside,
    )
    if (at) focus(at)
  }
  let isDrawn = false // in place of the static example
  function drawn(/** @type {import("./view.mjs").Child} */ all, /** @type {Inside} */ { render }) {
    if (!isDrawn) replace(results)
    isDrawn = true
    render(all, results)
  }
  const set = (/** @type {Partial<State>} */ chosen) => {
    Object.assign(state, chosen)
    return changed()
  }

  // A number that a reader asks for: the panel comes to the table that it was first pressed in.
  let began = "",
    isExact = false
  /** @type {number[]} */
  let pair = [] // layer, head, and two words of which it is
  const focus = (/** @type {string} */ key) => {
    for (const element of results.querySelectorAll("[data-key]"))
      if (element instanceof HTMLElement && element.dataset.key === key) return element.focus()
  }
  const asking = {
    async open(/** @type {string} */ place) {
      if (!document.activeElement?.closest(".ep-origin")) began = place
      await set({ number: place })
      focus("origin")
    },
    async close() {
      await set({ number: "" })
      focus(`cell ${began}`)
    },
    toggle() {
      isExact = !isExact
      show()
    },
  }

  // What the numbers are compared with, if something was changed.
  const unchanged = () => (state.without || state.patch ? "Without the changes" : "With everything on")

  function words(/** @type {Now} */ { all, whole, vocabulary, config, inside }, /** @type {boolean} */ isFull) {
    const { bar, html, numberOf, table } = inside
    const left = all.filter(one => one.left),
      isCut = left.length < all.length
    const rows = all.slice(0, SHOWN).map(({ id, score, share, left, by }) => {
      const word = vocabulary.words[id]
      return [
        isFull
          ? word
          : html`<button type="button" class="ep-word" onclick=${() => add(word)} title=${`Append ${word}`}>
              ${word}
            </button>`,
        numberOf(`Logit of ${word}`, `logit/${id}`, two(score), asking),
        numberOf(`Probability of ${word}`, `chance/${id}`, percent(share), asking),
        ...(whole ? [percent(whole.find(one => one.id === id)?.share ?? 0)] : []),
        ...(isCut
          ? [
              left
                ? numberOf(`Probability after the cut of ${word}`, `left/${id}`, percent(left), asking)
                : `cut by ${by}`,
            ]
          : []),
        bar(isCut ? left : share),
      ]
    })
    const said = isFull
      ? `The text has its maximum length: the model has ${config.n_positions} positions.`
      : `Most likely next words, out of ${config.vocab_size}`
    const kept = left.reduce((all, { share }) => all + share, 0),
      cuts = [state.top_k && `top-k ${state.top_k}`, state.top_p && `top-p ${state.top_p}`].filter(Boolean)
    return [
      table(
        `${said}${state.temperature === "1" ? "" : `, at temperature ${state.temperature}`}`,
        [
          "Word",
          "#Logit",
          "#Probability",
          ...(whole ? [`#${unchanged()}`] : []),
          ...(isCut ? ["#After the cut"] : []),
          "",
        ],
        rows,
      ),
      whole && html`<p class="ep-conventions">${instead(unchanged(), all, whole, vocabulary)}</p>`,
      isCut &&
        html`<p class="ep-conventions">
          ${
            `With ${cuts.join(" and ")}, the choice is from ${left.length} of ${config.vocab_size} words, which have ` +
            `${percent(kept)} of the probability. Their shares are scaled up to 100%; “Draw a word” draws one of them.`
          }
        </p>`,
    ]
  }

  function layers(/** @type {Now} */ { inside, run, all, vocabulary }) {
    const shown = all.slice(0, COMPARED),
      scores = inside.endings(run)
    return inside.matrix(
      "Logits of these words if the model ended there",
      scores.map((_, i) => (i ? `After layer ${i - 1}` : "Before the first layer")),
      shown.map(({ id }) => vocabulary.words[id]),
      scores.map(row => shown.map(({ id }) => row[id])),
      {
        place: (i, j) => `lens/${i}/${shown[j].id}`,
        ask: { ...asking, chosen: state.number },
        after: ["Most likely", scores.map(row => vocabulary.words[row.indexOf(Math.max(...row))])],
      },
    )
  }

  function attention(/** @type {Now} */ { text, run, inside }) {
    const { html, matrix } = inside
    const rows = rowsOf(run, Number(state.layer), Number(state.head)),
      name = `Attention weights, layer ${state.layer}, head ${state.head}`
    return [
      matrix(
        name,
        text,
        text,
        rows.map(row => text.map((_, i) => row[i] ?? null)),
        {
          place: (i, j) => `share/${state.layer}/${state.head}/${i}/${j}`,
          ask: { ...asking, chosen: state.number },
          lit: lit(2),
        },
      ),
      html`<label class="ep-on">
        <input type="checkbox" data-key="lines" checked=${state.lines === "1"}
          onchange=${() => set({ lines: state.lines ? "" : "1" })} />Lines from word to word
      </label>`,
      state.lines ? inside.lines(text, rows, name) : null,
    ]
  }

  function parts(/** @type {Now} */ { session, all, vocabulary, inside }) {
    const chosen = all.find(({ id }) => vocabulary.words[id] === state.word) ?? all[0]
    return inside.contributions({
      one: "word",
      words: [...new Set([...all.slice(0, SHOWN), chosen])].map(({ id }) => {
        const word = vocabulary.words[id]
        return [word, word]
      }),
      chosen: { id: chosen.id, value: vocabulary.words[chosen.id] },
      set,
      parts: session.parts(chosen.id),
      ask: { ...asking, chosen: state.number },
    })
  }

  // The row that the number that is asked for comes from, in a table of this head.
  const lit = (/** @type {2 | 3} */ of) =>
    `${pair.slice(0, 2)}` === `${state.layer},${state.head}` ? pair[of] : undefined

  function cache(/** @type {Now} */ { text, session, config, inside }) {
    const { html, matrix } = inside
    const rows = session.keys(Number(state.layer), Number(state.head)) ?? []
    const numbers = 2 * config.n_layer * config.n_embd
    return [
      matrix(
        `KV cache: the key of each word, layer ${state.layer}, head ${state.head}`,
        text,
        rows[0].map((_, i) => `${i + 1}`),
        rows,
        {
          newest: text.length - 1,
          place: (i, j) => `key/${state.layer}/${state.head}/${i}/${j}`,
          ask: { ...asking, chosen: state.number },
          lit: lit(3),
        },
      ),
      html`<p class="ep-conventions">
        ${
          `Each word adds a key and a value in every head of every layer: ${numbers} numbers. For ${text.length} ` +
          `words, the cache holds ${grouped(numbers * text.length)}. Only the last row is new; the others were ` +
          "already cached."
        }
      </p>`,
    ]
  }

  recall()
}

// The attention weights of a head, of the words that each word looks at.
const rowsOf = (/** @type {Run} */ run, /** @type {number} */ layer, /** @type {number} */ head) => {
  const map = run.map(layer, head),
    n = run.ids.length
  return Array.from({ length: n }, (_, i) => [...map.subarray(i * n, (i + 1) * n)].filter(x => !Number.isNaN(x)))
}

/**
 * The field for a text of the reader's own, with a list of what may complete it.
 * @param {(text: string) => void} typed
 */
function ownText(typed) {
  const field = make("input", {
    type: "text",
    name: "text",
    class: "ep-own-text",
    role: "combobox",
    "aria-controls": "ep-completions",
    "aria-expanded": "false",
    "aria-describedby": "ep-own-text",
    autocomplete: "off",
    autocapitalize: "off",
    spellcheck: "false",
    maxlength: LONGEST,
  })
  const list = make("ul", { id: "ep-completions", role: "listbox", "aria-label": "Words of the model", hidden: true }),
    note = make("p", { id: "ep-own-text", class: "ep-own-note" })
  /** @type {{ start: number, words: string[] }} */
  let offered = { start: 0, words: [] }
  /** @type {import("./combobox.mjs").Moves | undefined} */
  let moves
  function offer(/** @type {boolean} */ isOpen) {
    const words = isOpen ? offered.words : []
    moves?.stop()
    replace(
      list,
      words.map(word => make("li", { role: "option" }, word)),
    )
    list.hidden = !words.length
    if (words.length) moves?.start()
  }
  function take(/** @type {string} */ word) {
    field.value = `${field.value.slice(0, offered.start)}${word} `
    typed(field.value)
  }
  field.addEventListener("input", () => typed(field.value))
  field.addEventListener("focus", async () => {
    moves ??= await combobox(field, list, "none")
    if (!list.hidden) moves.start()
  })
  field.addEventListener("blur", () => offer(false))
  field.addEventListener("keydown", event => event.key === "Escape" && offer(false))
  list.addEventListener("mousedown", event => event.preventDefault()) // the field keeps the focus
  list.addEventListener("combobox-commit", ({ target }) => take(/** @type {HTMLElement} */ (target).textContent ?? ""))
  /**
   * @param {string} whole the text with what was added
   * @param {string} own the text as it was typed; empty if none was
   * @param {Small["vocabulary"]} vocabulary
   * @param {import("./capitals/vocabulary.mjs").Piece | null} unknown
   * @param {number[]} scores of the words that may follow those before it
   */
  function show(whole, own, vocabulary, unknown, scores) {
    const isTyping = document.activeElement === field && field.value === own
    if (!isTyping) field.value = unknown ? own : whole
    offered = isTyping && own ? vocabulary.completions(own, scores) : { start: 0, words: [] }
    offer(isTyping)
    const isOpen = offered.words.length > 0 && unknown !== null && unknown.start >= offered.start
    const near = unknown && !isOpen ? vocabulary.nearest(unknown.text) : null
    field.setAttribute("aria-invalid", `${unknown !== null && !isOpen}`)
    replace(
      note,
      unknown && !isOpen
        ? [
            make("span", { class: "ep-wrong" }, `“${unknown.text}” is unknown: `),
            `the model has a token for each of its ${vocabulary.words.length} words, and none for a part of a word. `,
            near === null ? "" : `Did you mean “${near}”? `,
            "The numbers below are of the words before it.",
          ]
        : `Any words of the ${vocabulary.words.length} that the model knows, in any order.`,
    )
  }
  return { element: make("div", { class: "ep-own" }, labelled("Your own sentence", field), list, note), field, show }
}

/**
 * What became of the answer when something was changed.
 * @param {string} before
 * @param {Candidates} all
 * @param {Candidates} whole
 * @param {Small["vocabulary"]} vocabulary
 */
function instead(before, all, whole, vocabulary) {
  const [{ id, share }] = whole,
    at = all.findIndex(one => one.id === id)
  return (
    `${before}, the most likely word is ${vocabulary.words[id]} (${percent(share)}). ` +
    `Now it is in place ${at + 1} of ${all.length} (${percent(all[at].share)}).`
  )
}

/**
 * The fields for another sentence: the same with another country, or any.
 * @param {string[]} countries
 */
function otherText(countries) {
  const country = select("with", [["", "none"], ...countries.map(c => /** @type {[string, string]} */ ([c, c]))], ""),
    field = make("input", {
      type: "text",
      name: "other",
      class: "ep-own-text",
      autocomplete: "off",
      autocapitalize: "off",
      spellcheck: "false",
      maxlength: LONGEST,
      "aria-describedby": "ep-other",
    }),
    note = make("p", { id: "ep-other", class: "ep-own-note" })
  const element = make(
    "details",
    { class: "ep-more" },
    make("summary", {}, "Patch from another sentence"),
    make("div", { class: "ep-row" }, labelled("The same, with", country), labelled("Or another sentence", field)),
    note,
  )
  function show(/** @type {State} */ state, /** @type {string} */ problem) {
    if (state.with || state.other) element.open = true
    if (document.activeElement !== country) country.value = state.with
    if (document.activeElement !== field) field.value = state.other
    field.setAttribute("aria-invalid", `${problem !== "" && state.other !== ""}`)
    note.textContent = problem
  }
  return { element, show }
}

// 1,440; a browser takes longer to load its own words for it.
const grouped = (/** @type {number} */ n) => `${n}`.replace(/\B(?=(\d{3})+$)/g, ",")
/** @returns {import("./elements.mjs").Option[]} */
const numbered = (/** @type {number} */ n) => Array.from({ length: n }, (_, i) => [`${i}`, `${i}`])
