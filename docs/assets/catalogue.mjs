// The catalogue's table: sorted by the buttons of its headings, filtered by the form above it. What is chosen stands in the
// address, so that it can be linked and comes back with "back". Without this script the whole table stands, unfiltered.

const LIST = ".ep-catalogue"
const number = new Intl.NumberFormat("en")

function mount(table, sort) {
  if (table.dataset.mounted) return
  table.dataset.mounted = "true"
  const rows = [...table.tBodies[0].rows] // in the order of the page
  const headings = [...table.tHead.rows[0].cells], names = headings.map(th => slug(th.textContent))
  const form = table.closest(".ep-block").querySelector("form.ep-filter")
  const named = rows.map(row => plain(`${row.cells[0].textContent} ${row.dataset.family} ${row.dataset.attention ?? ""} ${row.dataset.kind ?? ""} ${row.dataset.facts}`))
  const found = rows.map((row, i) => `${named[i]} ${plain(row.dataset.names)}`)

  headings.forEach(th => {
    const button = document.createElement("button")
    button.type = "button"
    button.append(...th.childNodes)
    button.addEventListener("click", () => { order(th, next(th)); remember() })
    th.append(button)
  })

  // A column of numbers starts with the largest, one of words with A; a third click gives back the page's own order.
  const first = th => th.classList.contains("num") ? "descending" : "ascending"
  const next = th => ({ [first(th)]: first(th) === "ascending" ? "descending" : "ascending", null: first(th) })[th.getAttribute("aria-sort")]

  function order(by, direction) {
    for (const th of headings) th.removeAttribute("aria-sort")
    if (direction) {
      by.setAttribute("aria-sort", direction)
      sort(table)
    } else table.tBodies[0].append(...rows)
  }

  function filter() {
    const given = values(), format = form.elements.format.selectedIndex
    const groups = plain(given.find ?? "").split(/ ?, ?| or | vs\.? /).map(group => group.split(" ").filter(Boolean)).filter(group => group.length)
    let shown = 0
    rows.forEach((row, i) => {
      const { parameters, cache, context, memory = "", released, family, kind, attention = "" } = row.dataset
      const n = Number(parameters ?? NaN)
      const words = groups.find(group => group.every(word => found[i].includes(word))) ?? []
      row.hidden = !((words.length || !groups.length)
        && (!given.family || family === given.family)
        && (!given.kind || kind === given.kind)
        && (!given.attention || attention.split(", ").includes(given.attention))
        && (!given.least || n >= given.least) && (!given.most || n <= given.most)
        && (!given.cache_kb || Number(cache ?? NaN) <= 1000 * given.cache_kb)
        && (!given.context || Number(context ?? NaN) >= given.context)
        && (!given.memory || Number(memory.split(" ")[format] || NaN) <= given.memory)
        && (!given.since || released >= given.since))
      shown += !row.hidden
      explain(row, i, words)
    })
    form.querySelector("[role=status]").textContent = table.caption.textContent = shown === rows.length ? `${number.format(shown)} models` : `${number.format(shown)} of ${number.format(rows.length)} models`
  }

  // A model found by another's name says whose shapes it has.
  function explain(row, i, words) {
    const alias = !row.hidden && words.some(word => !named[i].includes(word)) && row.dataset.names.split(" ").find(alias => words.every(word => plain(alias).includes(word)))
    row.querySelector(".ep-alias")?.remove()
    if (alias) row.cells[0].append(Object.assign(document.createElement("span"), { className: "ep-alias", textContent: `also ${alias}` }))
  }

  const values = () => form ? Object.fromEntries([...new FormData(form)].filter(([, value]) => value)) : {}

  function remember() {
    const at = new URL(location.href), by = headings.findIndex(th => th.hasAttribute("aria-sort"))
    at.search = new URLSearchParams({ ...values(), ...(by < 0 ? {} : { sort: names[by], order: headings[by].getAttribute("aria-sort") }) })
    history.replaceState(history.state, "", at)
  }

  function recall() {
    const given = new URLSearchParams(location.search)
    for (const field of form?.elements ?? []) if (field.name && given.has(field.name)) field.value = given.get(field.name)
    const by = names.indexOf(given.get("sort"))
    if (by >= 0) order(headings[by], given.get("order") === "ascending" ? "ascending" : "descending")
  }

  recall()
  if (!form) return
  form.addEventListener("submit", event => event.preventDefault())
  form.addEventListener("input", () => { filter(); remember() })
  form.addEventListener("reset", () => setTimeout(() => { filter(); remember() }))
  form.hidden = false
  filter()
}

const plain = s => s.toLowerCase().replace(/[\s_]+/g, " ").trim()
const slug = s => plain(s).replace(/[^a-z]+/g, "-")

async function start() {
  const tables = document.querySelectorAll(LIST)
  if (!tables.length) return
  const { sortSortable } = await import("./vendor/sortable-tablesort.mjs")
  tables.forEach(table => mount(table, sortSortable))
}

const now = () => globalThis.document$ ? document$.subscribe(start) : start()
document.readyState === "complete" ? now() : addEventListener("load", now, { once: true })
