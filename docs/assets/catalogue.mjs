// The catalogue's table: sorted by the buttons of its headings, filtered by the form above it. What is chosen stands in
// the address, so that it can be linked and comes back with "back". Without this script the whole table stands,
// unfiltered.

const LIST = ".ep-catalogue",
  LEAST = "4096", // tokens of context
  COST = /cache/i,
  NEWEST_FIRST = ", newest first", // the page's own order
  SORTER = "./vendor/sortable-tablesort.mjs" // not ours: it is not looked into for types
/** @type {Record<string, string>} */
const CALLED = { licence: "license", "cache-bytes-a-token": "kv-cache-bytes-token" } // columns, in addresses before
const number = new Intl.NumberFormat("en")

/** @typedef {Record<string, string>} Given what the form and an address say, by the names of the fields */

/**
 * Whether a model is among those that are asked for, besides its name.
 * @param {DOMStringMap} facts of its row
 * @param {Given} given
 * @param {number} format the place of its weights among those of the row
 */
function isAmong(facts, given, format) {
  const { parameters, cache, context, memory = "", released = "", family, kind, attention = "" } = facts,
    n = Number(parameters ?? NaN)
  return (
    (!given.family || family === given.family) &&
    (!given.kind || kind === given.kind) &&
    (!given.attention || attention.split(", ").includes(given.attention)) &&
    (!given.least || n >= Number(given.least)) &&
    (!given.most || n <= Number(given.most)) &&
    (!given.cache_kb || Number(cache ?? NaN) <= 1000 * Number(given.cache_kb)) &&
    (!given.context || Number(context ?? NaN) >= Number(given.context)) &&
    (!given.memory || Number(memory.split(" ")[format] || NaN) <= Number(given.memory)) &&
    (!given.since || released >= given.since)
  )
}
/** The alternatives of what is looked for, each as its words. @returns {string[][]} */
const alternatives = (/** @type {string} */ text) =>
  plain(text)
    .split(/ ?, ?| or | vs\.? /)
    .map(group => group.split(" ").filter(Boolean))
    .filter(group => group.length)

// A column of numbers starts with the largest, a cost with the smallest, one of words with A; a third click gives back
// the page's own order.
const first = (/** @type {Element} */ th) =>
  th.classList.contains("num") && !COST.test(th.textContent) ? "descending" : "ascending"
function next(/** @type {Element} */ th) {
  const now = th.getAttribute("aria-sort")
  return now === null ? first(th) : now === first(th) ? (now === "ascending" ? "descending" : "ascending") : null
}
const slugOf = (/** @type {HTMLTableRowElement} */ row) => row.dataset.names?.split(" ")[0] ?? ""

/** A table of models, and the form above it. */
class Catalogue {
  counted = "" // models, as the caption says
  /** @type {Set<string>?} */
  able = null // the models that fit on a machine: once the rule and its data are there, while nothing is wrong with it
  asked = ""
  /**
   * @param {HTMLTableElement} table
   * @param {(table: HTMLTableElement) => void} sort by the heading that has `aria-sort`
   */
  constructor(table, sort) {
    this.table = table
    this.sort = sort
    this.rows = [...table.tBodies[0].rows] // in the order of the page
    this.headings = [...(table.tHead?.rows[0].cells ?? [])]
    this.names = this.headings.map(th => slug(th.textContent))
    this.form = /** @type {HTMLFormElement?} */ (table.closest(".ep-block")?.querySelector("form.ep-filter"))
    this.named = this.rows.map(({ cells, dataset }) => {
      const facts = ["family", "attention", "kind", "facts"].map(name => dataset[name] ?? "")
      return plain([cells[0].textContent, ...facts].join(" "))
    })
    this.found = this.rows.map((row, i) => `${this.named[i]} ${plain(row.dataset.names ?? "")}`)
    this.headings.forEach(th => {
      const button = document.createElement("button")
      button.type = "button"
      button.append(...th.childNodes)
      button.addEventListener("click", () => {
        this.order(th, next(th))
        this.remember()
      })
      th.append(button)
    })
  }

  /**
   * @param {Element} by
   * @param {string?} direction
   */
  order(by, direction) {
    for (const th of this.headings) th.removeAttribute("aria-sort")
    if (direction) {
      by.setAttribute("aria-sort", direction)
      this.sort(this.table)
    } else this.table.tBodies[0].append(...this.rows)
    this.caption()
  }
  caption() {
    const isSorted = this.headings.some(th => th.hasAttribute("aria-sort")),
      { caption } = this.table
    if (this.counted && caption) caption.textContent = this.counted + (isSorted ? "" : NEWEST_FIRST)
  }

  filter(/** @type {HTMLFormElement} */ form) {
    const given = this.values(),
      format = /** @type {HTMLSelectElement} */ (form.elements.namedItem("format")).selectedIndex,
      groups = alternatives(given.find ?? "")
    let shown = 0
    this.rows.forEach((row, i) => {
      const words = groups.find(group => group.every(word => this.found[i].includes(word))) ?? []
      row.hidden = !(
        (words.length || !groups.length) &&
        isAmong(row.dataset, given, format) &&
        (!this.able || this.able.has(slugOf(row)))
      )
      if (!row.hidden) shown++
      this.explain(row, i, words)
    })
    const all = number.format(this.rows.length),
      status = form.querySelector("[role=status]")
    this.counted = shown === this.rows.length ? `${all} models` : `${number.format(shown)} of ${all} models`
    if (status) status.textContent = this.counted
    this.caption()
  }

  async fit(/** @type {HTMLFormElement} */ form) {
    const { on = "", at = LEAST } = this.values(),
      problem = /** @type {HTMLElement?} */ (form.querySelector("[role=alert]")),
      mine = `${on} ${at}`
    if (mine === this.asked) return
    this.asked = mine
    let slugs = null,
      wrong = ""
    if (on) {
      const { modelsThatFit } = await import("./fitting.mjs")
      try {
        slugs = await modelsThatFit(on, at)
      } catch (error) {
        wrong = `Fits on: ${error instanceof Error ? error.message : error}`
      }
    }
    if (mine !== this.asked) return // it says something else by now
    this.able = slugs
    if (problem) {
      problem.textContent = wrong
      problem.hidden = !wrong
    }
    this.filter(form)
  }

  /**
   * A model found by another's name says whose shapes it has.
   * @param {HTMLTableRowElement} row
   * @param {number} i
   * @param {string[]} words
   */
  explain(row, i, words) {
    const alias =
      !row.hidden &&
      words.some(word => !this.named[i].includes(word)) &&
      row.dataset.names?.split(" ").find(alias => words.every(word => plain(alias).includes(word)))
    row.querySelector(".ep-alias")?.remove()
    if (alias)
      row.cells[0].append(
        Object.assign(document.createElement("span"), { className: "ep-alias", textContent: `also ${alias}` }),
      )
  }

  /** @returns {Given} */
  values() {
    const { form } = this
    return form ? Object.fromEntries([...new FormData(form)].flatMap(([k, v]) => (v ? [[k, String(v)]] : []))) : {}
  }
  remember() {
    const { headings, names } = this,
      at = new URL(location.href),
      by = headings.findIndex(th => th.hasAttribute("aria-sort"))
    at.search = `${new URLSearchParams({
      ...this.values(),
      ...(by < 0 ? {} : { sort: names[by], order: headings[by].getAttribute("aria-sort") ?? "" }),
    })}`
    history.replaceState(history.state, "", at)
  }
  recall() {
    const given = new URLSearchParams(location.search)
    for (const field of this.form?.elements ?? [])
      if ((field instanceof HTMLInputElement || field instanceof HTMLSelectElement) && given.has(field.name))
        field.value = given.get(field.name) ?? ""
    const sort = given.get("sort") ?? "",
      by = this.names.indexOf(CALLED[sort] ?? sort)
    if (by >= 0) this.order(this.headings[by], given.get("order") === "ascending" ? "ascending" : "descending")
  }
  begin(/** @type {HTMLFormElement} */ form) {
    const show = () => {
      this.filter(form)
      this.fit(form)
    }
    const changed = () => {
      show()
      this.remember()
    }
    let waits = 0
    const soon = () => {
      clearTimeout(waits)
      waits = setTimeout(changed) // what is typed stands in its field first
    }
    form.addEventListener("submit", event => event.preventDefault())
    form.addEventListener("input", soon)
    form.addEventListener("reset", soon)
    const more = form.querySelector(".ep-more")
    const open = (/** @type {boolean} */ is) => {
      form.toggleAttribute("data-more", is)
      more?.setAttribute("aria-expanded", `${is}`)
    }
    more?.addEventListener("click", () => open(!form.hasAttribute("data-more")))
    open(Object.keys(this.values()).some(name => name !== "find"))
    form.hidden = false
    show()
  }
}

/**
 * @param {HTMLTableElement} table
 * @param {(table: HTMLTableElement) => void} sort
 */
function mount(table, sort) {
  if (table.dataset.mounted) return
  table.dataset.mounted = "true"
  const catalogue = new Catalogue(table, sort)
  catalogue.recall()
  if (catalogue.form) catalogue.begin(catalogue.form)
}

const plain = (/** @type {string} */ s) =>
  s
    .toLowerCase()
    .replace(/[\s_]+/g, " ")
    .trim()
const slug = (/** @type {string} */ s) => plain(s).replace(/[^a-z]+/g, "-")

async function start() {
  const tables = /** @type {NodeListOf<HTMLTableElement>} */ (document.querySelectorAll(LIST))
  if (!tables.length) return
  const { sortSortable } = await import(SORTER)
  tables.forEach(table => mount(table, sortSortable))
}

const now = () => (globalThis.document$ ? globalThis.document$.subscribe(start) : start())
if (document.readyState === "complete") now()
else addEventListener("load", now, { once: true })
