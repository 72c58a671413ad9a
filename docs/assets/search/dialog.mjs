// The search as a dialog: a combobox whose list is links, so that each opens in a new tab, too, as any other does.

import { ask, marked } from "./ask.mjs"

/**
 * @typedef {import("./ask.mjs").Core} Core
 * @typedef {import("./ask.mjs").Shown} Shown
 * @typedef {import("./ask.mjs").Term} Term
 * @typedef {import("./meant.mjs").Computed} Computed
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

// Computes answers beside the page. The worker, the engine and a model's file come with the first that is asked for.
function computer() {
  /** @type {Worker | undefined} */
  let worker
  let number = 0
  /** @type {Map<string, Promise<{ title?: string, said?: string, problem?: string }>>} */
  const known = new Map()
  return (/** @type {Computed} */ asked) => {
    const key = JSON.stringify(asked),
      before = known.get(key)
    if (before) return before
    worker ??= new Worker(new URL("answers.mjs", import.meta.url), { type: "module" })
    const its = worker,
      mine = ++number
    const answer = new Promise((resolve, reject) => {
      its.addEventListener("message", function take({ data }) {
        if (data.number !== mine) return
        its.removeEventListener("message", take)
        resolve(data)
      })
      its.addEventListener("error", () => {
        worker = undefined // another try begins anew
        known.clear()
        reject(new Error("The answer could not be computed."))
      })
      its.postMessage({ number: mine, asked })
    })
    known.set(key, answer)
    return answer
  }
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
    compute = computer()
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
      const { wanted, results, more } = await ask(question, await core, load)
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
      const at = results.findIndex(result => result.compute)
      if (at >= 0) waiting = setTimeout(() => answered(results[at], list.children[at], wanted), PAUSE)
    } catch (error) {
      console.warn(error)
      list.replaceChildren()
      status.replaceChildren("The search index could not be loaded. ", instead("All models"))
    }
    list.hidden = !list.children.length
    input.setAttribute("aria-expanded", String(!list.hidden))
  }

  /**
   * Puts the answer where its question's result stands, and says it.
   * @param {Shown} result
   * @param {Element} place
   * @param {Term[]} wanted
   */
  async function answered({ title, compute: asked }, place, wanted) {
    if (!asked) return
    let found
    try {
      found = await compute(asked)
    } catch (error) {
      console.warn(error)
      found = { problem: "" }
    }
    if (!place.isConnected) return // something else was typed meanwhile
    const { problem, said = problem || "Opens with these values filled in." } = found
    const [heading, line] = [found.title ?? title, said]
    place.querySelector("strong")?.replaceChildren(...text(heading, wanted))
    place.querySelector(".ep-said")?.replaceChildren(line)
    spoken.replaceChildren(`${heading}. ${line}`)
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
