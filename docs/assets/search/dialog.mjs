// The search dialog: a combobox whose options are links, so that they can be opened in a new tab like any other link.

import { make as element } from "../tools/elements.mjs"
import { ask, marked } from "./ask.mjs"

/**
 * @typedef {import("./ask.mjs").Core} Core
 * @typedef {import("./ask.mjs").Shown} Shown
 * @typedef {import("./ask.mjs").Term} Term
 * @typedef {import("./answers.mjs").Answer} Answer
 * @typedef {import("./answers.mjs").Read} Read
 */

/** @type {Record<string, string>} */
const KINDS = {
  model: "Model",
  family: "Family",
  section: "Page",
  word: "Term",
  size: "Size",
  tensor: "Tensor",
  tool: "Tool",
  answer: "Answer",
  absent: "Not in the catalog",
}
const PAUSE = 300 // ms without a key before an answer is computed

// Fetches a file of search/ once, and again if that failed. The version keeps the files of two builds apart.
function loader(/** @type {URL} */ root) {
  /** @type {Map<string, Promise<any>>} */
  const files = new Map()
  const get = async (/** @type {string} */ name, /** @type {RequestInit} */ options = {}) => {
    const answer = await fetch(new URL(`search/${name}`, root), options)
    if (!answer.ok) throw new Error(`${answer.status} ${answer.url}`)
    return answer.json()
  }
  /** @type {Promise<Core>} */
  const core = get("core.json", { cache: "no-cache" })
  const load = async (/** @type {string} */ name) => {
    const { version } = await core
    const file = files.get(name) ?? get(`${name}?${version}`)
    files.set(name, file)
    file.catch(() => files.delete(name))
    return file
  }
  return { core, load }
}

// Parses and answers questions in a worker. The grammar is loaded when the search is opened, the engine and a model's
// file with the first question that has an answer.
function reader(/** @type {URL} */ root, /** @type {Promise<Core>} */ core) {
  /** @type {Worker | undefined} */
  let worker
  let number = 0
  /** @type {Map<string, Promise<any>>} */
  const known = new Map()
  /** @type {Map<number, [resolve: (result: any) => void, reject: (error: Error) => void]>} */
  const waiting = new Map()
  const end = (/** @type {string} */ problem) => {
    worker?.terminate()
    worker = undefined // so that the next attempt starts over
    known.clear()
    for (const [, reject] of waiting.values()) reject(new Error(problem))
    waiting.clear()
  }
  async function made() {
    const { version, records, kinds } = await core
    if (worker) return worker
    worker = new Worker(new URL("answers.mjs", import.meta.url), { type: "module" })
    worker.addEventListener("message", ({ data: { number, result, problem } }) => {
      const [resolve, reject] = waiting.get(number) ?? []
      waiting.delete(number)
      if (problem === undefined) resolve?.(result)
      else reject?.(new Error(problem))
    })
    worker.addEventListener("error", () => end("The answer could not be computed."))
    const models = kinds.find(([kind]) => kind === "model")?.[1] ?? 0
    const names = `${new URL(`search/names.json?${version}`, root)}`
    worker.postMessage({ number: 0, names, records: records.slice(0, models) })
    return worker
  }
  const ask = (/** @type {string} */ question, isAnswer = false) => {
    const key = `${Number(isAnswer)}${question}`,
      before = known.get(key)
    if (before) return before
    const found = made().then(
      worker =>
        new Promise((resolve, reject) => {
          waiting.set(++number, [resolve, reject])
          worker.postMessage({ number, question, isAnswer })
        }),
    )
    known.set(key, found)
    found.catch(() => known.delete(key))
    return found
  }
  return {
    prepare: () => made().catch(() => undefined),
    /** Without its worker, the index alone answers. @returns {Promise<Read>} */
    read: (/** @type {string} */ question) => ask(question).catch(unread),
    /** @returns {Promise<Answer[]>} */
    answer: (/** @type {string} */ question) => ask(question, true),
  }
}
/** @type {Read} */
const UNREAD = { leads: [], note: "", corrected: [], models: [], isAbsent: false }
function unread(/** @type {unknown} */ error) {
  console.warn(error)
  return UNREAD
}

const styled = () =>
  new Promise((resolve, reject) => {
    const href = new URL("search.css", import.meta.url)
    document.head.append(element("link", { rel: "stylesheet", href, onload: resolve, onerror: reject }))
  })

// What is shown

/**
 * The status message about the results.
 * @param {Pick<Awaited<ReturnType<typeof ask>>, "wanted" | "results" | "more">} found
 * @param {boolean} isPreview
 */
export function counted({ wanted, results, more }, isPreview) {
  const where = isPreview ? " among the pages that the preview has built so far" : "",
    n = results.length
  if (!wanted.length) return ""
  return n ? `${more ? "Top " : ""}${n} ${n === 1 ? "result" : "results"}${where}` : `No results${where}. `
}
/**
 * The index that a key moves to in a list; undefined if the key does not move.
 * @param {string} key
 * @param {number} at the chosen one; -1 for none
 * @param {number} n
 */
export function led(key, at, n) {
  /** @type {Record<string, number>} */
  const places = {
    ArrowDown: at + 1,
    ArrowUp: at < 0 ? n - 1 : at - 1,
    PageDown: Math.min(at + 5, n - 1),
    PageUp: Math.max(at - 5, 0),
  }
  return Object.hasOwn(places, key) && n ? (places[key] + n) % n : undefined
}

// The view

/** @param {string} content @param {Term[]} wanted */
const text = (content, wanted) =>
  marked(content, wanted).map((piece, n) => (n % 2 ? element("mark", {}, piece) : piece))

const field = (/** @type {() => void} */ oninput) =>
  element("input", {
    oninput,
    type: "search",
    role: "combobox",
    "aria-label": "Search",
    "aria-autocomplete": "list",
    "aria-controls": "ep-found",
    "aria-expanded": "false",
    placeholder: "A model, “24 GB 32k”, a number, a term",
    autocomplete: "off",
    autocapitalize: "off",
    spellcheck: "false",
    enterkeyhint: "go",
  })

/** The dialog: the search field and the list of results. */
class Search {
  input = field(() => this.typed())
  list = element("div", { id: "ep-found", role: "listbox", "aria-label": "Results", hidden: true })
  status = element("p", { role: "status" })
  spoken = element("p", { class: "ep-spoken", "aria-live": "polite" }) // an answer that comes later
  close = element("button", { type: "button", onclick: this.shut.bind(this) }, "Close")
  form = element("form", { role: "search", onsubmit: event => event.preventDefault() }, this.input, this.close)
  dialog = element(
    "dialog",
    { class: "ep-search", "aria-label": "Search", onkeydown: this.key.bind(this), onclick: this.clicked.bind(this) },
    ...[this.form, this.status, this.list, this.spoken],
  )
  asked = 0
  /** @type {number | undefined} */
  waiting
  answering = Promise.resolve()

  /** @param {URL} root @param {string} catalogue */
  constructor(root, catalogue) {
    const { core, load } = loader(root)
    this.root = root
    this.instead = () => element("a", { href: catalogue }, "All models")
    this.core = core
    this.load = load
    this.reading = reader(root, core)
    this.reading.prepare()
  }
  /** @param {string | undefined} question */
  open(question) {
    if (question !== undefined) this.input.value = question
    if (!this.dialog.open) this.dialog.showModal()
    this.input.select()
    this.answer()
  }
  shut() {
    this.dialog.close()
  }
  /** @returns {Element?} */
  active() {
    return this.list.querySelector("[aria-selected=true]")
  }
  choose(/** @type {Element | undefined} */ option) {
    this.active()?.setAttribute("aria-selected", "false")
    if (option) {
      option.setAttribute("aria-selected", "true")
      option.scrollIntoView({ block: "nearest" })
      this.input.setAttribute("aria-activedescendant", option.id)
    } else this.input.removeAttribute("aria-activedescendant")
  }
  /**
   * @param {Shown} result
   * @param {Term[]} wanted
   * @param {number} n
   */
  option({ kind, address, title, above, said }, wanted, n) {
    const href = new URL(address, this.root),
      at = { id: `ep-found-${n}`, "data-kind": kind, href, tabindex: "-1", "aria-selected": "false" },
      parts = [element("strong", {}, ...text(title, wanted)), " "]
    return element(
      "a",
      { role: "option", ...at },
      ...[element("span", { class: "ep-kind" }, above || KINDS[kind]), " ", ...parts],
      element("span", { class: "ep-said" }, ...text(said, wanted)),
    )
  }
  async answer() {
    const { input, list, spoken, status } = this,
      number = ++this.asked,
      question = input.value
    clearTimeout(this.waiting)
    try {
      const core = await this.core,
        found = await ask(question, core, this.load, this.reading.read),
        { wanted, results, note } = found
      if (number !== this.asked) return // something else was typed meanwhile
      list.replaceChildren(...results.map((result, n) => this.option(result, wanted, n)))
      list.scrollTop = 0
      this.choose(list.children[0])
      spoken.replaceChildren()
      status.replaceChildren(counted(found, !!core.isPreview))
      if (wanted.length && !results.length) status.append(this.instead())
      if (note) status.append(`. ${note}`)
      const places = results.flatMap((result, n) => (result.isComputed ? [{ result, place: list.children[n] }] : []))
      if (places.length) this.waiting = setTimeout(() => this.answered(question, places, wanted), PAUSE)
    } catch (error) {
      console.warn(error)
      list.replaceChildren()
      status.replaceChildren("The search index could not be loaded. ", this.instead())
    }
    list.hidden = !list.children.length
    input.setAttribute("aria-expanded", String(!list.hidden))
  }
  /**
   * Shows each answer with its result and announces it; if all agree, the first result shows the common answer.
   * @param {string} question
   * @param {{ result: Shown, place: Element }[]} places
   * @param {Term[]} wanted
   */
  async answered(question, places, wanted) {
    const { list, status } = this
    /** @type {Answer[]} */
    let found
    try {
      found = await this.reading.answer(question)
    } catch (error) {
      console.warn(error)
      found = places.map(({ result: { title } }) => ({
        title,
        said: "Opens with these values filled in.",
        fitting: null,
      }))
    }
    if (!places[0].place.isConnected) return // something else was typed meanwhile
    for (const { place } of places.slice(found.length)) place.remove()
    status.firstChild?.replaceWith(status.firstChild.textContent?.replace(/\d+/, `${list.children.length}`) ?? "")
    if (!this.active()) this.choose(list.children[0])
    found.forEach(({ title, said, fitting }, n) => {
      const { place } = places[n]
      place.querySelector("strong")?.replaceChildren(...text(title, wanted))
      place.querySelector(".ep-said")?.replaceChildren(said)
      if (fitting) place.after(this.option({ ...fitting }, wanted, list.children.length))
    })
    this.spoken.replaceChildren(found.map(({ title, said }) => `${title}. ${said}`).join(" "))
  }

  typed() {
    const question = this.input.value
    this.answering = new Promise(later => setTimeout(later, 80)).then(() => {
      if (question === this.input.value) return this.answer()
    })
  }
  key(/** @type {KeyboardEvent} */ event) {
    event.stopPropagation() // the theme's own keys
    if (event.target !== this.input || event.isComposing) return
    const all = [...this.list.children],
      at = all.findIndex(one => one === this.active()),
      to = led(event.key, at, all.length)
    if (to === undefined && !["Escape", "Enter"].includes(event.key)) return
    event.preventDefault() // Escape would empty the box first
    if (to !== undefined) this.choose(all[to])
    else if (event.key === "Escape") this.shut()
    else {
      const { ctrlKey, metaKey, shiftKey } = event
      this.answering.then(() =>
        this.active()?.dispatchEvent(
          new MouseEvent("click", { bubbles: true, cancelable: true, ctrlKey, metaKey, shiftKey }),
        ),
      )
    }
  }
  clicked(/** @type {MouseEvent} */ { target, ctrlKey, metaKey, shiftKey }) {
    const isLeft = target instanceof Element && target.closest("a") && !ctrlKey && !metaKey && !shiftKey
    if (target === this.dialog) this.shut()
    else if (isLeft) setTimeout(() => this.shut())
  }
}

/**
 * Returns the function that opens the dialog.
 * @param {URL} root
 * @param {string} catalogue
 */
export async function make(root, catalogue) {
  const search = new Search(root, catalogue)
  await styled()
  document.body.append(search.dialog)
  return search.open.bind(search)
}
