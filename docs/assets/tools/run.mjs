// Run a checkpoint: a folder from a reader's disk, read and run in a worker. The page shows the text in tokens, the
// next ones, the attention weights of every head, and what each layer would answer. Nothing leaves the browser.

import { labelled, make, replace, select, table } from "./elements.mjs"
import { bar, matrix, percent, tableOfHeads, two } from "./capitals/matrices.mjs"

const MOST_MAPS = 400, // small maps that are drawn at once
  MOST_IN_TABLE = 32 // tokens of an opened map
const KEPT = /(^|\/)(config\.json|tokenizer\.json|model\.safetensors\.index\.json|[^/]+\.safetensors)$/
/**
 * @typedef {typeof import("./run/worker.mjs").TASKS} Tasks
 * @typedef {import("./run/folder.mjs").Given} Given
 * @typedef {import("./run/session.mjs").About} About
 * @typedef {Awaited<ReturnType<Tasks["answer"]>>} Answer
 * @typedef {import("./run/session.mjs").Progress} Progress
 */

/** Asks a worker, which begins with the first question, and ends with `stop`. */
class Asked {
  constructor() {
    /** @type {Worker | undefined} */
    this.worker = undefined
    this.number = 0
    this.stopped = () => {}
  }
  /**
   * @template {keyof Tasks} T
   * @param {T} task
   * @param {Parameters<Tasks[T]>[0]} asked
   * @param {(progress: Progress) => void} [came]
   * @returns {Promise<Awaited<ReturnType<Tasks[T]>>>}
   */
  ask(task, asked, came = () => {}) {
    this.worker ??= new Worker(new URL("run/worker.mjs", import.meta.url), { type: "module" })
    const { worker } = this,
      number = ++this.number
    return new Promise((resolve, reject) => {
      const done = (/** @type {() => void} */ then) => {
        worker.removeEventListener("message", take)
        worker.removeEventListener("error", fail)
        then()
      }
      function take(/** @type {MessageEvent} */ { data }) {
        if (data.number !== number) return
        if (data.progress) came(data.progress)
        else done(() => (data.problem === undefined ? resolve(data.result) : reject(new Error(data.problem))))
      }
      const fail = () => done(() => reject(new Error("the scripts could not be loaded")))
      worker.addEventListener("message", take)
      worker.addEventListener("error", fail)
      this.stopped = () => done(() => reject(new Stopped()))
      worker.postMessage({ number, task, asked })
    })
  }
  stop() {
    this.worker?.terminate()
    this.worker = undefined
    this.stopped()
  }
}
class Stopped extends Error {}

export async function mount(/** @type {HTMLElement} */ place) {
  const asked = new Asked()
  /** @type {Given[]} */
  let files = []
  /** @type {About | null} */
  let about = null
  /** @type {Answer | null} */
  let now = null
  /** @type {number[]} */
  let added = []
  let opened = { layer: 0, head: 0 },
    isBusy = false
  const how = { temperature: 1, topK: 0, topP: 1 }

  const said = make("p", { class: "ep-answer", role: "status" }),
    problem = make("p", { class: "ep-problem", role: "alert", hidden: true }),
    bars = make("progress", { max: 1, value: 0, "aria-label": "Progress", hidden: true }),
    stop = make("button", { type: "button", hidden: true, onclick: () => asked.stop() }, "Stop")
  const room = () => make("div"),
    summary = room(),
    tokens = room(),
    words = room(),
    maps = room(),
    large = room(),
    lensRoom = room()
  /** @type {HTMLElementTagNameMap["details"]} */
  const lens = make(
    "details",
    { hidden: true, ontoggle: () => showLens() },
    make("summary", {}, "Logit lens"),
    lensRoom,
  )

  const text = make("input", { type: "text", name: "text", autocomplete: "off", spellcheck: "false" }),
    source = make("input", { type: "text", name: "source", autocomplete: "off", spellcheck: "false" }),
    textLabel = make("span", {}, "Text"),
    ofSource = labelled("Text for the encoder", source)
  const go = make("button", { type: "submit" }, "Run"),
    next = make("button", { type: "button", onclick: () => run([...added, now?.likely[0].id ?? 0]) }, "Next token"),
    draw = make("button", { type: "button", onclick: drawn }, "Draw a token"),
    back = make("button", { type: "button", onclick: () => run(added.slice(0, -1)) }, "Remove last token")
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
  )
  asking.addEventListener("input", ({ target }) => {
    const field = /** @type {HTMLInputElement} */ (target)
    if (field === text || field === source || !field.checkValidity()) return
    if (field.name === "temperature") how.temperature = Number(field.value)
    if (field.name === "top_k") how.topK = Number(field.value)
    if (field.name === "top_p") how.topP = Number(field.value) || 1
    warmth.textContent = `${how.temperature}`
    if (now && !isBusy) doing(async () => showWords((now = { ...now, ...(await asked.ask("answer", { how })) })))
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
  replace(place, drop, problem, make("div", { class: "ep-row" }, said, bars, stop), summary, asking, tokens, words)
  place.append(maps, large, lens)

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
      if (error instanceof Stopped) said.textContent = about ? "Stopped. Run reads the weights again." : "Stopped."
      else {
        said.textContent = ""
        problem.hidden = false
        problem.textContent = error instanceof Error ? error.message : String(error)
      }
    }
    isBusy = false
    stop.hidden = bars.hidden = true
    go.disabled = false
    for (const button of [next, draw]) button.disabled = !now || now.isFull
    back.disabled = !added.length
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
    for (const part of [summary, tokens, words, maps, large, lensRoom]) replace(part)
    asking.hidden = lens.hidden = true
    // After a stop, which ends the earlier task first.
    setTimeout(() => doing(open))
  }
  async function open() {
    said.textContent = "Reading the files …"
    const read = await asked.ask("open", { given: files }, came("Reading the weights …"))
    about = read
    added = []
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
    textLabel.textContent = read.hasTokenizer ? "Text" : "Token ids, separated by commas: there is no tokenizer.json"
    ofSource.hidden = !read.hasSource
    asking.hidden = false
    text.focus()
  }
  function begin(/** @type {Event} */ event) {
    event.preventDefault()
    run([])
  }
  const run = (/** @type {number[]} */ more) =>
    doing(async () => {
      if (!asked.worker) await open()
      const given = { text: text.value, source: source.value, added: more, how }
      const answer = await asked.ask("run", given, came("Computing …"))
      now = answer
      added = more
      said.textContent = `${now.tokens.length} tokens. The last step took ${answer.seconds.toFixed(2)} s.`
      showTokens(now)
      showWords(now)
      await showMaps(now)
      lens.hidden = !now.hasLens
      replace(lensRoom)
      if (lens.open) await readLens()
    })
  async function drawn() {
    /** @type {number | undefined} */
    let one
    await doing(async () => (one = await asked.ask("drawn", { how, chance: Math.random() })))
    if (one !== undefined) run([...added, one])
  }

  function showTokens(/** @type {Answer} */ { tokens: all, cached }) {
    const begun = all.length - added.length
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
  function showWords(/** @type {Answer} */ { likely, left, kept, vocabulary, isFull }) {
    const isCut = left < vocabulary
    replace(
      words,
      table(
        `Most likely next tokens, out of ${vocabulary.toLocaleString("en")}`,
        ["Token", "#Id", "#Logit", "#Probability", ...(isCut ? ["#After the cut"] : []), ""],
        likely.map(one => [
          isFull
            ? visible(one.text)
            : make(
                "button",
                {
                  type: "button",
                  class: "ep-word",
                  title: `Append ${visible(one.text)}`,
                  onclick: () => run([...added, one.id]),
                },
                visible(one.text),
              ),
          `${one.id}`,
          two(one.score),
          percent(one.share),
          ...(isCut ? [one.left ? percent(one.left) : `cut by ${one.by}`] : []),
          bar(isCut ? one.left : one.share),
        ]),
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

  async function showMaps(/** @type {Answer} */ { heads, tokens: all }) {
    replace(maps)
    replace(large)
    if (!heads.length)
      return replace(maps, make("p", {}, "This model has no attention weights to show for each token pair."))
    opened = { layer: Math.min(opened.layer, heads.length - 1), head: opened.head }
    const isMany = heads.reduce((sum, n) => sum + n, 0) > MOST_MAPS,
      shown = isMany ? [opened.layer] : heads.map((_, i) => i),
      most = Math.max(...shown.map(i => heads[i]))
    /** @type {Parameters<typeof tableOfHeads>[2]} */
    const rows = []
    for (const layer of shown) {
      const bytes = await asked.ask("small", { layer }),
        size = all.length ** 2
      rows.push([
        `${layer}`,
        ...Array.from({ length: most }, (_, head) =>
          head < heads[layer] ? thumb(layer, head, bytes.subarray(head * size, (head + 1) * size), all.length) : "",
        ),
      ])
    }
    const choice = select(
      "layer",
      heads.map((_, i) => [`${i}`, `${i}`]),
      `${opened.layer}`,
      {
        onchange: (/** @type {{ target: HTMLSelectElement }} */ { target }) => {
          opened = { layer: Number(target.value), head: 0 }
          if (now) doing(() => showMaps(/** @type {Answer} */ (now)))
        },
      },
    )
    replace(
      maps,
      isMany ? make("div", { class: "ep-whatif" }, labelled("Layer", choice)) : null,
      tableOfHeads(
        "token",
        Array.from({ length: most }, (_, head) => `Head ${head}`),
        rows,
      ),
    )
    await showLarge()
  }
  function thumb(
    /** @type {number} */ layer,
    /** @type {number} */ head,
    /** @type {Uint8ClampedArray} */ bytes,
    /** @type {number} */ n,
  ) {
    const picture = make("span", { class: "ep-thumb ep-mask" })
    picture.style.maskImage = `url(${shaded(bytes, n)})`
    return make(
      "button",
      {
        type: "button",
        class: "ep-head",
        "aria-label": `Layer ${layer}, head ${head}`,
        "aria-pressed": `${opened.layer === layer && opened.head === head}`,
        onclick: (/** @type {{ currentTarget: HTMLElement }} */ { currentTarget }) => {
          opened = { layer, head }
          for (const other of maps.querySelectorAll(".ep-head"))
            other.setAttribute("aria-pressed", `${other === currentTarget}`)
          doing(showLarge)
        },
      },
      picture,
    )
  }
  async function showLarge() {
    if (!now) return
    const { layer, head } = opened,
      all = now.tokens,
      shares = await asked.ask("head", { layer, head: Math.min(head, now.heads[layer] - 1) }),
      from = Math.max(0, all.length - MOST_IN_TABLE),
      names = all.slice(from).map(({ text }) => visible(text))
    replace(
      large,
      matrix(
        `Attention weights, layer ${layer}, head ${head}${from ? `, the last ${MOST_IN_TABLE} tokens` : ""}`,
        names,
        names,
        names.map((_, i) =>
          names.map((_, j) => {
            const share = shares[(from + i) * all.length + from + j]
            return Number.isNaN(share) ? null : share
          }),
        ),
      ),
    )
  }

  function showLens() {
    if (lens.open && now && !lensRoom.firstChild) doing(readLens)
  }
  async function readLens() {
    said.textContent = "Computing the logits after each layer …"
    const rows = await asked.ask("lens", undefined)
    said.textContent = ""
    replace(
      lensRoom,
      table(
        "The most likely next tokens if the model ended there",
        ["Where", "First", "#Probability", "Second", "#Probability", "Third", "#Probability"],
        rows.map((row, i) => [
          i ? `After layer ${i - 1}` : "Before the first layer",
          ...row.flatMap(({ text, share }) => [visible(text), percent(share)]),
        ]),
      ),
    )
  }
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

/**
 * The files that were dropped, also those in folders.
 * @param {DataTransfer} transfer
 * @returns {Promise<Given[]>}
 */
async function dropped(transfer) {
  const entries = [...transfer.items].map(item => item.webkitGetAsEntry?.() ?? null)
  if (entries.includes(null)) return [...transfer.files].map(file => ({ path: file.name, file }))
  /** @type {Given[]} */
  const given = []
  const walk = async (/** @type {FileSystemEntry} */ entry, /** @type {number} */ depth) => {
    if (entry.isFile && KEPT.test(entry.fullPath)) {
      const file = await new Promise((resolve, reject) =>
        /** @type {FileSystemFileEntry} */ (entry).file(resolve, reject),
      )
      given.push({ path: entry.fullPath.slice(1), file })
    } else if (entry.isDirectory && depth < 4) {
      const reader = /** @type {FileSystemDirectoryEntry} */ (entry).createReader()
      for (;;) {
        /** @type {FileSystemEntry[]} */
        const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject))
        if (!some.length) break
        for (const one of some) await walk(one, depth + 1)
      }
    }
  }
  for (const entry of entries) if (entry) await walk(entry, 0)
  return given
}
