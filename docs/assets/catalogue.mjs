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

/**
 * @param {HTMLTableElement} table
 * @param {(table: HTMLTableElement) => void} sort by the heading that has `aria-sort`
 */
function mount(table, sort) {
  if (table.dataset.mounted) return
  table.dataset.mounted = "true"
  const rows = [...table.tBodies[0].rows] // in the order of the page
  const headings = [...(table.tHead?.rows[0].cells ?? [])],
    names = headings.map(th => slug(th.textContent))
  const form = /** @type {HTMLFormElement?} */ (table.closest(".ep-block")?.querySelector("form.ep-filter"))
  const named = rows.map(row =>
    plain(
      [row.cells[0].textContent, ...["family", "attention", "kind", "facts"].map(name => row.dataset[name] ?? "")].join(
        " ",
      ),
    ),
  )
  const found = rows.map((row, i) => `${named[i]} ${plain(row.dataset.names ?? "")}`)

  headings.forEach(th => {
    const button = document.createElement("button")
    button.type = "button"
    button.append(...th.childNodes)
    button.addEventListener("click", () => {
      order(th, next(th))
      remember()
    })
    th.append(button)
  })

  // A column of numbers starts with the largest, a cost with the smallest, one of words with A; a third click gives
  // back the page's own order.
  const first = (/** @type {Element} */ th) =>
    th.classList.contains("num") && !COST.test(th.textContent) ? "descending" : "ascending"
  function next(/** @type {Element} */ th) {
    const now = th.getAttribute("aria-sort")
    return now === null ? first(th) : now === first(th) ? (now === "ascending" ? "descending" : "ascending") : null
  }

  /**
   * @param {Element} by
   * @param {string?} direction
   */
  function order(by, direction) {
    for (const th of headings) th.removeAttribute("aria-sort")
    if (direction) {
      by.setAttribute("aria-sort", direction)
      sort(table)
    } else table.tBodies[0].append(...rows)
    caption()
  }

  let counted = ""
  function caption() {
    const isSorted = headings.some(th => th.hasAttribute("aria-sort"))
    if (counted && table.caption) table.caption.textContent = counted + (isSorted ? "" : NEWEST_FIRST)
  }

  /** @param {HTMLFormElement} form */
  function filter(form) {
    const given = values(),
      format = /** @type {HTMLSelectElement} */ (form.elements.namedItem("format")).selectedIndex
    const groups = plain(given.find ?? "")
      .split(/ ?, ?| or | vs\.? /)
      .map(group => group.split(" ").filter(Boolean))
      .filter(group => group.length)
    let shown = 0
    rows.forEach((row, i) => {
      const { parameters, cache, context, memory = "", released = "", family, kind, attention = "" } = row.dataset
      const n = Number(parameters ?? NaN)
      const words = groups.find(group => group.every(word => found[i].includes(word))) ?? []
      row.hidden = !(
        (words.length || !groups.length) &&
        (!given.family || family === given.family) &&
        (!given.kind || kind === given.kind) &&
        (!given.attention || attention.split(", ").includes(given.attention)) &&
        (!given.least || n >= Number(given.least)) &&
        (!given.most || n <= Number(given.most)) &&
        (!given.cache_kb || Number(cache ?? NaN) <= 1000 * Number(given.cache_kb)) &&
        (!given.context || Number(context ?? NaN) >= Number(given.context)) &&
        (!given.memory || Number(memory.split(" ")[format] || NaN) <= Number(given.memory)) &&
        (!given.since || released >= given.since) &&
        (!able || able.has(slugOf(row)))
      )
      if (!row.hidden) shown++
      explain(row, i, words)
    })
    const all = number.format(rows.length),
      status = form.querySelector("[role=status]")
    counted = shown === rows.length ? `${all} models` : `${number.format(shown)} of ${all} models`
    if (status) status.textContent = counted
    caption()
  }

  // Which models fit on a machine: known once the rule and its data are there, and while nothing is wrong with it.
  /** @type {Set<string>?} */
  let able = null
  let asked = ""
  const slugOf = (/** @type {HTMLTableRowElement} */ row) => row.dataset.names?.split(" ")[0] ?? ""
  async function fit(/** @type {HTMLFormElement} */ form) {
    const { on = "", at = LEAST } = values(),
      problem = /** @type {HTMLElement?} */ (form.querySelector("[role=alert]")),
      mine = `${on} ${at}`
    if (mine === asked) return
    asked = mine
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
    if (mine !== asked) return // it says something else by now
    able = slugs
    if (problem) {
      problem.textContent = wrong
      problem.hidden = !wrong
    }
    filter(form)
  }

  // A model found by another's name says whose shapes it has.
  /**
   * @param {HTMLTableRowElement} row
   * @param {number} i
   * @param {string[]} words
   */
  function explain(row, i, words) {
    const alias =
      !row.hidden &&
      words.some(word => !named[i].includes(word)) &&
      row.dataset.names?.split(" ").find(alias => words.every(word => plain(alias).includes(word)))
    row.querySelector(".ep-alias")?.remove()
    if (alias)
      row.cells[0].append(
        Object.assign(document.createElement("span"), { className: "ep-alias", textContent: `also ${alias}` }),
      )
  }

  /** @returns {Record<string, string>} */
  const values = () =>
    form ? Object.fromEntries([...new FormData(form)].flatMap(([k, v]) => (v ? [[k, String(v)]] : []))) : {}

  function remember() {
    const at = new URL(location.href),
      by = headings.findIndex(th => th.hasAttribute("aria-sort"))
    at.search = `${new URLSearchParams({
      ...values(),
      ...(by < 0 ? {} : { sort: names[by], order: headings[by].getAttribute("aria-sort") ?? "" }),
    })}`
    history.replaceState(history.state, "", at)
  }

  function recall() {
    const given = new URLSearchParams(location.search)
    for (const field of form?.elements ?? [])
      if ((field instanceof HTMLInputElement || field instanceof HTMLSelectElement) && given.has(field.name))
        field.value = given.get(field.name) ?? ""
    const sort = given.get("sort") ?? "",
      by = names.indexOf(CALLED[sort] ?? sort)
    if (by >= 0) order(headings[by], given.get("order") === "ascending" ? "ascending" : "descending")
  }

  recall()
  if (!form) return
  form.addEventListener("submit", event => event.preventDefault())
  form.addEventListener("input", () => {
    filter(form)
    fit(form)
    remember()
  })
  form.addEventListener("reset", () =>
    setTimeout(() => {
      filter(form)
      fit(form)
      remember()
    }),
  )
  const more = form.querySelector(".ep-more")
  const open = (/** @type {boolean} */ is) => {
    form.toggleAttribute("data-more", is)
    more?.setAttribute("aria-expanded", `${is}`)
  }
  more?.addEventListener("click", () => open(!form.hasAttribute("data-more")))
  open(Object.keys(values()).some(name => name !== "find"))
  form.hidden = false
  filter(form)
  fit(form)
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
