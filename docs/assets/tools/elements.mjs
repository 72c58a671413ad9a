// Elements, choices, tables, and the address: what every tool is made of.

// An element; a child that is no element is text.
export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name)
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value)
    else if (value === true) element.setAttribute(key, "")
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value)
  }
  element.append(...children.flat().filter(child => child !== null && child !== undefined))
  return element
}
export const replace = (element, ...children) => element.replaceChildren(...children.flat().filter(child => child !== null && child !== undefined))

// A choice; options as [value, text] or, below a heading, [heading, options].
export function select(name, groups, value, attributes = {}) {
  const option = ([v, text]) => make("option", { value: v, selected: v === value }, text)
  return make("select", { name, ...attributes }, groups.map(([first, rest]) => Array.isArray(rest) ? make("optgroup", { label: first }, rest.map(option)) : option([first, rest])))
}
export const labelled = (text, field, ...after) => make("label", {}, make("span", {}, text), field, ...after)

// The rows of a table; a head that begins with # is of numbers.
export const lines = (head, rows) => rows.map(row => make("tr", { class: row.cls ?? null }, row.map((cell, i) => make(i ? "td" : "th", { scope: i ? null : "row", class: i && head[i].startsWith("#") ? "num" : null }, ...[cell].flat()))))
export const table = (caption, head, rows) => make("div", { class: "ep-scroll", tabindex: 0, role: "group", "aria-label": caption }, make("table", { class: "ep-table" },
  make("caption", {}, caption),
  make("thead", {}, make("tr", {}, head.map(h => make(h ? "th" : "td", { scope: h ? "col" : null, class: h.startsWith("#") ? "num" : null }, h.replace(/^#/, ""))))),
  make("tbody", {}, lines(head, rows))))

// The address says what is chosen: what follows `?` for what may be sent to the site, nothing of a reader's own config.
export function remember(values) {
  const at = new URL(location.href)
  at.search = new URLSearchParams(Object.entries(values).filter(([, v]) => v !== undefined && v !== null && v !== ""))
  history.replaceState(history.state, "", at)
}
