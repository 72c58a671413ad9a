// @ts-nocheck Node and jsdom bring no types.
// Drives the tools of a page in Node: all that a reader can press, choose or write, in the order of the keyboard.
// After each step it prints what a reader sees and hears, what the address says, and whether a new page at that address
// shows the same. Its input says which tools, at which addresses, and what is written into which field.

import { readdirSync, readFileSync } from "node:fs"
import { createHash } from "node:crypto"
import process from "node:process"
import { fileURLToPath } from "node:url"
import { inflateSync } from "node:zlib"
import { JSDOM } from "jsdom"

// What the one worker does with what it hears.
let hears
let given = ""
for await (const piece of process.stdin.setEncoding("utf-8")) given += piece
const asked = JSON.parse(given),
  ORIGIN = "https://example.org/",
  LONG = 1000, // milliseconds: what waits longer does not happen
  QUIET = 5, // turns in which a page waits for nothing, after which it has its answer
  MOST_OPTIONS = 12, // of a longer list only the chosen one is said
  { window } = new JSDOM("", { url: ORIGIN }),
  { document, history, location } = window,
  { Event: Heard, setTimeout: later, clearTimeout: gone } = globalThis,
  waiting = new Set()

for (const name of Object.getOwnPropertyNames(window))
  if (/^(HTML|SVG)\w*Element$|^((Custom|Keyboard|Mouse)?Event|DOMParser|Element|FormData|Node)$/.test(name))
    Object.defineProperty(globalThis, name, { value: window[name], configurable: true })
const own = {
  ...{ document, history, location, window, innerHeight: 800, innerWidth: 1280, scrollY: 0 },
  ...{ navigator: window.navigator, matchMedia: () => ({ matches: false, addEventListener() {} }) },
  addEventListener: window.addEventListener.bind(window),
  removeEventListener: window.removeEventListener.bind(window),
  requestAnimationFrame: then => own.setTimeout(then),
  cancelAnimationFrame: timer => own.clearTimeout(timer),
  setTimeout(then, wait = 0, ...more) {
    if (wait >= LONG) return 0
    const timer = later(() => waiting.delete(timer) && then(...more), 0)
    return waiting.add(timer) && timer
  },
  clearTimeout: timer => waiting.delete(timer) && gone(timer),
  reportError: error => lines.push(`an error of ours: ${error.stack}`),
  fetch: async url => {
    const bytes = readFileSync(fileURLToPath(`${url}`.replace(/\/$/, ""))),
      text = async () => bytes.toString("utf-8")
    return {
      ...{ ok: true, text, json: async () => JSON.parse(await text()), blob: async () => new Blob([bytes]) },
      ...{ arrayBuffer: async () => new Uint8Array(bytes).buffer, body: { pipeThrough: () => inflateSync(bytes) } },
    }
  },
  DecompressionStream: class {},
  Response: class {
    constructor(bytes) {
      this.arrayBuffer = async () => new Uint8Array(bytes).buffer
    }
  },
  ImageData: class {
    constructor(width, height) {
      this.data = new Uint8ClampedArray(4 * width * height)
    }
  },
  Worker: class extends EventTarget {
    constructor(url) {
      super()
      hears ??= new Promise(done => (globalThis.addEventListener = (_, does) => done(does)))
      globalThis.postMessage = data => this.dispatchEvent(Object.assign(new Heard("message"), { data }))
      import(url).then(() => (globalThis.addEventListener = own.addEventListener))
    }
    postMessage(data) {
      const timer = {}
      waiting.add(timer)
      hears.then(async does => {
        await does({ data })
        waiting.delete(timer)
      })
    }
    terminate() {}
  },
}
for (const [name, value] of Object.entries(own))
  Object.defineProperty(globalThis, name, { value, configurable: true, writable: true })
Object.assign(window.HTMLElement.prototype, { scrollIntoView() {}, scrollBy() {} })
window.HTMLCanvasElement.prototype.getContext = function () {
  return { putImageData: ({ data }) => (this.toDataURL = () => `data:${digest(data)}`) }
}
Object.defineProperty(window.HTMLElement.prototype, "offsetWidth", { get: () => 1 })

// --- what a reader sees and hears ---

/** @type {string[]} */
let lines = []
const isSeen = one => !one.closest?.("[hidden]") && one.getAttribute?.("aria-hidden") !== "true"
const digest = text => createHash("sha256").update(text).digest("hex").slice(0, 8)
const plain = text => text.replace(/\s+/g, " ").trim()
const away = url => `${url}`.replace(/^(file:.*?\/states\d*|https:\/\/example.org)\//, "/")
const STATES = ["aria-pressed", "aria-invalid", "aria-expanded", "aria-checked", "aria-sort", "aria-current"]
function named(one) {
  const label = one.closest("label"),
    text = label ? [...label.childNodes].filter(n => n !== one && !n.contains(one)).map(n => n.textContent) : []
  return plain(one.getAttribute("aria-label") ?? (text.join(" ") || one.placeholder || one.textContent || ""))
}
const statesOf = one =>
  [
    ...STATES.flatMap(name => (one.hasAttribute(name) ? [`${name.slice(5)}=${one.getAttribute(name)}`] : [])),
    ...["title", "min", "max", "step", "aria-valuetext", "class"].flatMap(name => {
      const value = one.getAttribute(name)
      return value && (name !== "class" || /differs|total|changed|newest|lit/.test(value)) ? [`${name}: ${value}`] : []
    }),
    ...(one.disabled ? ["disabled"] : []),
    ...(/changed/.test(one.closest("label")?.className ?? "") ? ["changed"] : []),
  ].join(", ")
function field(one) {
  if (one.localName === "select") {
    const all = [...one.options],
      chosen = all.find(option => option.selected),
      some = all.length > MOST_OPTIONS ? "" : ` of ${all.map(option => plain(option.textContent)).join(", ")}`
    return `${one.value} “${plain(chosen?.textContent ?? "")}”${some}`
  }
  return ["checkbox", "radio"].includes(one.type) ? `${one.checked}` : one.value
}
/** What one element says in a line; undefined if its parts say it. */
function line(one) {
  const states = statesOf(one),
    more = states && ` (${states})`
  if (["input", "select", "textarea"].includes(one.localName)) return `[${named(one)}: ${field(one)}]${more}`
  if (one.localName === "button") return `<${named(one)}>${more}`
  if (one.localName === "a") return `<${plain(one.textContent)} → ${away(one.href)}>${more}`
  if (one.localName === "svg") {
    const said = [...one.querySelectorAll("text, title")].map(text => plain(text.textContent)).filter(Boolean)
    const shapes = [...one.querySelectorAll("path, rect, circle, line")].map(shape => shape.outerHTML).join("")
    const begin = [one.getAttribute("aria-label"), ...said].filter(Boolean).join("; ").slice(0, 160)
    return `drawn ${digest(shapes)}: ${begin} ${digest(said.join())}`
  }
}
function inline(one) {
  if (one.nodeType === 3) return one.data
  if (one.nodeType !== 1 || !isSeen(one)) return ""
  const said = line(one),
    states = said === undefined && !/^(td|th)$/.test(one.localName) ? statesOf(one) : ""
  return said ?? [...one.childNodes].map(inline).join("") + (states && ` (${states})`)
}
const TEXTS = ["p", "summary", "legend", "caption", "li", "h2", "h3", "pre", "strong", "span", "output", "code"]
function walk(one) {
  if (one.nodeType === 3) return void (plain(one.data) && lines.push(plain(one.data)))
  if (one.nodeType !== 1 || !isSeen(one)) return
  const said = line(one),
    { localName: name } = one
  if (said !== undefined) lines.push(said)
  else if (name === "tr") {
    const cells = [...one.cells].map(cell => plain(inline(cell)) + (statesOf(cell) && ` (${statesOf(cell)})`))
    lines.push(`| ${cells.join(" | ")}${statesOf(one) && ` (${statesOf(one)})`}`)
  } else if (name === "label") [...one.querySelectorAll("input, select, textarea")].forEach(walk)
  else if (TEXTS.includes(name)) {
    const text = plain(inline(one)),
      role = one.getAttribute("role")
    if (text) lines.push(`${name === "summary" ? "▸ " : role ? `${role}: ` : ""}${text}`)
  } else {
    const states = statesOf(one)
    if (states) lines.push(`(${states})`)
    for (const part of one.childNodes) if (name !== "details" || one.open || part.localName === "summary") walk(part)
  }
}
function seen(place) {
  lines = []
  walk(place)
  return lines.map(one => one.replaceAll(/took [\d.,]+ m?s/g, "took some time"))
}
const addressOf = () => decodeURIComponent(location.search + location.hash).replaceAll("+", " ")

// --- what a reader does ---

const TAKEN = "button, select, input:not([type=file]), textarea, summary, a[href]"
/** What a control is known by: of a table's links, or headings, there is one. */
function keyOf(one) {
  const caption = one.closest("table")?.caption?.textContent,
    { way, task, on } = one.dataset,
    its =
      caption === undefined
        ? `${one.name ?? ""} ${way ?? task ?? on ?? ""} ${named(one)}`
        : one.closest("th, td").localName
  return [one.localName, its, caption?.replace(/\d+/g, "") ?? ""].join(" ")
}
function opens({ parentElement: details }) {
  details.open = true
  details.dispatchEvent(new window.Event("toggle"))
}
/** The steps that an element is for, each with what it is called. */
function* stepsFor(one) {
  const called = `${one.name ? `${one.name}: ` : ""}${named(one)}`,
    said = (type, more = {}) => one.dispatchEvent(Object.assign(new window.Event(type, { bubbles: true }), more))
  const write = value => () => {
    one.focus()
    one.value = value
    said("input")
    said("change")
  }
  if (one.localName === "summary") return yield [`open ${called}`, () => opens(one)]
  if (one.localName === "button" || one.localName === "a") return yield [`press ${called}`, () => one.click()]
  if (["checkbox", "radio"].includes(one.type)) {
    return yield [`tick ${called}`, () => one.click()]
  }
  if (one.localName === "select") {
    const values = [...one.options].filter(option => !option.disabled).map(option => option.value),
      value = asked.written[one.name] ?? values[(values.indexOf(one.value) + 1) % values.length]
    return yield [`choose ${called}: ${value}`, write(value)]
  }
  const before = one.value,
    wrong = one.type === "number" ? "0" : one.type === "range" ? null : "?",
    other = asked.written[one.name] ?? (one.type === "range" ? one.max : String(2 * Number(before) || 2))
  const list = one.getAttribute("role") === "combobox" && one.closest("div").querySelector("select")
  if (list) {
    const text = asked.found[list.name] ?? asked.found.model
    yield [`open ${called}`, () => [one.focus(), one.click()]]
    yield [`write ${called}: ${text}`, () => said("input", Object.assign(one, { value: text }) && {})]
    const enter = new window.KeyboardEvent("keydown", { key: "Enter", bubbles: true })
    return yield ["press Enter", () => one.dispatchEvent(enter)]
  }
  if (one.type !== "range" && one.localName !== "textarea") yield [`write ${called}: ${wrong}`, write(wrong)]
  yield [`write ${called}: ${other}`, write(other)]
}

// --- the pages ---

const folder = new URL("./", import.meta.url)
const begins = []
globalThis.document$ = { subscribe: begin => begins.push(begin) }
while (document.readyState !== "complete") await new Promise(done => later(done, 0))
await import("./tools.mjs")
// What a page loads when it needs it is there at once.
for (const name of readdirSync(new URL("engine/", folder)))
  if (name.endsWith(".mjs")) await import(new URL(`engine/${name}`, folder))
const { M } = await import("./engine/base.mjs")
for (const name of Object.keys(M)) void Reflect.get(M, name)
for (const one of readdirSync(new URL("tools/", folder), { recursive: true }))
  if (one.endsWith(".mjs") && one !== "run/worker.mjs") await import(new URL(`tools/${one}`, folder))
await import("./vendor/combobox-nav.mjs")

const turn = () => new Promise(done => later(done, 0))
async function settled() {
  for (let quiet = 0; quiet < QUIET; quiet = waiting.size ? 0 : quiet + 1) await turn()
}
async function opened(open = []) {
  document.body.innerHTML = `<main>${asked.page}</main>`
  for (const begin of begins) await begin()
  await settled()
  for (const one of document.querySelectorAll("details:not([open]) > summary"))
    if (open.includes(named(one))) opens(one)
  await settled()
  return document.querySelector("main")
}

/** A page at an address, after the press of a button where one is needed. */
async function at(address) {
  history.replaceState(null, "", ORIGIN + address)
  const place = await opened()
  if (asked.press) [...place.querySelectorAll("button")].find(one => named(one) === asked.press).click()
  await settled()
  return place
}
const steps = []
for (const address of asked.others) steps.push({ step: `at ${address}`, address: "", lines: seen(await at(address)) })
let place = await at(asked.address)
steps.push({ step: "begin", address: addressOf(), lines: seen(place), isNew: true })
const done = new Set(),
  isMeant = one =>
    asked.only ? asked.only.includes(named(one)) : !asked.not.some(text => named(one).startsWith(text)),
  isNext = one => isSeen(one) && !one.disabled && !done.has(keyOf(one)) && isMeant(one)
// The next control that was not used yet: a step may bring more, and take others away.
for (let one; (one = [...place.querySelectorAll(TAKEN)].find(isNext));) {
  done.add(keyOf(one))
  const before = location.href
  for (const [step, does] of stepsFor(one)) {
    does()
    await settled()
    const { activeElement: at } = document,
      focus = at === document.body || at === one || !one.isConnected ? "" : `focus: ${named(at)}`
    steps.push({ step, address: addressOf(), lines: [...seen(place), ...(focus ? [focus] : [])] })
  }
  if (location.href === before || asked.press) continue
  document.activeElement?.blur()
  await settled()
  const now = seen(place),
    open = [...place.querySelectorAll("details[open] > summary")].map(named)
  place = await opened(open)
  steps.push({ step: "reload", address: addressOf(), lines: seen(place), before: now })
}
// What a reader does in one go: writes into a field, chooses in a list by its text, leaves a field, presses a button or
// a cell by its key, gives a file.
if (asked.goes) place = await at(asked.address)
for (const [what, name, text] of asked.goes ?? []) {
  const called = one => one.name || one.dataset.key || named(one),
    one = [...place.querySelectorAll("button, [name], [data-key], [type=file]")].find(
      one => isSeen(one) && called(one).startsWith(name),
    )
  one.focus()
  if (what === "press") one.click()
  else if (what === "give") {
    Object.defineProperty(one, "files", { value: [new File([text], "model.safetensors.index.json")] })
    one.dispatchEvent(new window.Event("change", { bubbles: true }))
  } else if (what === "leave") one.blur()
  else {
    one.value = what === "choose" ? [...one.options].find(option => option.text === text).value : text
    one.dispatchEvent(new window.Event("input", { bubbles: true }))
  }
  await settled()
  steps.push({
    step: `${what} ${name}${text ? `: ${text.slice(0, 80)}` : ""}`,
    address: addressOf(),
    lines: seen(place),
  })
}
process.stdout.write(JSON.stringify(steps), () => process.exit(0))
