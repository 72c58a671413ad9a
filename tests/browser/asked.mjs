// @ts-nocheck Node and jsdom bring no types.
// Answers questions to scripts, one by one: their constants, what their functions make of a few plain values,
// the edges of their rules, and expressions. Each script exports all of its names as `itsNames`.

import process from "node:process"
import { JSDOM } from "jsdom"

let given = ""
for await (const piece of process.stdin.setEncoding("utf-8")) given += piece
const { window } = new JSDOM("", { url: "https://example.org/" })
const isTaken = name => !(name in globalThis) && /^([A-Z]\w*|document|history|location|matchMedia)$/.test(name)
for (const name of Object.getOwnPropertyNames(window)) if (isTaken(name)) globalThis[name] = window[name]
globalThis.ResizeObserver = class {}
Object.assign(globalThis, { window, matchMedia: () => ({ matches: false, addEventListener() {} }) })
for (const name of ["addEventListener", "removeEventListener", "postMessage", "requestAnimationFrame", "setTimeout"])
  globalThis[name] = () => 0
globalThis.Date = class extends Date {
  constructor(...values) {
    super(...(values.length ? values : [2026, 0, 1]))
  }
}
globalThis.fetch = () => Promise.reject(new Error("nothing is fetched"))
process.on("unhandledRejection", () => {})

const { render } = await import("./vendor/preact.mjs")
const isPlain = value => [Object.prototype, null].includes(Object.getPrototypeOf(value))
/** A value as text; what is drawn, as HTML. */
function said(value, deep = 0) {
  if (typeof value === "bigint") return `${value}n`
  if (typeof value === "string") return JSON.stringify(value)
  if (typeof value === "function") return "a function"
  if (value === null || typeof value !== "object") return `${value}`
  if (deep > 5) return "…"
  if (value instanceof window.Node) return value.outerHTML ?? value.textContent
  if (value instanceof RegExp || value instanceof URL) return `${value}`
  if (value instanceof Error) return `refused: ${value.message}`
  if (value instanceof Map) return `Map ${said([...value], deep + 1)}`
  if (value instanceof Set) return `Set ${said([...value], deep + 1)}`
  const isDrawn = one => one && typeof one === "object" && "props" in one && "type" in one
  if (isDrawn(value) || (Array.isArray(value) && value.length && value.every(isDrawn))) {
    const place = document.createElement("div")
    render(value, place)
    return place.innerHTML
  }
  if (ArrayBuffer.isView(value) && !(value instanceof DataView)) return `${value.constructor.name} [${[...value]}]`
  if (Array.isArray(value)) return `[${value.map(one => said(one, deep + 1)).join(", ")}]`
  if (!isPlain(value)) return value.constructor?.name ?? "an object"
  return `{${Object.entries(value)
    .map(([key, one]) => `${key}: ${said(one, deep + 1)}`)
    .join(", ")}}`
}
const kinds = /^(Object|Map|Set|Array)$/
const hasFunctions = (value, deep = 0) =>
  typeof value === "function" ||
  (value !== null &&
    typeof value === "object" &&
    (deep > 3 || value instanceof window.Node || Object.values(value).some(one => hasFunctions(one, deep + 1))))
const isData = value =>
  !hasFunctions(value) &&
  (typeof value !== "object" || value === null || kinds.test(value.constructor?.name ?? "Object"))

// What a function of unknown parameters is given: of the same kind all, and not the same one twice.
const VALUES = [
  ...[
    [0, 0, 0],
    [1, 2, 3],
    [7, 3, 2],
    [1234567.891, 1000, 12],
  ],
  ...[
    ["", "", ""],
    ["a", "b c", "d"],
    ["12", "3.5", "x"],
    ["Llama 3 <8B>, 1,024 GB", "a", "b"],
  ],
  ...[
    [0n, 0n, 0n],
    [12n, 5n, 3n],
    [123456789012n, 2048n, 7n],
  ],
  ...[
    [[], [], []],
    [[3, 1, 2], [1, 2, 2], [5]],
    [["b", "a", "c a"], ["x"], ["y"]],
    [[3, 1, 2], 2, 1],
    [["b", "a"], "a", "b"],
  ],
  ...[
    [new Float32Array([0.5, -2, 3]), new Float32Array([1, 2, -1]), 1],
    [
      new Map([
        ["b", 2],
        ["a", 1],
      ]),
      "a",
      1,
    ],
  ],
  ...[
    ["a", 3, 2],
    [3, "a", "b"],
    [true, false, true],
    [{ a: 1, b: "x" }, { a: 2 }, {}],
    [null, null, null],
  ],
]
const MOST_LOOKS = 5000
// Whatever a view asks of it, it has: a list of one, a function, a number, a truth. What is drawn of it are the labels.
let looks = 0
const anything = new Proxy(() => "", {
  get(_, name) {
    if (++looks > MOST_LOOKS) throw new RangeError("endless")
    if (name === Symbol.iterator) return [anything].values.bind([anything])
    if (name === Symbol.toPrimitive) return () => 1
    if (["map", "flatMap"].includes(name)) return does => [does(anything, 0)]
    if (["filter", "sort", "toSorted"].includes(name)) return () => [anything]
    if (["some", "every", "includes", "has"].includes(name)) return () => true
    if (["toString", "toLocaleString", "join", "trim", "replace"].includes(name)) return () => "this"
    return name === "length" || name === "size" ? 1 : anything
  },
  apply() {
    if (++looks > MOST_LOOKS) throw new RangeError("endless")
    return anything
  },
})
async function outcome(does) {
  looks = 0
  try {
    const value = does()
    if (typeof value?.next === "function") return said([...value])
    return value instanceof Promise ? "a promise" : said(value)
  } catch (error) {
    return error?.constructor === Error ? `refused: ${error.message}` : ""
  }
}
/** The edges of what a rule takes of numbers, from those that its script names, and what it makes of a few texts. */
function rule(takes, numbers) {
  const does = text => {
    try {
      const value = takes(text)
      return value === text ? "" : `→ ${value}`
    } catch (error) {
      return error.message
    }
  }
  const some = [...new Set([...numbers].flatMap(n => [n - 1, n - 0.001, n, n + 0.001, n + 1]))].sort((a, b) => a - b),
    edges = [],
    taken = some.map(n => does(`${n}`) === "")
  for (let i = 1; i < some.length; i++) if (taken[i] !== taken[i - 1]) edges.push(`${some[i - 1]}|${some[i]}`)
  const texts = ["", "x", "1", "0", "-1", "1.5", "1e3", "a,b", "1,2", "a|b", "0.1", "yes", "no", "any"]
  return `${edges.join(" ")}; ${texts.map(text => `${JSON.stringify(text)} ${does(text)}`).join("; ")}`
}

const answers = {}
for (const { script, expressions, numbers } of JSON.parse(given)) {
  const found = (answers[script] = {})
  let names
  try {
    names = (await import(`./${script}`)).itsNames
  } catch (error) {
    found[""] = `does not begin: ${error.message}`
    continue
  }
  for (const [name, value] of Object.entries(names)) {
    const isRules = /^[A-Z]/.test(name) && value && typeof value === "object" && isPlain(value)
    if (isRules && Object.values(value).some(one => typeof one === "function" && one.length === 1)) {
      const rules = Object.entries(value).filter(([, one]) => typeof one === "function")
      for (const [key, one] of rules) found[`${name}.${key}`] = rule(one, numbers)
    } else if (isData(value)) found[name] = said(value)
    else if (typeof value === "function" && !/^class\b|^async|import\(/.test(`${value}`)) {
      const all = []
      for (const values of VALUES) all.push(await outcome(() => value(...structuredClone(values))))
      if (script.endsWith("view.mjs") && /html`/.test(`${value}`))
        all.push(await outcome(() => value(anything, anything, anything)))
      const those = all.map(one => (one === "undefined" ? "" : one)).filter((one, i) => one && one !== all[i - 1])
      if (those.length) found[`${name}(…)`] = those.join(" · ")
    }
  }
  for (const text of expressions) {
    try {
      const value = await new Function(...Object.keys(names), `return (${text})`)(...Object.values(names))
      found[`= ${text}`] = said(value)
    } catch (error) {
      found[`= ${text}`] = `${error}`
    }
  }
}
process.stdout.write(JSON.stringify(answers), () => process.exit(0))
