// The search as a dialog: a combobox whose list is links, so that each opens in a new tab, too, as any other does.

import { ask, marked } from "./ask.mjs"

/**
 * @typedef {import("./ask.mjs").Core} Core
 * @typedef {import("./ask.mjs").Shown} Shown
 * @typedef {import("./ask.mjs").Term} Term
 */

/** @type {Record<string, string>} */
const KINDS = { model: "Model", family: "Family", section: "Page", word: "Word", size: "Size", tensor: "Tensor" }

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

// A file of search/, fetched once. The version keeps pieces of two builds apart.
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
    if (!files.has(name)) files.set(name, get(`${name}?${version}`))
    return files.get(name)
  }
  return { core, load }
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
  const { core, load } = loader(root)
  await styled()
  const input = element("input", {
    type: "search",
    role: "combobox",
    "aria-label": "Search",
    "aria-autocomplete": "list",
    "aria-controls": "ep-found",
    "aria-expanded": "false",
    placeholder: "A model, a number, a tensor’s name, a word, a question",
    autocomplete: "off",
    autocapitalize: "off",
    spellcheck: "false",
    enterkeyhint: "go",
  })
  const list = element("div", { id: "ep-found", role: "listbox", "aria-label": "Found", hidden: "" })
  const status = element("p", { role: "status" })
  const close = element("button", { type: "button" }, "Close")
  const form = element("form", { role: "search" }, input, close)
  const dialog = element("dialog", { class: "ep-search", "aria-label": "Search" }, form, status, list)
  document.body.append(dialog)

  let asked = 0
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
      { role: "option", id: `ep-found-${n}`, href: new URL(address, root), tabindex: "-1", "aria-selected": "false" },
      element("span", { class: "ep-kind" }, above || KINDS[kind]),
      " ",
      element("strong", {}, ...text(title, wanted)),
      " ",
      element("span", { class: "ep-said" }, ...text(said, wanted)),
    )

  async function answer() {
    const number = ++asked,
      question = input.value
    try {
      const { wanted, results, more } = await ask(question, await core, load)
      const where = (await core).isPreview ? " in what the preview has built so far" : ""
      if (number !== asked) return // something else was typed meanwhile
      list.replaceChildren(...results.map((result, n) => option(result, wanted, n)))
      list.scrollTop = 0
      choose(options()[0])
      status.replaceChildren(
        !wanted.length
          ? ""
          : results.length
            ? `${more ? "The best " : ""}${results.length} found${where}`
            : `Nothing found${where}. `,
      )
      if (wanted.length && !results.length) status.append(instead("All models"))
    } catch (error) {
      console.warn(error)
      list.replaceChildren()
      status.replaceChildren("The index could not be fetched. ", instead("All models"))
    }
    list.hidden = !list.children.length
    input.setAttribute("aria-expanded", String(!list.hidden))
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

  return () => {
    if (!dialog.open) dialog.showModal()
    input.select()
    answer()
  }
}
