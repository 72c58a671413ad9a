// The small model, asked: any sentence of its words, word by word, with its attention, its cache, and the logits after
// each layer. The facts load with the page, the model and the engine that runs it once a reader turns to the form.

import { follow } from "../stepper.mjs"
import { accepted, differing, steps } from "./address.mjs"
import { answer, factsOf, FIRST, headOf, list, ownOf, rulesOf } from "./capitals/answer.mjs"
import { drawn } from "./capitals/candidates.mjs"
import { fileOf } from "./capitals/files.mjs"
import { form } from "./capitals/form.mjs"
import { render } from "./view.mjs"

/**
 * @typedef {import("./capitals/answer.mjs").State} State
 * @typedef {import("./capitals/answer.mjs").Facts} Facts
 * @typedef {typeof import("./capitals/results.mjs")} Inside
 * @typedef {{ small: import("./capitals/small.mjs").Small, inside: Inside }} Known
 */

/** @type {Promise<Facts> | undefined} */
let known
const facts = () =>
  (known ??= Promise.all(["countries.csv", "sentences.txt"].map(async name => (await fileOf(name)).text())).then(
    ([countries, sentences]) => factsOf(countries, sentences),
  ))

/** @type {Promise<Known> | undefined} */
let loaded
// The model, its words, and the engine.
const theModel = () => (loaded ??= load())
const PARTS = [
  ...[
    "asked",
    "changes",
    "chances",
    "designs",
    "heads",
    "inside",
    "lines",
    "looking",
    "matrices",
    "patch_tables",
    "patching",
  ],
  ...["small", "vocabulary", "walked"],
]
/** @returns {Promise<Known>} */
async function load() {
  // At once, and not as each asks for the next; an error is of the one that needs it.
  const scripts = ["python", "engine", "numpy", "loaded", "ablations", "gpt2"].map(name => `engine/${name}`),
    parts = [...PARTS.map(name => `capitals/${name}`), "run/session", "run/seen", "run/tape"]
  for (const name of [...scripts, ...parts.map(part => `tools/${part}`), "architectures", "running"])
    import(`../${name}.mjs`).catch(() => {})
  const inside = await import("./capitals/results.mjs")
  return { small: await inside.smallModel(), inside }
}

export async function mount(/** @type {HTMLElement} */ place) {
  const asking = new Asking(place, await facts())
  asking.begin()
  asking.recall()
}

/** What a reader does, and what becomes of it. */
class Asking {
  box = document.createElement("div")
  results = document.createElement("div")
  isDrawn = false // in place of the static example
  isTouched = false
  began = "" // the number that was asked for first: the panel comes to the table that it is in
  isInStep = false // or to the step
  isExact = false

  /** @param {HTMLElement} place @param {Facts} facts */
  constructor(place, facts) {
    const { layer = "0", head = "0" } = place.dataset // of the static example
    this.place = place
    this.defaults = { ...FIRST, layer, head }
    /** @type {import("./capitals/form.mjs").Shown} */
    this.shown = {
      ...{ facts, state: { ...this.defaults }, at: null, answer: null, own: null, config: null, isPatching: false },
      ...{ message: "", refused: [] },
    }
    this.remember = steps(
      place,
      () => ({ values: differing(this.shown.state, this.defaults) }),
      () => this.recall(),
    )
    /** @type {import("./capitals/form.mjs").Doing} */
    this.doing = {
      changed: field => this.changed(field),
      typed: text => this.set({ text, added: "" }, this.field("text")),
      next: () => this.add(({ all }) => all[0].id),
      draw: () => this.add(({ all }) => drawn(all, Math.random())),
      remove: () => this.set({ added: list(this.shown.state.added).slice(0, -1).join("|") }),
      touched: () => this.touch(),
      patching: isPatching => Object.assign(this.shown, { isPatching }),
    }
  }
  /** The form, above what the page was served with. */
  begin() {
    this.results.append(...this.place.childNodes)
    this.place.replaceChildren(this.box, this.results)
    document.addEventListener("click", event => {
      const link = event.target instanceof Element && event.target.closest(".ep-stepper a[href]"),
        number = link && new URL(/** @type {HTMLAnchorElement} */ (link).href).searchParams.get("number")
      if (!number || !this.place.isConnected) return
      event.preventDefault()
      this.asking.open(number)
    })
    this.draw()
  }
  draw() {
    const active = document.activeElement
    this.shown.at = this.box.contains(active) ? (active?.getAttribute("name") ?? null) : null
    render(form(this.shown, this.doing), this.box)
  }
  /** @param {string} name @returns {HTMLInputElement | null} */
  field(name) {
    return this.box.querySelector(`[name="${name}"]`)
  }
  /** Loads the model, before it is asked. */
  touch() {
    if (this.isTouched) return
    this.isTouched = true
    theModel().catch(() => (loaded = undefined))
  }
  // What a reader chooses

  /** @param {Partial<State>} chosen @param {EventTarget?} field that it was typed into */
  set(chosen, field = null) {
    Object.assign(this.shown.state, chosen)
    this.shown.refused = []
    this.remember(field)
    return this.show()
  }
  /** @param {HTMLInputElement | HTMLSelectElement} field */
  changed(field) {
    const { name, value } = field
    if (name === "text" || !field.checkValidity()) return
    const others =
      name === "country" || name === "sentence"
        ? { text: "", added: "" }
        : name === "with" || name === "other"
          ? { with: "", other: "", patch: "" }
          : {}
    this.set({ ...others, [name]: value }, field)
  }
  /** Adds a word. @param {(made: import("./capitals/answer.mjs").Made) => number} chosen */
  async add(chosen) {
    const { small } = await theModel(),
      { made } = answer(this.shown.state, this.shown.facts, small)
    if (made) this.append(small.vocabulary.words[chosen(made)])
  }
  append(/** @type {string} */ word) {
    this.set({ added: [...list(this.shown.state.added), word].join("|") })
  }
  /** Reads the address; invalid parts are dropped. */
  async recall() {
    const given = new URLSearchParams(location.search),
      { shown, defaults } = this
    if (!loaded && !Object.keys(defaults).some(name => given.has(name))) return
    const found = await theModel().catch(() => null),
      model = found && { ...found.small, designs: Object.keys(found.inside.DESIGNS) },
      rules = rulesOf(shown.facts, model),
      [values, wrong] = accepted(given, rules, defaults)
    Object.assign(shown.state, values)
    const head = headOf(shown.state.number)
    if (head && !given.has("layer") && !given.has("head"))
      if (accepted(new URLSearchParams(head), { layer: rules.layer, head: rules.head }, defaults)[1].length === 0)
        Object.assign(shown.state, head)
    const isNew = shown.state.number !== "" && shown.state.number !== this.began
    this.began = shown.state.number
    await this.show()
    shown.refused = model ? wrong : []
    this.draw()
    if (isNew) this.focus("origin")
  }

  // What becomes of it

  async show() {
    const { shown } = this
    if (!loaded) shown.message = "Loading the model …"
    this.draw()
    /** @type {Known} */
    let known
    try {
      known = await theModel()
      shown.answer = answer(shown.state, shown.facts, known.small)
    } catch (error) {
      loaded = undefined
      shown.message = error instanceof Error ? error.message : String(error)
      return this.draw()
    }
    const { answer: found, state } = shown,
      field = this.field("text"),
      isTyping = document.activeElement === field && field?.value === state.text
    Object.assign(shown, { message: "", own: ownOf(found, state, known.small.vocabulary, isTyping) })
    if (found.made) shown.config = known.small.config
    this.draw()
    this.drawResults(known, found.made)
  }
  /** @param {Known} known @param {import("./capitals/answer.mjs").Made | null} made */
  drawResults({ small, inside }, made) {
    const active = document.activeElement,
      key = active instanceof HTMLElement ? active.dataset.key : undefined
    if (!this.isDrawn) this.results.replaceChildren()
    this.isDrawn = true
    const { began, asking } = this,
      set = (/** @type {Partial<State>} */ chosen) => this.set(chosen),
      add = (/** @type {string} */ word) => this.append(word)
    const shown = { made, state: this.shown.state, small, asking }
    render(made && inside.results({ ...shown, made, began, isInStep: this.isInStep, set, add }), this.results)
    if (made) follow(inside.walked({ ...shown, made }, this.isInStep))
    if (key && made) this.focus(key)
  }
  focus(/** @type {string} */ key) {
    /** @type {NodeListOf<HTMLElement>} */
    const all = document.querySelectorAll(".ep-stepper [data-key], .ep-tool [data-key]"),
      those = [...all].filter(element => element.dataset.key === key)
    ;(those.find(element => this.isInStep === !this.results.contains(element)) ?? those[0])?.focus()
  }
  /** What can be done with a number. @returns {import("./capitals/asked.mjs").Doing} */
  get asking() {
    return {
      isExact: this.isExact,
      open: async place => {
        const active = document.activeElement
        if (!active?.closest(".ep-origin")) {
          this.began = place
          this.isInStep = Boolean(active?.closest(".ep-stepper"))
        }
        await this.set({ number: place })
        this.focus("origin")
      },
      close: async () => {
        await this.set({ number: "" })
        this.focus(`cell ${this.began}`)
      },
      toggle: () => {
        this.isExact = !this.isExact
        this.show()
      },
    }
  }
}
