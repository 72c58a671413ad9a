// The search as a dialog: a combobox whose list is links, so that each opens in a new tab, too, as any other does.

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

/**
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} name
 * @param {Record<string, string | URL>} attributes
 * @param {...(Node | string)} content
 */
const element = (name, attributes = {}, ...content) => {
  const made = document.createElement(name)
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, `${value}`)
  made.append(...content)
  return made
}

// A file of search/, fetched once, and again if that failed. The version keeps pieces of two builds apart.
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

// Reads questions and computes answers beside the page. The grammar comes when the search is opened, the engine and a
// model's file with the first question that has an answer.
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
    worker = undefined // another try begins anew
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
    const link = element("link", { rel: "stylesheet", href: new URL("search.css", import.meta.url) })
    link.addEventListener("load", resolve)
    link.addEventListener("error", reject)
    document.head.append(link)
  })

/**
 * Gives what opens it.
 * @param {URL} root
 * @param {string} catalogue
 */
export async function make(root, catalogue) {
  const { core, load } = loader(root),
    reading = reader(root, core)
  reading.prepare()
  await styled()
  const input = element("input", {
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
  const list = element("div", { id: "ep-found", role: "listbox", "aria-label": "Results", hidden: "" })
  const status = element("p", { role: "status" })
  const spoken = element("p", { class: "ep-spoken", "aria-live": "polite" }) // an answer that comes later
  const close = element("button", { type: "button" }, "Close")
  const form = element("form", { role: "search" }, input, close)
  const dialog = element("dialog", { class: "ep-search", "aria-label": "Search" }, form, status, list, spoken)
  document.body.append(dialog)

  let asked = 0
  /** @type {number | undefined} */
  let waiting
  const options = () => [...list.children]
  /** @returns {Element?} */
  const active = () => list.querySelector("[aria-selected=true]")

  function choose(/** @type {Element | undefined} */ option) {
    active()?.setAttribute("aria-selected", "false")
    if (option) {
      option.setAttribute("aria-selected", "true")
      option.scrollIntoView({ block: "nearest" })
      input.setAttribute("aria-activedescendant", option.id)
    } else input.removeAttribute("aria-activedescendant")
  }

  /**
   * @param {string} content
   * @param {Term[]} wanted
   */
  const text = (content, wanted) =>
    marked(content, wanted).map((piece, n) => (n % 2 ? element("mark", {}, piece) : piece))

  /**
   * @param {Shown} result
   * @param {Term[]} wanted
   * @param {number} n
   */
  const option = ({ kind, address, title, above, said }, wanted, n) =>
    element(
      "a",
      {
        role: "option",
        id: `ep-found-${n}`,
        "data-kind": kind,
        href: new URL(address, root),
        tabindex: "-1",
        "aria-selected": "false",
      },
      element("span", { class: "ep-kind" }, above || KINDS[kind]),
      " ",
      element("strong", {}, ...text(title, wanted)),
      " ",
      element("span", { class: "ep-said" }, ...text(said, wanted)),
    )

  async function answer() {
    const number = ++asked,
      question = input.value
    clearTimeout(waiting)
    try {
      const { wanted, results, more, note } = await ask(question, await core, load, reading.read)
      const where = (await core).isPreview ? " among the pages that the preview has built so far" : ""
      if (number !== asked) return // something else was typed meanwhile
      list.replaceChildren(...results.map((result, n) => option(result, wanted, n)))
      list.scrollTop = 0
      choose(options()[0])
      spoken.replaceChildren()
      status.replaceChildren(
        !wanted.length
          ? ""
          : results.length
            ? `${more ? "Top " : ""}${results.length} ${results.length === 1 ? "result" : "results"}${where}`
            : `No results${where}. `,
      )
      if (wanted.length && !results.length) status.append(instead("All models"))
      if (note) status.append(`. ${note}`)
      const places = results.flatMap((result, n) => (result.isComputed ? [{ result, place: list.children[n] }] : []))
      if (places.length) waiting = setTimeout(() => answered(question, places, wanted), PAUSE)
    } catch (error) {
      console.warn(error)
      list.replaceChildren()
      status.replaceChildren("The search index could not be loaded. ", instead("All models"))
    }
    list.hidden = !list.children.length
    input.setAttribute("aria-expanded", String(!list.hidden))
  }

  /**
   * Puts each answer where its result stands, and says them; where all agree, the first result has the answer of all.
   * @param {string} question
   * @param {{ result: Shown, place: Element }[]} places
   * @param {Term[]} wanted
   */
  async function answered(question, places, wanted) {
    /** @type {Answer[]} */
    let found
    try {
      found = await reading.answer(question)
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
    status.firstChild?.replaceWith(status.firstChild.textContent?.replace(/\d+/, `${options().length}`) ?? "")
    if (!active()) choose(options()[0])
    found.forEach(({ title, said, fitting }, n) => {
      const { place } = places[n]
      place.querySelector("strong")?.replaceChildren(...text(title, wanted))
      place.querySelector(".ep-said")?.replaceChildren(said)
      if (fitting) place.after(option({ ...fitting }, wanted, list.children.length))
    })
    spoken.replaceChildren(found.map(({ title, said }) => `${title}. ${said}`).join(" "))
  }

  const instead = (/** @type {string} */ words) => element("a", { href: catalogue }, words)

  let answering = Promise.resolve()
  input.addEventListener("input", () => {
    const question = input.value
    answering = new Promise(later => setTimeout(later, 80)).then(() => {
      if (question === input.value) return answer()
    })
  })
  dialog.addEventListener("keydown", event => {
    event.stopPropagation() // the theme's own keys
    if (event.target !== input || event.isComposing) return
    const all = options(),
      at = all.findIndex(one => one === active())
    /** @type {Record<string, number>} */
    const places = {
      ArrowDown: at + 1,
      ArrowUp: at < 0 ? all.length - 1 : at - 1,
      PageDown: Math.min(at + 5, all.length - 1),
      PageUp: Math.max(at - 5, 0),
    }
    const to = places[event.key]
    if (to !== undefined && all.length) {
      event.preventDefault()
      choose(all[(to + all.length) % all.length])
    } else if (event.key === "Escape") {
      event.preventDefault() // which would empty the box first
      dialog.close()
    } else if (event.key === "Enter") {
      event.preventDefault()
      const { ctrlKey, metaKey, shiftKey } = event
      answering.then(() =>
        active()?.dispatchEvent(
          new MouseEvent("click", { bubbles: true, cancelable: true, ctrlKey, metaKey, shiftKey }),
        ),
      )
    }
  })
  form.addEventListener("submit", event => event.preventDefault())
  close.addEventListener("click", () => dialog.close())
  dialog.addEventListener("click", event => {
    const { target } = event
    if (target === dialog)
      dialog.close() // beside it
    else if (target instanceof Element && target.closest("a") && !event.ctrlKey && !event.metaKey && !event.shiftKey)
      setTimeout(() => dialog.close())
  })

  return (/** @type {string | undefined} */ question) => {
    if (question !== undefined) input.value = question
    if (!dialog.open) dialog.showModal()
    input.select()
    answer()
  }
}
