// Run a checkpoint: a folder from a reader's disk, read and run in a worker. The page shows the text in tokens, the
// next ones, the attention weights of every head, what each part adds, and what each number was made of. Nothing leaves
// the browser; the address keeps the choices, and never the files.

import { accepted, differing, steps } from "./address.mjs"
import { addedOf, askedOf, attentionOf, FIRST, howOf, mapped, openedOf, patchesOf, RULES } from "./run/answer.mjs"
import { Asked, Stopped } from "./run/asking.mjs"
import { dropped, KEPT } from "./run/dropped.mjs"
import { view } from "./run/view.mjs"
import { render } from "./view.mjs"

/**
 * @typedef {import("./run/answer.mjs").State} State
 * @typedef {import("./run/answer.mjs").Answer} Answer
 * @typedef {import("./run/folder.mjs").Given} Given
 * @typedef {import("./run/session.mjs").Progress} Progress
 * @typedef {import("./run/view.mjs").Shown} Shown
 */

const SMALL_TEXT = "The capital of France is"
const SHOW = 1, // what is there, once more
  CHOOSE = 2, // the next token in another way
  RUN = 3

// What there is not until a text has run.
const NOTHING = { answer: null, maps: null, large: null, parts: null, moved: null, steps: null, lens: null }

export const mount = (/** @type {HTMLElement} */ place) => new Running(place).recall()

/** What a reader does, and what becomes of it: the worker computes one thing after the other. */
class Running {
  /** @type {Shown} */
  shown = {
    ...{ state: { ...FIRST }, typed: {}, about: null, ...NOTHING, isLens: false, isBusy: false, isDrawn: false },
    ...{ isStopped: false, results: null, said: "", progress: null, problem: "", refused: [] },
  }
  asked = new Asked()
  /** @type {Given[]} */
  files = []
  wanted = 0
  known = "" // the text of a link, or the last that ran: the next files run it, too

  /** @param {HTMLElement} place */
  constructor(place) {
    const { shown, asked } = this
    this.place = place
    this.origin = originIn(place, chosen => this.choose(chosen))
    this.draw = () => render(view(shown, this.doing), place)
    this.came =
      (/** @type {string} */ said) =>
      (/** @type {Progress} */ { done, of }) => {
        Object.assign(shown, { said, progress: of ? done / of : 1 })
        this.draw()
      }
    this.answers = answering({ place, shown, asked, origin: this.origin, draw: this.draw, came: this.came })
    this.remember = steps(
      place,
      () => ({ values: differing(shown.state, FIRST) }),
      () => this.recall(),
    )
    /** @type {import("./run/view.mjs").Doing} */
    this.doing = {
      set: chosen => this.choose(chosen),
      run: chosen => this.choose(chosen, RUN),
      append: id => this.append(id),
      next: () => shown.answer && this.append(shown.answer.likely[0].id),
      draw: () => this.drawn(),
      begin: () => this.begin(),
      stop: () => asked.stop(),
      patch: () => this.busy(() => this.patch()),
      lens: isOpen => this.lens(isOpen),
      typed: field => this.typed(field),
      take: given => this.take(given),
      small: () => this.small(),
      drop: async event => {
        event.preventDefault()
        if (event.dataTransfer) this.take(await dropped(event.dataTransfer))
      },
      ask: this.origin,
    }
    place.replaceChildren()
  }
  get isThere() {
    return this.shown.answer !== null && !this.shown.isStopped
  }

  // A choice: it goes into the address, and the page shows what becomes of it.
  choose(/** @type {Partial<State>} */ chosen, level = SHOW) {
    Object.assign(this.shown.state, chosen)
    this.remember()
    return this.later(level)
  }
  append(/** @type {number} */ id) {
    return this.choose({ added: [...addedOf(this.shown.state), id].join(",") }, RUN)
  }
  async drawn() {
    /** @type {number | undefined} */
    let one
    const how = howOf(this.shown.state)
    await this.busy(async () => (one = await this.asked.ask("drawn", [how, Math.random()])))
    if (one !== undefined) this.append(one)
  }
  begin() {
    const { state, typed } = this.shown,
      { text = state.text, source = state.source, other = state.other } = typed,
      isNew = text !== state.text || source !== state.source
    this.shown.typed = {}
    const moved = isNew || other !== state.other ? { patch: "", position: "" } : {}
    this.choose({ text, source, other, added: isNew ? "" : state.added, ...moved }, RUN)
  }
  async patch() {
    const { answer, state, about } = this.shown,
      of = answer && patchesOf(answer, state, about)
    if (!of) return
    const came = this.came("Computing a forward pass for each patch …"),
      tables = await this.asked.ask("moved", [of.layer, of.at], came)
    if (tables) this.shown.moved = { of: of.key, tables }
    this.wanted = Math.max(this.wanted, SHOW)
  }
  lens(/** @type {boolean} */ isOpen) {
    this.shown.isLens = isOpen
    if (isOpen && this.isThere && !this.shown.lens) this.busy(this.answers.lens)
  }
  typed(/** @type {HTMLInputElement} */ field) {
    Object.assign(this.shown.typed, { [field.name]: field.value })
    if (field.type === "text" || !field.checkValidity()) return
    Object.assign(this.shown.state, { [field.name]: field.value })
    this.draw()
    this.remember(field)
    if (this.isThere) this.later(CHOOSE)
  }
  // Reads the address; invalid parts are dropped.
  recall() {
    const [values, refused] = accepted(new URLSearchParams(location.search), RULES, FIRST),
      { state } = this.shown
    Object.assign(state, values)
    Object.assign(this.shown, { typed: {}, refused })
    this.origin.began(state.number)
    this.known = state.text
    this.draw()
    if (this.shown.about && state.text) this.later(RUN)
  }

  /**
   * Does something in the worker: the buttons wait, and a problem is one line.
   * @param {() => Promise<unknown>} task
   */
  async busy(task) {
    const { shown } = this
    if (shown.isBusy) return
    Object.assign(shown, { isBusy: true, problem: "" })
    this.draw()
    try {
      await task()
    } catch (error) {
      this.wanted = 0
      if (error instanceof Stopped) {
        const said = shown.about ? "Stopped. Run reads the weights again." : "Stopped."
        Object.assign(shown, { said, isStopped: true, isDrawn: false })
      } else Object.assign(shown, { said: "", problem: error instanceof Error ? error.message : String(error) })
    }
    Object.assign(shown, { isBusy: false, progress: null })
    this.draw()
    if (this.wanted) this.busy(() => this.refresh())
  }
  // What is asked for while the worker computes comes next.
  later(/** @type {number} */ level) {
    this.wanted = Math.max(this.wanted, level)
    return this.busy(() => this.refresh())
  }
  async refresh() {
    const { shown, asked } = this
    while (this.wanted) {
      const level = asked.worker ? this.wanted : RUN // after a stop, what is shown has to be computed first
      this.wanted = 0
      if (level === RUN) await this.run()
      else if (level === CHOOSE && shown.answer && this.isThere)
        shown.answer = { ...shown.answer, ...(await asked.ask("answer", [howOf(shown.state)])) }
      if (shown.answer && this.isThere) await this.answers.all(shown.answer)
    }
  }

  // The model of this site, on the text of the address or one of its own.
  async small() {
    const { shown } = this
    try {
      const given = await (await import("./run/small.mjs")).filesOfSmall()
      if (shown.about || !shown.state.text) Object.assign(shown.state, FIRST, { text: SMALL_TEXT })
      Object.assign(shown, { typed: {}, problem: "" })
      this.known = shown.state.text
      this.take(given)
      this.remember()
    } catch (error) {
      shown.problem = error instanceof Error ? error.message : String(error)
      this.draw()
    }
  }
  take(/** @type {Given[]} */ given) {
    const { shown, place } = this
    if (shown.isBusy) this.asked.stop()
    this.files = given.filter(({ path }) => KEPT.test(path))
    Object.assign(shown, { about: null, ...NOTHING, isDrawn: false })
    this.wanted = 0
    this.draw()
    // After a stop, which ends the earlier task first.
    setTimeout(() =>
      this.busy(async () => {
        await this.open()
        const text = place.querySelector("input[name=text]")
        if (text instanceof HTMLInputElement) text.focus()
        if (shown.state.text && shown.state.text === this.known) this.wanted = RUN
      }),
    )
  }
  async open() {
    const { shown, origin } = this,
      scripts = import("./run/results.mjs")
    shown.said = "Reading the files …"
    this.draw()
    shown.about = await this.asked.ask("open", [this.files], this.came("Reading the weights …"))
    ;({ results: shown.results, panel: origin.panel } = await scripts)
    shown.said = "Ready."
    this.draw()
  }
  async run() {
    const { shown, asked } = this,
      { state } = shown
    if (!asked.worker) await this.open()
    const answer = await asked.ask("run", [askedOf(state, shown.about)], this.came("Computing …")),
      { layer, head } = openedOf(state, answer)
    this.known = state.text
    Object.assign(state, { layer: `${layer}`, head: `${head}` })
    Object.assign(shown, { answer, isStopped: false, lens: null })
    if (/^(lens|ended)\//.test(state.number)) shown.isLens = true
    this.answers.ran(`${answer.tokens.length} tokens. The last step took ${answer.seconds.toFixed(2)} s.`)
  }
}

/**
 * @typedef {object} Of
 * @property {HTMLElement} place
 * @property {Shown} shown
 * @property {Asked} asked
 * @property {ReturnType<typeof originIn>} origin
 * @property {() => void} draw
 * @property {(said: string) => (progress: Progress) => void} came
 */

/** Asks for what of a run is shown, and draws it as it comes. @param {Of} of */
function answering({ place, shown, asked, origin, draw, came }) {
  const { state } = shown,
    focused = keptFocus(place)
  let runs = 0, // forward passes of a text, so far
    told = "" // of the last run
  /** @param {Partial<Shown>} more */
  function put(more) {
    Object.assign(shown, more)
    draw()
  }
  // The maps of the heads, as pictures; those of the last run, if they are the same.
  async function maps(/** @type {Answer} */ { heads, tokens }, /** @type {number[]} */ layers) {
    const keyed = JSON.stringify([runs, layers]),
      n = tokens.length,
      size = n ** 2
    if (shown.maps?.keyed === keyed) return shown.maps
    /** @type {Map<string, string>} */
    const pictures = new Map()
    for (const layer of layers.filter(layer => heads[layer])) {
      const bytes = await asked.ask("small", [layer])
      for (let head = 0; head < heads[layer]; head++)
        pictures.set(`${layer}.${head}`, `url(${shaded(bytes.subarray(head * size, (head + 1) * size), n)})`)
    }
    return { keyed, pictures }
  }
  async function lens() {
    const { said } = shown
    put({ said: "Computing the logits after each layer …" })
    put({ lens: await asked.ask("lens", []), said })
  }
  /** @param {Answer} answer */
  async function all(answer) {
    const opened = openedOf(state, answer),
      { layer, head } = opened,
      restore = focused(),
      token = (answer.likely.find(({ id }) => `${id}` === state.word) ?? answer.likely[0]).id
    draw()
    put({ maps: await maps(answer, mapped(answer, layer)) })
    const shares = answer.heads[layer] ? await asked.ask("head", [layer, head]) : null
    put({ large: shares && attentionOf(answer, opened, shares, await asked.ask("keys", [layer, head])) })
    put({ parts: { id: token, parts: await asked.ask("parts", [token]) } })
    const steps = state.steps && (await asked.ask("steps", [layer], came("Computing each number …"))),
      corner = steps && state.step ? await asked.ask("corner", [Number(state.step), head]) : null
    put({ isDrawn: true, steps: steps ? { layer, all: steps, corner } : null })
    if (shown.isLens && answer.hasLens && !shown.lens) await lens()
    const { number } = state
    origin.show(number ? await asked.ask("origin", [number, howOf(state)], came("Computing each number …")) : null)
    restore()
    put({ said: told, progress: null })
  }
  return {
    all,
    lens,
    ran(/** @type {string} */ said) {
      runs++
      told = said
    },
  }
}

// What an element of the page is found by again.
const keyOf = (/** @type {Element?} */ element, /** @type {Element?} */ within = null) =>
  element instanceof HTMLElement && (!within || within.contains(element)) ? element.dataset.key : undefined
function focus(/** @type {Element} */ place, /** @type {string} */ key) {
  const element = [...place.querySelectorAll("[data-key]")].find(one => keyOf(one) === key)
  if (element instanceof HTMLElement) element.focus()
}

/**
 * What is drawn anew loses the focus: notes where it is, and gives what puts it back. A reader who has moved it
 * meanwhile keeps it.
 */
function keptFocus(/** @type {HTMLElement} */ place) {
  let moves = 0
  place.addEventListener("focusin", () => moves++)
  return () => {
    const [at, before] = [keyOf(document.activeElement, place), moves]
    return () => {
      const { activeElement } = document,
        isElsewhere = activeElement !== document.body && !place.contains(activeElement)
      if (at && moves === before && !isElsewhere && keyOf(activeElement) !== at) focus(place, at)
    }
  }
}

/**
 * A number that a reader asks for: the panel comes to the table that it was first pressed in.
 * @param {HTMLElement} place
 * @param {(chosen: Partial<State>) => Promise<void>} choose
 */
function originIn(place, choose) {
  const box = document.createElement("div")
  /** @type {{ panel?: typeof import("./run/results.mjs").panel }} */
  const there = {}
  let isExact = false,
    from = ""
  /** @type {import("./capitals/asked.mjs").Origin?} */
  let shown = null
  const doing = {
    async open(/** @type {string} */ number) {
      if (!document.activeElement?.closest(".ep-origin")) from = number
      await choose({ number })
      focus(place, "origin")
    },
    async close() {
      await choose({ number: "" })
      focus(place, `cell ${from}`)
    },
    toggle() {
      isExact = !isExact
      show(shown)
    },
  }
  function show(/** @type {typeof shown} */ origin) {
    shown = origin
    render(origin && there.panel?.(origin, { ...doing, isExact }), box)
    if (!origin) return box.remove()
    // Below the table that it was asked in.
    const cell = [...place.querySelectorAll("[data-key]")].find(one => keyOf(one) === `cell ${from}`),
      other = ["large", "words"].map(part => place.querySelector(`[data-part=${part}]`)?.lastElementChild),
      above = cell?.closest(".ep-scroll") ?? other.find(Boolean)
    if (above !== box.previousElementSibling) above?.after(box)
  }
  return Object.assign(there, {
    ...doing,
    show,
    began(/** @type {string} */ number) {
      from = number
    },
  })
}

// Bytes as a picture that covers what they say.
function shaded(/** @type {Uint8ClampedArray} */ bytes, /** @type {number} */ n) {
  const scale = Math.max(1, Math.ceil(64 / n)),
    canvas = Object.assign(document.createElement("canvas"), { width: n * scale, height: n * scale }),
    pixels = new ImageData(n * scale, n * scale)
  for (let y = 0, i = 3; y < n * scale; y++)
    for (let x = 0; x < n * scale; x++, i += 4)
      pixels.data[i] = bytes[Math.floor(y / scale) * n + Math.floor(x / scale)]
  canvas.getContext("2d")?.putImageData(pixels, 0, 0)
  return canvas.toDataURL()
}
