// Every table can be taken along, as CSV or as Markdown: two buttons at its upper right, over room that the styles keep.

const FORMATS = { CSV: csv, Markdown: markdown }

// The rows that are shown, each cell as text; one that is several columns wide is followed by empty ones.
function cells(table) {
  return [...table.rows].filter(row => !row.hidden && row.getClientRects().length).map(row => [...row.cells].flatMap(cell => [words(cell), ...Array(cell.colSpan - 1).fill("")]))
}

function words(cell) {
  const copy = cell.cloneNode(true)
  copy.querySelectorAll(".headerlink, svg").forEach(element => element.remove())
  copy.querySelectorAll("br, .ep-was, .ep-alias, .ep-range").forEach(element => element.before(" "))
  return copy.textContent.replace(/\s+/g, " ").trim()
}

// Numbers without the commas that group their digits, as other programs read them.
function csv(rows) {
  const field = text => {
    const plain = /^[−-]?\d{1,3}(,\d{3})+(\.\d+)?$/.test(text) ? text.replaceAll(",", "").replace("−", "-") : text
    return /[",\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain
  }
  return rows.map(row => row.map(field).join(",")).join("\n") + "\n"
}

function markdown([head, ...rows]) {
  const line = row => `| ${row.map(text => text.replaceAll("|", "\\|")).join(" | ")} |`
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n") + "\n"
}

async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text)
  const area = Object.assign(document.createElement("textarea"), { value: text }) // not over https
  document.body.append(area)
  area.select()
  document.execCommand("copy")
  area.remove()
}

function mount(table) {
  const frame = table.closest(".ep-scroll, .md-typeset__scrollwrap") ?? table
  if (frame.previousElementSibling?.matches(".ep-copy")) return
  const row = document.createElement("div")
  row.className = "ep-copy"
  row.setAttribute("role", "group")
  row.setAttribute("aria-label", `Copy the table ${table.caption ? `“${words(table.caption)}”` : ""}`.trim())
  for (const [name, format] of Object.entries(FORMATS)) {
    const button = document.createElement("button")
    button.type = "button"
    button.textContent = name
    button.title = `Copy this table as ${name}`
    button.addEventListener("click", async () => {
      await copy(format(cells(table)))
      button.textContent = "copied"
      setTimeout(() => { button.textContent = name }, 1500)
    })
    row.append(button)
  }
  frame.before(row)
}

const start = () => document.querySelectorAll(".md-content .ep-table").forEach(mount)
const now = () => globalThis.document$ ? document$.subscribe(start) : start()
document.readyState === "complete" ? now() : addEventListener("load", now, { once: true })
