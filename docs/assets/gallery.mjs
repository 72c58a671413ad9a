// The gallery of architectures: filtered by the form above it, with two drawings compared side by side or overlaid.
// The URL keeps the choices. Without this script, every drawing is shown.

const AT_A_TIME = 24 // cards that get their box between two frames
const ON_A_PHONE = 24 // cards that a phone shows at first, and more at each press; as in the style sheet
const number = new Intl.NumberFormat("en")
const plain = (/** @type {string?} */ s) =>
  (s ?? "")
    .toLowerCase()
    .replace(/[\s_]+/g, " ")
    .trim()

function mount(/** @type {HTMLUListElement} */ list) {
  if (list.dataset.mounted) return
  list.dataset.mounted = "true"
  const cards = /** @type {HTMLLIElement[]} */ ([...list.children])
  const form = /** @type {HTMLFormElement?} */ (list.closest(".ep-block")?.querySelector("form.ep-filter"))
  choosing(list, cards)
  if (!form) return
  /** @type {ReturnType<typeof factsOf>[]} */
  let facts = [],
    room = ON_A_PHONE
  const more = button("", () => {
    const next = cards.filter(card => !card.hidden)[room]
    room += ON_A_PHONE
    later()
    next?.querySelector("a")?.focus()
  })
  more.className = "ep-more-cards"
  list.after(more)

  const filter = () => {
    const given = valuesOf(form)
    if (!facts.length) facts = cards.map(factsOf)
    cards.forEach((card, i) => void (card.hidden = !isMeant(facts[i], given)))
    room = ON_A_PHONE
    later()
  }
  // A phone shows only the first matches.
  const later = () => {
    const fitting = cards.filter(card => !card.hidden),
      [shown, all] = [fitting.length, cards.length].map(n => number.format(n)),
      status = form.querySelector("[role=status]")
    fitting.forEach((card, i) => card.classList.toggle("ep-later", i >= room))
    more.hidden = fitting.length <= room
    more.textContent = `Show ${Math.min(ON_A_PHONE, fitting.length - room)} more of ${shown}`
    if (status) status.textContent = fitting.length < cards.length ? `${shown} of ${all} types` : `${all} types`
  }
  const changed = () => {
    filter()
    const at = new URL(location.href)
    at.search = `${new URLSearchParams(valuesOf(form))}`
    history.replaceState(history.state, "", at)
  }
  restore(form)
  form.addEventListener("submit", event => event.preventDefault())
  form.addEventListener("input", changed)
  form.addEventListener("reset", () => setTimeout(changed))
  form.hidden = false
  if (Object.keys(valuesOf(form)).length) filter()
  else later()
}

/** The settings of a form. @returns {Record<string, string>} */
const valuesOf = (/** @type {HTMLFormElement} */ form) =>
  Object.fromEntries([...new FormData(form)].flatMap(([k, v]) => (v ? [[k, String(v)]] : [])))

/** Fills a form from the URL, and opens it if the URL sets more than the search word. */
function restore(/** @type {HTMLFormElement} */ form) {
  const given = new URLSearchParams(location.search)
  for (const field of form.elements)
    if ((field instanceof HTMLInputElement || field instanceof HTMLSelectElement) && given.has(field.name))
      field.value = given.get(field.name) ?? ""
  const filters = form.querySelector(".ep-more"),
    open = (/** @type {boolean} */ is) => {
      form.toggleAttribute("data-more", is)
      filters?.setAttribute("aria-expanded", `${is}`)
    }
  filters?.addEventListener("click", () => open(!form.hasAttribute("data-more")))
  if (Object.keys(valuesOf(form)).some(name => name !== "find")) open(true)
}

/**
 * Whether a type matches the filters.
 * @param {ReturnType<typeof factsOf>} facts
 * @param {Record<string, string>} given
 */
function isMeant({ kind, attention, year, found }, given) {
  const words = plain(given.find ?? "").split(" ")
  return (
    words.every(word => found.includes(word)) &&
    (!given.kind || kind === given.kind) &&
    (!given.attention || attention.includes(given.attention)) &&
    (!given.year || year === given.year)
  )
}

// The facts on a card, and the text that is searched, which includes the family from the link.
function factsOf(/** @type {HTMLElement} */ card) {
  const [when, what] = card.querySelectorAll("p")
  const [kind, ...attention] = what.textContent.split(", ")
  return {
    kind,
    attention,
    year: /\b\d{4}\b/.exec(when.textContent)?.[0],
    found: plain(`${card.querySelector("a")?.getAttribute("href")} ${card.textContent}`),
  }
}

// Two drawings

/**
 * A checkbox on each card; once two are checked, a bar leads to both. Checking a third unchecks the first.
 * @param {HTMLUListElement} list
 * @param {HTMLLIElement[]} cards
 */
async function choosing(list, cards) {
  /** @type {HTMLLIElement[]} */
  let chosen = []
  const bar = document.createElement("div"),
    said = document.createElement("span"),
    open = button("Compare", () => compare(chosen))
  bar.className = "ep-pair"
  said.setAttribute("role", "status")
  bar.append(said, open)
  bar.hidden = true
  list.after(bar)
  for (const [i, card] of cards.entries()) {
    if (i % AT_A_TIME === 0) await new Promise(requestAnimationFrame)
    const label = document.createElement("label"),
      box = Object.assign(document.createElement("input"), { type: "checkbox" })
    box.setAttribute("aria-label", `Compare ${nameOf(card)}`)
    label.append(box, "Compare")
    card.append(label)
    box.addEventListener("change", () => {
      chosen = chosen.filter(one => one !== card)
      if (box.checked) chosen.push(card)
      for (const one of chosen.splice(0, chosen.length - 2)) {
        const before = one.querySelector("input")
        if (before) before.checked = false
      }
      bar.hidden = !chosen.length
      open.hidden = chosen.length < 2
      said.textContent =
        chosen.length < 2 ? `${chosen.map(nameOf)}: choose a second drawing.` : chosen.map(nameOf).join(" and ")
    })
  }
}

const nameOf = (/** @type {HTMLElement} */ card) => card.querySelector("strong")?.textContent ?? ""
const boxesOf = (/** @type {HTMLElement} */ card) =>
  new Set((card.querySelector("desc")?.textContent ?? "").split("; ").map(box => box.replace(/^Layer[^;]*?: /, "")))

/**
 * @param {string} text
 * @param {() => void} onclick
 */
function button(text, onclick) {
  return Object.assign(document.createElement("button"), { type: "button", textContent: text, onclick })
}

/** Both drawings, with their differences. */
function compare(/** @type {HTMLElement[]} */ [one, other]) {
  const dialog = document.createElement("dialog"),
    ways = document.createElement("form"),
    place = document.createElement("div")
  dialog.className = "ep-two"
  dialog.setAttribute("aria-label", `${nameOf(one)} and ${nameOf(other)}`)
  place.className = "ep-two-drawings"
  for (const [value, text] of [
    ["", "Side by side"],
    ["over", "Over each other"],
  ]) {
    const label = document.createElement("label"),
      radio = Object.assign(document.createElement("input"), { type: "radio", name: "how", value, checked: !value })
    radio.addEventListener("change", () => place.classList.toggle("over", value === "over"))
    label.append(radio, text)
    ways.append(label)
  }
  ways.append(button("Close", () => dialog.close()))
  for (const card of [one, other]) {
    const figure = document.createElement("div"),
      title = document.createElement("strong"),
      drawing = card.querySelector("svg")?.cloneNode(true)
    title.textContent = nameOf(card)
    if (drawing) figure.append(title, drawing)
    place.append(figure)
  }
  const only = [
    [one, other],
    [other, one],
  ].map(([mine, theirs]) => {
    const item = document.createElement("li"),
      others = boxesOf(theirs),
      boxes = [...boxesOf(mine)].filter(box => !others.has(box))
    item.textContent = `Only in ${nameOf(mine)}: ${boxes.join("; ") || "nothing"}.`
    return item
  })
  const words = document.createElement("ul")
  words.append(...only)
  dialog.append(ways, place, words)
  dialog.onclose = () => dialog.remove()
  document.body.append(dialog)
  dialog.showModal()
}

function start() {
  /** @type {NodeListOf<HTMLUListElement>} */
  const lists = document.querySelectorAll("ul.ep-gallery:not(.ep-then-now)")
  lists.forEach(mount)
}
const now = () => (globalThis.document$ ? globalThis.document$.subscribe(start) : start())
if (document.readyState === "complete") now()
else addEventListener("load", now, { once: true })
