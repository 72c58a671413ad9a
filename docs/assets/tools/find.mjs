// A choice that one types into. The list that holds its value stays in the form, out of sight.

import { labelled, make, replace, select } from "./elements.mjs"

const COMBOBOX = "../vendor/combobox-nav.mjs" // not ours: it is not looked into for types
/** @typedef {{ start: () => void, stop: () => void }} Moves */
const plain = (/** @type {string} */ text) => text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, " ")
let made = 0

/**
 * What moves through the options of a list by the keys of a field, while it is started; the list says what is taken by
 * a `combobox-commit` of the option.
 * @param {HTMLInputElement} field
 * @param {HTMLElement} list
 * @param {"active" | "none"} first whether Enter takes the first option if no other was moved to
 * @returns {Promise<Moves>}
 */
export async function combobox(field, list, first) {
  const { default: Combobox } = await import(COMBOBOX)
  return new Combobox(field, list, { tabInsertsSuggestions: false, firstOptionSelectionMode: first })
}

/**
 * The label, the field and the list; a change of the choice is an `input` of its list, as of any other.
 * @param {string} title
 * @param {string} name
 * @param {Parameters<typeof select>[1]} groups
 * @param {string} value
 * @param {Record<string, import("./elements.mjs").Attribute>} attributes
 */
export function finder(title, name, groups, value, attributes = {}) {
  const chosen = /** @type {HTMLSelectElement} */ (
    select(name, groups, value, { ...attributes, class: "ep-unseen", tabindex: -1, "aria-hidden": "true" })
  )
  const list = make("div", { id: `ep-found-${++made}`, role: "listbox", "aria-label": title, hidden: true }),
    field = /** @type {HTMLInputElement} */ (
      make("input", { role: "combobox", size: 24, spellcheck: "false", autocomplete: "off", "aria-expanded": "false" })
    )
  /** @type {Moves | undefined} */
  let moves
  const nameOf = () => chosen.selectedOptions[0]?.text ?? ""
  const show = () => {
    field.value = nameOf()
  }
  function close() {
    if (list.hidden) return
    moves?.stop()
    list.hidden = true
  }
  async function open(text = "") {
    const moving = (moves ??= await combobox(field, list, "active"))
    if (document.activeElement !== field) return
    moving.stop()
    replace(list, matching(groups, plain(text).trim().split(" "), chosen.value))
    list.hidden = false
    moving.start()
    list.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" })
  }
  function commit(/** @type {HTMLElement} */ option) {
    const isOther = option.dataset.value !== chosen.value
    chosen.value = option.dataset.value ?? ""
    close()
    show()
    field.select()
    if (isOther) chosen.dispatchEvent(new Event("input", { bubbles: true }))
  }
  field.addEventListener("focus", () => field.select())
  field.addEventListener("click", () => open())
  field.addEventListener("input", event => {
    event.stopPropagation() // the form hears of the choice, not of the letters
    open(field.value)
  })
  field.addEventListener("keydown", event => {
    if (event.key === "Escape") {
      close()
      show()
    } else if (list.hidden && ["ArrowDown", "ArrowUp", "Enter"].includes(event.key)) {
      event.preventDefault()
      open()
    }
  })
  field.addEventListener("blur", () => {
    close()
    show()
  })
  list.addEventListener("mousedown", event => event.preventDefault()) // the field keeps the focus
  list.addEventListener("combobox-commit", ({ target }) => commit(/** @type {HTMLElement} */ (target)))
  chosen.addEventListener("input", show)
  chosen.addEventListener("put", show)
  show()
  return make("div", { class: "ep-find" }, labelled(title, field), chosen, list)
}

/**
 * The options that have all of these words in their names or in their groups' heading.
 * @param {Parameters<typeof select>[1]} groups
 * @param {string[]} words
 * @param {string} current
 */
function matching(groups, words, current) {
  const has = (/** @type {string} */ text) => words.every(word => plain(text).includes(word))
  const option = (/** @type {[string, string]} */ [value, text]) =>
    make("div", { role: "option", "data-value": value, "aria-current": value === current ? "true" : null }, text)
  const found = groups.flatMap(([first, rest]) => {
    if (!Array.isArray(rest)) return has(rest) ? [option([first, rest])] : []
    const those = rest.filter(([value, text]) => has(`${first} ${text} ${value}`))
    if (!those.length) return []
    return [
      make(
        "div",
        { role: "group", "aria-label": first },
        make("span", { "aria-hidden": "true" }, first),
        those.map(option),
      ),
    ]
  })
  return found.length ? found : make("div", { role: "option", "aria-disabled": "true" }, "No match")
}
