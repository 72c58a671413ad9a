// Every table can be taken along, as CSV or as Markdown, copied or saved: a menu at its upper right, over room that the
// styles keep. A heading sorts what stands below it where that means something: a column of numbers in one kind of
// unit, and the names beside it.

const COST = /cache|memory|time|prefill|decode|flop/i // a column of these begins with the smallest

/** @type {[name: string, format: (rows: string[][]) => string, ending: string, type: string][]} */
const FORMATS = [
  ["CSV", csv, "csv", "text/csv"],
  ["Markdown", markdown, "md", "text/markdown"],
]

/**
 * The rows that are shown, each cell as text; one that is several columns wide is followed by empty ones.
 * @param {HTMLTableElement} table
 * @returns {string[][]}
 */
function cells(table) {
  return [...table.rows]
    .filter(row => !row.hidden && row.getClientRects().length)
    .map(row => [...row.cells].flatMap(cell => [words(cell), ...Array(cell.colSpan - 1).fill("")]))
}

function words(/** @type {HTMLElement} */ cell) {
  if (!cell.firstElementChild) return cell.textContent.replace(/\s+/g, " ").trim()
  const copy = /** @type {HTMLElement} */ (cell.cloneNode(true))
  copy.querySelectorAll(".headerlink, svg").forEach(element => element.remove())
  copy.querySelectorAll("br, .ep-was, .ep-alias, .ep-range").forEach(element => element.before(" "))
  return copy.textContent.replace(/\s+/g, " ").trim()
}

// Numbers without the commas that group their digits, as other programs read them.
function csv(/** @type {string[][]} */ rows) {
  const field = (/** @type {string} */ text) => {
    const plain = /^[−-]?\d{1,3}(,\d{3})+(\.\d+)?$/.test(text) ? text.replaceAll(",", "").replace("−", "-") : text
    return /[",\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain
  }
  return rows.map(row => row.map(field).join(",")).join("\n") + "\n"
}

function markdown(/** @type {string[][]} */ [head, ...rows]) {
  const line = (/** @type {string[]} */ row) => `| ${row.map(text => text.replaceAll("|", "\\|")).join(" | ")} |`
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n") + "\n"
}

export async function copy(/** @type {string} */ text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text)
  const area = Object.assign(document.createElement("textarea"), { value: text }) // not over https
  document.body.append(area)
  area.select()
  document.execCommand("copy")
  area.remove()
}

/**
 * @param {string} text
 * @param {string} name
 * @param {string} type
 */
function save(text, name, type) {
  const link = Object.assign(document.createElement("a"), {
    href: URL.createObjectURL(new Blob([text], { type })),
    download: name,
  })
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 1000)
}

const titled = (/** @type {HTMLTableElement} */ table) =>
  (table.caption ? words(table.caption) : document.title)
    .replace(/[^\p{L}\p{N}.]+/gu, "-")
    .replace(/^-|-$/g, "")
    .toLowerCase()
    .slice(0, 60)

export function mount(/** @type {HTMLTableElement} */ table) {
  if (table.dataset.taken) return
  table.dataset.taken = "true"
  if (!table.matches(".ep-catalogue")) sortable(table) // that one has its own
  const frame = table.closest(".ep-scroll"),
    row = document.createElement("div")
  row.className = "ep-copy"
  row.append(...menu(table, frame?.getAttribute("aria-label") ?? ""))
  if (frame) frame.prepend(row)
  else (table.closest(".md-typeset__scrollwrap") ?? table).before(row)
}

/**
 * A table's menu button, and its menu: buttons that copy or save the visible rows.
 * @param {HTMLTableElement} table
 * @param {string} label of its frame
 */
function menu(table, label) {
  const name = table.caption ? words(table.caption) : label,
    title = `Copy the table ${name ? `“${name}”` : ""}`.trim()
  const panel = document.createElement("div"),
    opening = buttonOf("Copy", () => {})
  panel.popover = "auto"
  panel.setAttribute("role", "group")
  panel.setAttribute("aria-label", title)
  opening.setAttribute("aria-label", title)
  opening.popoverTargetElement = panel
  const ways = () =>
    FORMATS.flatMap(([name, format, ending, type]) => [
      buttonOf(`Copy as ${name}`, async () => {
        const text = format(cells(table))
        panel.hidePopover()
        await copy(text)
        opening.textContent = "Copied"
        setTimeout(() => {
          opening.textContent = "Copy"
        }, 1500)
      }),
      buttonOf(`Save as ${name}`, () => {
        panel.hidePopover()
        save(format(cells(table)), `${titled(table)}.${ending}`, type)
      }),
    ])
  panel.addEventListener("beforetoggle", ({ newState }) => {
    if (newState !== "open") return
    if (!panel.childElementCount) panel.append(...ways())
    const { bottom, right } = opening.getBoundingClientRect()
    panel.style.top = `${scrollY + bottom + 2}px`
    panel.style.right = `${document.documentElement.clientWidth - right}px`
  })
  return [opening, panel]
}
const buttonOf = (/** @type {string} */ text, /** @type {() => void} */ onclick) =>
  Object.assign(document.createElement("button"), { type: "button", textContent: text, onclick })

// Sorting

/** @type {Record<string, number>[]} */
const KINDS = [
  { "": 1, K: 1e3, M: 1e6, B: 1e9, T: 1e12 },
  {
    " bytes": 1,
    " B": 1,
    " kB": 1e3,
    " MB": 1e6,
    " GB": 1e9,
    " TB": 1e12,
    " KiB": 2 ** 10,
    " MiB": 2 ** 20,
    " GiB": 2 ** 30,
    " TiB": 2 ** 40,
  },
  Object.fromEntries(
    ["", "K", "k", "M", "G", "T", "P", "E", "Z"].map(unit => [
      ` ${unit}FLOP`,
      (unit && 1e3 ** ("KMGTPEZ".indexOf(unit.toUpperCase()) + 1)) || 1,
    ]),
  ),
  { " µs": 1e-6, " ms": 1e-3, " s": 1, " ks": 1e3 },
  { " Wh": 1, " kWh": 1e3 },
  { "%": 1 },
]

/**
 * The number that a cell begins with and its kind of unit; null if the cell is empty, undefined if it is not a number.
 * @param {HTMLElement} cell
 * @returns {[number: number, kind: number] | null | undefined}
 */
function measured(cell) {
  const given = cell.dataset.sort
  if (given !== undefined) return given === "" ? null : isNaN(Number(given)) ? undefined : [Number(given), 0]
  const said = words(cell)
  if (/^(–|none|—)?$/.test(said)) return null
  const [, digits, unit] = said.match(/^<?([−-]?[\d,]*\.?\d+(?:e[+-]\d+)?)( ?[A-Za-zµ%]*)/) ?? []
  const kind =
    digits === undefined
      ? -1
      : KINDS.findIndex(units => Object.hasOwn(units, unit) || Object.hasOwn(units, unit.trimEnd()))
  if (kind < 0) return undefined
  return [
    Number(digits.replaceAll(",", "").replace("−", "-")) * (KINDS[kind][unit] ?? KINDS[kind][unit.trimEnd()]),
    kind,
  ]
}

/**
 * The rows that may change places with one another: those between headings, sums and other bodies.
 * @param {HTMLTableElement} table
 */
function runs(table) {
  const width = table.tHead?.rows[0].cells.length
  /** @type {HTMLTableRowElement[][]} */
  const all = []
  for (const body of table.tBodies) {
    /** @type {HTMLTableRowElement[]?} */
    let run = null
    for (const row of body.rows) {
      if (row.cells.length !== width || row.matches(".total, .subtotal, .ep-part")) run = null
      else if (run) run.push(row)
      else all.push((run = [row]))
    }
  }
  return all
}

/** Gives the headings that sort their buttons; once more for columns that have got figures since. */
export function sortable(/** @type {HTMLTableElement} */ table) {
  const headings = [...(table.tHead?.rows[0]?.cells ?? [])],
    has = headings.map(th => th.querySelector(":scope > button") !== null)
  if (has.every(Boolean) || table.tHead?.rows.length !== 1) return
  const given = runs(table),
    rows = given.flat()
  if (!given.some(run => run.length > 2)) return
  const isOfNumbers = headings.map((_, i) => {
    if (has[i]) return true
    let n = 0
    /** @type {number | undefined} */
    let kind
    for (const row of i ? rows : []) {
      const value = measured(row.cells[i])
      if (value === null) continue
      if (value === undefined || value[1] !== (kind ??= value[1])) return false
      n++
    }
    return n > 2
  })
  if (!isOfNumbers.includes(true)) return
  headings.forEach((th, i) => {
    if (has[i] || (!isOfNumbers[i] && (i || !words(th)))) return // an empty corner cell sorts nothing
    const button = document.createElement("button")
    button.type = "button"
    button.append(...th.childNodes)
    th.append(button)
    const isLargestFirst = isOfNumbers[i] && !COST.test(th.textContent)
    const [first, second] = isLargestFirst ? ["descending", "ascending"] : ["ascending", "descending"]
    button.addEventListener("click", () => {
      const before = th.getAttribute("aria-sort"),
        direction = before === first ? second : before === second ? null : first
      for (const other of headings) other.removeAttribute("aria-sort")
      if (direction) th.setAttribute("aria-sort", direction)
      order(table)
    })
  })
}

/** @type {WeakMap<HTMLTableRowElement, number>} */
const original = new WeakMap() // the place of a row in the page's own order
const placeOf = (/** @type {HTMLTableRowElement} */ row) => original.get(row) ?? 0

/**
 * Puts the rows into the order that a heading says, or back into the page's own.
 * @param {HTMLTableElement} table
 */
export function order(table, isBack = false) {
  const headings = [...(table.tHead?.rows[0].cells ?? [])],
    i = isBack ? -1 : headings.findIndex(th => th.hasAttribute("aria-sort"))
  const sign = headings[i]?.getAttribute("aria-sort") === "descending" ? -1 : 1
  for (const run of runs(table)) {
    run.forEach((row, n) => {
      if (!original.has(row)) original.set(row, n)
    })
    /** @type {Map<HTMLTableRowElement, number | string | undefined>} */
    const keys = new Map()
    if (i >= 0)
      for (const row of run) keys.set(row, i ? measured(row.cells[i])?.[0] : words(row.cells[0]).toLowerCase())
    const compared = (/** @type {HTMLTableRowElement} */ a, /** @type {HTMLTableRowElement} */ b) => {
      const [x, y] = [keys.get(a), keys.get(b)]
      if (x === y || i < 0) return placeOf(a) - placeOf(b)
      return x === undefined ? 1 : y === undefined ? -1 : sign * (x < y ? -1 : 1)
    }
    const behind = run[run.length - 1].nextSibling,
      body = run[0].parentNode
    for (const row of [...run].sort(compared)) body?.insertBefore(row, behind)
  }
}

const OF_THEMES = ["docutils", "table", "table-striped", "table-hover"] // which some give to every table

const start = () => {
  /** @type {NodeListOf<HTMLTableElement>} */
  const tables = document.querySelectorAll(".ep-table")
  for (const table of tables) {
    table.classList.remove(...OF_THEMES)
    if (!table.matches(".ep-matrix")) mount(table)
  }
}
const now = () => (globalThis.document$ ? globalThis.document$.subscribe(start) : start())
if (document.readyState === "complete") now()
else addEventListener("load", now, { once: true })
