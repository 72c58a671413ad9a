// A tool's choices in the address of its page.

/** @typedef {(text: string) => string} Rule checks a value: returns its normal form, or throws what is wrong */

/**
 * Keeps the choices in the address: after `?` what the server may see, after `#` the reader's own config, which it
 * never sees. Each change is a step of the browser's history; typing into one field, or dragging, is a single step.
 * @param {HTMLElement} place the tool's
 * @param {() => { values: Record<string, string | null | undefined>, hash?: string }} chosen
 * @param {() => void} recall shows the choices of the address
 * @returns {(field?: EventTarget | null) => void} to be called after a change, with its field if it has one
 */
export function steps(place, chosen, recall) {
  const path = location.pathname
  /** @type {EventTarget?} */
  let typed = null
  /** @type {number | undefined} */
  let waiting
  function write(/** @type {"pushState" | "replaceState"} */ how) {
    clearTimeout(waiting)
    waiting = undefined
    if (!place.isConnected) return // the address is another page's by now
    const { values, hash } = chosen(),
      at = new URL(location.href)
    // What the stepper keeps stays.
    const others = [...at.searchParams].filter(([name]) => /^(walk|step)$/.test(name) && !(name in values))
    at.search = searchOf(values, others)
    if (hash !== undefined) at.hash = hash
    if (at.href.length <= LONGEST && at.href !== location.href) history[how](history.state, "", at)
  }
  place.addEventListener("focusout", () => {
    if (waiting !== undefined) write("replaceState")
    typed = null
  })
  addEventListener("popstate", function back() {
    if (!place.isConnected) return removeEventListener("popstate", back)
    if (location.pathname !== path) return
    clearTimeout(waiting)
    waiting = undefined
    typed = null
    recall()
  })
  return (field = null) => {
    const goesOn = field !== null && field === typed
    typed = isTyped(field) ? field : null
    if (!goesOn) return write("pushState")
    clearTimeout(waiting)
    waiting = setTimeout(write, 100, "replaceState") // browsers allow an address to change only so often
  }
}
/**
 * What stands after `?` for these choices, and before what others keep there.
 * @param {Record<string, string | null | undefined>} values
 * @param {[string, string][]} [others]
 */
export const searchOf = (values, others = []) =>
  `${new URLSearchParams([...Object.entries(values).flatMap(([k, v]) => (v ? [[k, v]] : [])), ...others])}`
/**
 * What an address says of the choices: those that differ from the usual ones, and always these.
 * @param {Record<string, any>} values
 * @param {Record<string, string>} usual
 * @param {string[]} [always]
 */
export const differing = (values, usual, always = []) =>
  Object.fromEntries(
    Object.entries(usual).map(([name, text]) => [
      name,
      values[name] !== text || always.includes(name) ? values[name] : null,
    ]),
  )
const LONGEST = 500_000 // characters of an address: what every browser keeps
const isTyped = (/** @type {EventTarget?} */ field) =>
  field instanceof HTMLTextAreaElement ||
  (field instanceof HTMLInputElement && ["text", "number", "range"].includes(field.type))

/**
 * The values of an address by the names of the rules, and a line for each invalid one.
 * @template {Record<string, string>} T
 * @param {URLSearchParams} given
 * @param {Record<string, Rule>} rules
 * @param {T} defaults
 * @returns {[values: T, wrong: string[]]}
 */
export function accepted(given, rules, defaults) {
  const values = /** @type {Record<string, string>} */ ({ ...defaults }),
    wrong = []
  for (const [name, rule] of Object.entries(rules)) {
    const text = given.get(name)
    try {
      if (text !== null) values[name] = rule(text)
    } catch (error) {
      wrong.push(error instanceof Error ? error.message : String(error))
    }
  }
  return [/** @type {T} */ (values), wrong]
}
