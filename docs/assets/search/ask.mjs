// Queries the index that macros/site/search writes. No DOM access. `words` splits a string like words.py; a test checks
// that both give the same words.

/**
 * @typedef {object} Core what core.json has
 * @property {string} version
 * @property {boolean} [isPreview]
 * @property {[address: string, title: string, said?: string][]} records
 * @property {[kind: string, n: number][]} kinds how many records are of each, in their order; the rest are tensors
 * @property {string[]} starts the first word of each piece of the index
 * @property {number[]} texts the first of each piece of the texts, by the record
 * @property {string[]} ofAnyModel
 *
 * @typedef {[name: string, models: number[], others?: Record<number, string>]} Tensor
 * @typedef {(name: string) => Promise<any>} Load gives the content of a file of search/
 * @typedef {import("./answers.mjs").Read} Read
 * @typedef {object} Others other names, by which the index is asked
 * @property {string[][]} same words that mean the same
 * @property {Record<number, string[]>} topics other names of a section, by its record
 * @typedef {object} Term a word of a question; all of its parts may stand for it, and other words that mean the same
 * @property {string} whole
 * @property {string[]} parts
 * @property {[words: string[], share: number][]} also
 * @typedef {object} Found a record: the numbers of the terms that it has, and how much they count
 * @property {number} record
 * @property {string} kind
 * @property {number} sum
 * @property {Set<number>} of
 * @property {number} score
 * @property {number} [model]
 * @property {boolean} [isNamed] whether it is a section that was asked for by its name
 * @typedef {object} Shown
 * @property {string} kind
 * @property {string} address
 * @property {string} title
 * @property {string} [above]
 * @property {string} said
 * @property {boolean} [isComputed] whether its answer is computed
 */

const GROUPED = /(?<![\p{L}\p{N}_.,])\d{1,3}(?:[,_\u2009\u202f]\d{3})+(?![\p{L}\p{N}_])/gu
// Only in a question: in prose, adjacent numbers may be unrelated.
const SPACED = /(?<![\p{L}\p{N}_.,])\d{1,3}(?: \d{3})+(?![\p{L}\p{N}_])/gu
const WORD = /[\p{L}\p{N}_]+(?:(?<=\d)\.(?=\d)[\p{L}\p{N}_]+)*/gu
const LETTERS_AND_NUMBER = /^([a-z]{2,})(\d.*)$/

const STOP = new Set(
  (
    "a about all an and any are as at be been both but by can did do does each for from get give has have how i if " +
    "in into is it its like many may me most much my no not of on one only or other our out own s same so some such " +
    "than that the their them then there these they this those to too us use very was we were what when where which " +
    "while who why will with would you your"
  ).split(" "),
)

const SHOWN = 12,
  LOOKED_AT = 80,
  PARTS = 0.6, // the weight of a match of all parts of a word
  OF_SIZES = 0.4, // the weight of a size in the notation that was not searched for by name
  ALSO = 0.8 // the weight of a synonym

export function stem(/** @type {string} */ word) {
  if (word.length < 4 || !/^\p{L}+$/u.test(word)) return word
  if (word.endsWith("ies") && word.length > 4) return word.slice(0, -3) + "y"
  if (word.endsWith("s") && !"sui".includes(word[word.length - 2])) word = word.slice(0, -1)
  return word.endsWith("ing") && word.length > 5 ? word.slice(0, -3) : word
}

export function forms(/** @type {string} */ word) {
  word = word.replace(/^_+|_+$/g, "")
  let parts = word.split("_").filter(Boolean)
  if (parts.length < 2) parts = LETTERS_AND_NUMBER.exec(word)?.slice(1) ?? []
  return [stem(word), ...parts.map(stem)].filter(form => form && !STOP.has(form))
}

/** @returns {string[]} */
const cut = (/** @type {string} */ text) => text.match(WORD) ?? []
const ungrouped = (/** @type {string} */ text, /** @type {RegExp} */ pattern) =>
  text.replace(pattern, number => number.replace(/\D/g, ""))

export const words = (/** @type {string} */ text) => cut(ungrouped(text.toLowerCase(), GROUPED)).flatMap(forms)

// The terms of a query, each with its parts; matching all of the parts counts as matching the term.
function terms(/** @type {string} */ question) {
  const text = ungrouped(ungrouped(question.toLowerCase(), GROUPED), SPACED)
  return cut(text)
    .map(forms)
    .filter(f => f.length)
    .map(([whole, ...parts]) => /** @type {Term} */ ({ whole, parts, also: [] }))
}

const wholes = (/** @type {string} */ text) => cut(text.toLowerCase()).flatMap(word => forms(word).slice(0, 1))
/** @type {WeakMap<Others, string[][][]>} */
const groups = new WeakMap()
/**
 * Adds synonyms to the terms; for a phrase, each of its words gets the other phrases' words as parts.
 * @param {Term[]} wanted
 * @param {Others} names
 */
function withOthers(wanted, names) {
  const all = groups.get(names) ?? names.same.map(group => group.map(wholes))
  groups.set(names, all)
  for (const group of all)
    for (const phrase of group)
      for (let n = 0; phrase.length && n + phrase.length <= wanted.length; n++) {
        if (!phrase.every((word, i) => wanted[n + i].whole === word)) continue
        for (const other of group)
          if (other !== phrase && other.length)
            for (let i = 0; i < phrase.length; i++) wanted[n + i].also.push([other, ALSO / phrase.length])
      }
}

/**
 * @param {string} question
 * @param {Core} core
 * @param {Load} load
 * @param {(question: string) => Promise<Read>} read reads it by the grammar
 * @returns {Promise<{ wanted: Term[], results: Shown[], more: boolean, note: string }>}
 */
export async function ask(question, core, load, read) {
  if (!terms(question).length) return { wanted: [], results: [], more: false, note: "" }
  /** @type {[Others, Read]} */
  const [called, meaning] = await Promise.all([load("others.json"), read(question)])
  const wanted = terms(corrected(question, meaning.corrected)),
    first = meaning.leads
  withOthers(wanted, called)
  const last = wanted.at(-1)
  const open = /[\p{L}\p{N}_]$/u.test(question) ? last : null // still being typed, so match it as a prefix, too
  const weighed = await Promise.all(wanted.map(term => find(term, term === open, core, load)))
  const kinds = kindsOf(core)
  /** @type {Map<number, Found>} */
  const scores = new Map()
  weighed.forEach((weights, n) => {
    for (const [record, weight] of weights) {
      const one = scores.get(record) ?? { record, kind: kinds(record), sum: 0, of: new Set(), score: 0 }
      scores.set(record, one)
      one.sum += weight
      one.of.add(n)
    }
  })
  const results = [...scores.values()]
  for (const { kind, of } of results)
    wanted.forEach(({ whole }, n) => {
      if (isGiven(kind, whole, core)) of.add(n)
    })
  const model = results
    .filter(result => result.kind === "model" && names(result, wanted, core, called) === 1)
    .sort((a, b) => b.sum - a.sum)[0]
  if (model && scores.size) await nameModel(model, results, core, load)
  for (const result of results) result.score = result.sum * (result.of.size / wanted.length) ** 2
  const best = results.sort(order).slice(0, LOOKED_AT)
  for (const result of best) {
    const named = names(result, wanted, core, called)
    result.score *= (0.7 + 0.6 * named) * (named === 1 ? (NAMED[result.kind] ?? 1) : 1)
    if (result.kind === "size" && named < 1) result.score *= OF_SIZES
    result.isNamed = named === 1 && result.kind === "section"
    if (result.isNamed) result.score *= wanted.length / result.of.size // the rest of the question says little
  }
  const most = Math.max(0, ...best.map(({ of }) => of.size))
  const kept = best
    .sort(order)
    .filter(({ of, isNamed }) => isNamed || of.size === most || of.size > wanted.length / 2)
    .filter(({ kind }) => !meaning.isAbsent || kind !== "model") // the nearest are named as such
  // The page of a named model ranks high, whatever else the query says.
  const [named] = meaning.models.length === 1 && meaning.models[0].isSure ? meaning.models : []
  const at = named ? kept.findIndex(({ record }) => record === named.record) : -1
  if (at > 1 || (named && at < 0)) {
    const [page] = at < 0 ? [scores.get(named.record)] : kept.splice(at, 1)
    if (page) kept.splice(1, 0, page)
  }
  const found = await Promise.all(kept.slice(0, SHOWN).map(result => shown(result, wanted, core, load)))
  return {
    wanted,
    results: [...first, ...found.filter(({ address }) => first.every(one => one.address !== address))],
    more: kept.length > SHOWN,
    note: meaning.note,
  }
}

/**
 * The question with its misspelled words corrected.
 * @param {string} question
 * @param {[typed: string, meant: string][]} words
 */
const corrected = (question, words) =>
  words.reduce((text, [typed, meant]) => text.toLowerCase().replaceAll(typed, meant), question)

const order = (/** @type {Found} */ a, /** @type {Found} */ b) => b.score - a.score || a.record - b.record

// The boost for a record whose entire title was typed.
/** @type {Record<string, number>} */
const NAMED = { model: 1.6, word: 2, family: 3, section: 1.4 }

// Words that a record need not contain: every model has parameters, every tensor's name has a layer number.
/**
 * @param {string} kind
 * @param {string} word
 * @param {Core} core
 */
const isGiven = (kind, word, core) =>
  kind === "model" ? core.ofAnyModel.includes(word) : kind === "tensor" && /^\d+$/.test(word)

/**
 * The share of a record's title that the query covers; a page also has a short name, and a section may have others.
 * @param {Found} result
 * @param {Term[]} wanted
 * @param {Core} core
 * @param {Others} called
 */
function names({ record, kind }, wanted, core, { topics }) {
  const [address, title, said] = core.records[record] ?? []
  const others = kind === "section" ? [...(address.includes("#") ? [] : [said]), ...(topics[record] ?? [])] : []
  return Math.max(...[title, ...others].map(name => share(name, wanted)))
}

/**
 * @param {string | undefined} title
 * @param {Term[]} wanted
 */
function share(title = "", wanted) {
  const names = new Set(words(title))
  let hits = 0
  for (const name of names) if (wanted.some(({ whole, parts }) => whole === name || parts.includes(name))) hits++
  return names.size && hits / names.size
}

/**
 * Joins a tensor and a model that has it when the query names both.
 * @param {Found} model
 * @param {Found[]} results
 * @param {Core} core
 * @param {Load} load
 */
async function nameModel(model, results, core, load) {
  const tensors = results.filter(({ kind }) => kind === "tensor")
  if (!tensors.length) return
  /** @type {Tensor[]} */
  const listed = await load("tensors.json")
  for (const tensor of tensors) {
    if (!listed[tensor.record - core.records.length][1].includes(model.record)) continue
    if ([...tensor.of].every(n => model.of.has(n))) continue // only the model was named
    for (const n of model.of) tensor.of.add(n)
    ;[tensor.model, tensor.sum] = [model.record, tensor.sum + 3 * model.sum]
  }
}

const kindsOf = (/** @type {Core} */ core) => (/** @type {number} */ record) => {
  for (const [kind, n] of core.kinds) if ((record -= n) < 0) return kind
  return "tensor"
}

/**
 * The records that contain a word, a word that begins with it, or a similar word, each with its weight.
 * @param {Term} term
 * @param {boolean} isOpen
 * @param {Core} core
 * @param {Load} load
 */
async function find({ whole, parts, also }, isOpen, core, load) {
  const weights = await lookUp(whole, isOpen, core, load)
  /** @type {Term["also"]} */
  const others = [...(parts.length ? [/** @type {Term["also"][0]} */ ([parts, PARTS])] : []), ...also]
  for (const [words, share] of others) {
    const all = await Promise.all(words.map(word => lookUp(word, false, core, load)))
    for (const record of all[0].keys()) {
      if (!all.every(of => of.has(record))) continue
      const weight = (all.reduce((sum, of) => sum + (of.get(record) ?? 0), 0) / words.length) * share
      if (weight > (weights.get(record) ?? 0)) weights.set(record, weight)
    }
  }
  return weights
}

/**
 * @param {string} word
 * @param {boolean} isOpen
 * @param {Core} core
 * @param {Load} load
 */
async function lookUp(word, isOpen, core, load) {
  /** @type {Map<number, number>} */
  const weights = new Map()
  /**
   * @param {number[]} entries records, each before its weight
   * @param {number} share
   */
  const add = (entries, share) => {
    for (let n = 0; n < entries.length; n += 2) {
      const weight = entries[n + 1] * share
      if (weight > (weights.get(entries[n]) ?? 0)) weights.set(entries[n], weight)
    }
  }
  /** @type {Record<string, number[]>[]} */
  const pieces = await Promise.all(piecesOf(word, core).map(n => load(`words-${n}.json`)))
  for (const piece of pieces) if (Object.hasOwn(piece, word)) add(piece[word], 1)
  if (isOpen || !weights.size) {
    for (const piece of pieces) {
      for (const other of Object.keys(piece)) {
        if (other !== word && other.startsWith(word)) add(piece[other], (0.7 * word.length) / other.length)
      }
    }
  }
  if (!weights.size && word.length > 3 && !/^\d/.test(word)) {
    for (const piece of pieces) for (const other of Object.keys(piece)) if (isNear(word, other)) add(piece[other], 0.5)
  }
  return weights
}

/**
 * The pieces of the index that have words with this prefix: nearly always one.
 * @param {string} word
 * @param {Core} core
 */
function piecesOf(word, { starts }) {
  const first = Math.max(
    starts.findLastIndex(start => start <= word),
    0,
  )
  const numbers = [first]
  for (let n = first + 1; starts[n]?.startsWith(word); n++) numbers.push(n)
  return numbers
}

/**
 * Whether two words differ by one inserted, deleted, replaced, or transposed letter.
 * @param {string} a
 * @param {string} b
 */
function isNear(a, b) {
  if (Math.abs(a.length - b.length) > 1) return false
  let start = 0
  while (start < a.length && a[start] === b[start]) start++
  const [x, y] = [a.slice(start), b.slice(start)]
  return (
    x.slice(1) === y.slice(1) ||
    x.slice(1) === y ||
    x === y.slice(1) ||
    (x[0] === y[1] && x[1] === y[0] && x.slice(2) === y.slice(2))
  )
}

/**
 * What is shown of a record: where it is, its title, what stands above it, and the words around those that were asked
 * for.
 * @param {Found} result
 * @param {Term[]} wanted
 * @param {Core} core
 * @param {Load} load
 * @returns {Promise<Shown>}
 */
async function shown({ record, kind, model }, wanted, core, load) {
  if (kind === "tensor") return ofTensor((await load("tensors.json"))[record - core.records.length], model, core)
  const [address, title, said] = core.records[record]
  if (kind === "section") {
    return { kind, address, title, above: said, said: excerpt(await textOf(record, core, load), wanted) }
  }
  return { kind, address, title, said: await textOf(record, core, load) }
}

/**
 * @param {number} record
 * @param {Core} core
 * @param {Load} load
 * @returns {Promise<string>}
 */
async function textOf(record, core, load) {
  const piece = core.texts.findLastIndex(first => first <= record)
  return (await load(`text-${piece}.json`))[record - core.texts[piece]]
}

/**
 * A tensor's row in the table of the named model, or else of the first model that has it.
 * @param {Tensor} tensor
 * @param {number | undefined} model
 * @param {Core} core
 */
function ofTensor([name, models, others = {}], model = models[0], core) {
  const anchor = others[model] ?? name.replace("{i}", "0").replace("{e}", "0")
  const rest = models.length - 1
  const said = `in ${core.records[model][1]}${rest ? ` and ${rest} other model${rest > 1 ? "s" : ""}` : ""}`
  return { kind: "tensor", address: `${core.records[model][0]}#${anchor}`, title: name, said }
}

const ROOM = 150

/**
 * @param {string} text
 * @param {Term[]} wanted
 */
function excerpt(text, wanted) {
  const places = [...text.matchAll(WORD)].filter(([word]) => isWanted(word, wanted)).map(match => match.index)
  // The excerpt that contains most of them.
  let best = 0,
    most = 0
  places.forEach((start, n) => {
    const held = new Set(
      places
        .slice(n)
        .filter(place => place < start + ROOM)
        .map(place => /[\p{L}\p{N}_.]+/u.exec(text.slice(place))?.[0].toLowerCase()),
    ).size
    if (held > most) [best, most] = [start, held]
  })
  const start = best < 40 ? 0 : text.indexOf(" ", best - 40) + 1
  const end = start + ROOM >= text.length ? text.length : text.lastIndexOf(" ", start + ROOM)
  return `${start ? "… " : ""}${text.slice(start, end)}${end < text.length ? " …" : ""}`
}

/**
 * @param {string} word
 * @param {Term[]} wanted
 */
export const isWanted = (word, wanted) => {
  const [whole, ...parts] = forms(word.toLowerCase())
  return (
    whole !== undefined &&
    wanted.some(
      term =>
        term.whole === whole ||
        (term.whole.length > 2 && whole.startsWith(term.whole)) ||
        parts.includes(term.whole) ||
        term.parts.includes(whole) ||
        term.also.some(([words]) => words.length === 1 && words[0] === whole),
    )
  )
}

/**
 * Splits a text into pieces that alternate between other text and matches.
 * @param {string} text
 * @param {Term[]} wanted
 */
export function marked(text, wanted) {
  /** @type {string[]} */
  const pieces = []
  let end = 0
  for (const match of text.matchAll(WORD)) {
    if (!isWanted(match[0], wanted)) continue
    pieces.push(text.slice(end, match.index), match[0])
    end = match.index + match[0].length
  }
  return [...pieces, text.slice(end)]
}
