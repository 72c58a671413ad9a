// A question asked of the index that macros/site/search writes; it knows nothing of the page. `words` cuts a text as
// words.py does: a test holds both to the same words.

const GROUPED = /(?<![\p{L}\p{N}_.,])\d{1,3}(?:[,_\u2009\u202f]\d{3})+(?![\p{L}\p{N}_])/gu
const SPACED = /(?<![\p{L}\p{N}_.,])\d{1,3}(?: \d{3})+(?![\p{L}\p{N}_])/gu // in a question only: a text has other numbers side by side
const WORD = /[\p{L}\p{N}_]+(?:(?<=\d)\.(?=\d)[\p{L}\p{N}_]+)*/gu
const LETTERS_AND_NUMBER = /^([a-z]{2,})(\d.*)$/

const STOP = new Set(("a about all an and any are as at be been both but by can did do does each for from get give has have how i if in into " +
  "is it its like many may me most much my no not of on one only or other our out own s same so some such than that the " +
  "their them then there these they this those to too us use very was we were what when where which while who why will " +
  "with would you your").split(" "))

const SHOWN = 12, LOOKED_AT = 80

export function stem(word) {
  if (word.length < 4 || !/^\p{L}+$/u.test(word)) return word
  if (word.endsWith("ies") && word.length > 4) return word.slice(0, -3) + "y"
  if (word.endsWith("s") && !"sui".includes(word.at(-2))) word = word.slice(0, -1)
  return word.endsWith("ing") && word.length > 5 ? word.slice(0, -3) : word
}

export function forms(word) {
  word = word.replace(/^_+|_+$/g, "")
  let parts = word.split("_").filter(Boolean)
  if (parts.length < 2) parts = LETTERS_AND_NUMBER.exec(word)?.slice(1) ?? []
  return [stem(word), ...parts.map(stem)].filter(form => form && !STOP.has(form))
}

const cut = text => text.match(WORD) ?? []
const ungrouped = (text, pattern) => text.replace(pattern, number => number.replace(/\D/g, ""))

export const words = text => cut(ungrouped(text.toLowerCase(), GROUPED)).flatMap(forms)

// The words of a question: each with its parts, of which all may stand for it.
function terms(question) {
  const text = ungrouped(ungrouped(question.toLowerCase(), GROUPED), SPACED)
  return cut(text).map(forms).filter(f => f.length).map(([whole, ...parts]) => ({ whole, parts }))
}

// `load(name)` gives the content of a file of search/; `core` is that of core.json.
export async function ask(question, core, load) {
  const wanted = terms(question)
  if (!wanted.length) return { wanted, results: [], more: false }
  const last = wanted.at(-1)
  const open = /[\p{L}\p{N}_]$/u.test(question) ? last : null // still being typed: what begins with it is meant, too
  const found = await Promise.all(wanted.map(term => find(term, term === open, core, load)))
  const kinds = kindsOf(core)
  const scores = new Map()
  found.forEach((weights, n) => {
    for (const [record, weight] of weights) {
      const score = scores.get(record) ?? scores.set(record, { sum: 0, of: new Set() }).get(record)
      score.sum += weight
      score.of.add(n)
    }
  })
  const results = [...scores].map(([record, { sum, of }]) => ({ record, kind: kinds(record), sum, of }))
  for (const { kind, of } of results) wanted.forEach(({ whole }, n) => isGiven(kind, whole, core) && of.add(n))
  const model = results.filter(result => result.kind === "model" && names(result, wanted, core) === 1).sort((a, b) => b.sum - a.sum)[0]
  if (model && scores.size) await nameModel(model, results, core, load)
  for (const result of results) result.score = result.sum * (result.of.size / wanted.length) ** 2
  const best = results.sort(order).slice(0, LOOKED_AT)
  for (const result of best) {
    const named = names(result, wanted, core)
    result.score *= (0.7 + 0.6 * named) * (named === 1 ? NAMED[result.kind] ?? 1 : 1)
  }
  const most = Math.max(0, ...best.map(({ of }) => of.size))
  const kept = best.sort(order).filter(({ of }) => of.size === most || of.size > wanted.length / 2)
  return { wanted, results: await Promise.all(kept.slice(0, SHOWN).map(result => shown(result, wanted, core, load))), more: kept.length > SHOWN }
}

const order = (a, b) => b.score - a.score || a.record - b.record

// How much more a record counts whose whole title was asked for.
const NAMED = { model: 1.6, word: 2, family: 3, section: 1.4 }

// What need not stand in a record: every model has parameters, every tensor's name has a layer's number.
const isGiven = (kind, word, core) => kind === "model" ? core.ofAnyModel.includes(word) : kind === "tensor" && /^\d+$/.test(word)

// The share of a record's title that was asked for; a page has its short name, too.
function names({ record, kind }, wanted, core) {
  const [address, title, said] = core.records[record] ?? []
  return Math.max(share(title, wanted), kind === "section" && !address.includes("#") ? share(said, wanted) : 0)
}

function share(title = "", wanted) {
  const names = new Set(words(title))
  let hits = 0
  for (const name of names) hits += wanted.some(({ whole, parts }) => whole === name || parts.includes(name))
  return names.size && hits / names.size
}

// A tensor and a model that has it, named together, belong together.
async function nameModel(model, results, core, load) {
  const tensors = results.filter(({ kind }) => kind === "tensor")
  if (!tensors.length) return
  const listed = await load("tensors.json")
  for (const tensor of tensors) {
    if (!listed[tensor.record - core.records.length][1].includes(model.record)) continue
    if ([...tensor.of].every(n => model.of.has(n))) continue // only the model was named
    for (const n of model.of) tensor.of.add(n);
    [tensor.model, tensor.sum] = [model.record, tensor.sum + 3 * model.sum]
  }
}

const kindsOf = core => record => {
  for (const [kind, n] of core.kinds) if ((record -= n) < 0) return kind
  return "tensor"
}

// The records that have a word, or what begins with it, or nearly the same word; how much each counts.
async function find({ whole, parts }, isOpen, core, load) {
  const weights = await lookUp(whole, isOpen, core, load)
  if (parts.length) {
    const all = await Promise.all(parts.map(part => lookUp(part, false, core, load)))
    for (const [record, first] of all[0]) {
      if (!all.every(of => of.has(record))) continue
      const weight = all.reduce((sum, of) => sum + of.get(record), 0) / parts.length * .6
      if (weight > (weights.get(record) ?? 0)) weights.set(record, weight)
    }
  }
  return weights
}

async function lookUp(word, isOpen, core, load) {
  const weights = new Map()
  const add = (entries, share) => {
    for (let n = 0; n < entries.length; n += 2) {
      const weight = entries[n + 1] * share
      if (weight > (weights.get(entries[n]) ?? 0)) weights.set(entries[n], weight)
    }
  }
  const pieces = await Promise.all(piecesOf(word, core).map(n => load(`words-${n}.json`)))
  for (const piece of pieces) if (Object.hasOwn(piece, word)) add(piece[word], 1)
  if (isOpen || !weights.size) {
    for (const piece of pieces) {
      for (const other of Object.keys(piece)) {
        if (other !== word && other.startsWith(word)) add(piece[other], .7 * word.length / other.length)
      }
    }
  }
  if (!weights.size && word.length > 3 && !/^\d/.test(word)) {
    for (const piece of pieces) for (const other of Object.keys(piece)) if (isNear(word, other)) add(piece[other], .5)
  }
  return weights
}

// The pieces of the index in which words begin with this one: nearly always one.
function piecesOf(word, { starts }) {
  let first = starts.findLastIndex(start => start <= word)
  if (first < 0) first = 0
  const numbers = [first]
  while (starts[numbers.at(-1) + 1]?.startsWith(word)) numbers.push(numbers.at(-1) + 1)
  return numbers
}

// Whether one letter more, less, other or swapped makes one word of the other.
function isNear(a, b) {
  if (Math.abs(a.length - b.length) > 1) return false
  let start = 0
  while (start < a.length && a[start] === b[start]) start++
  const [x, y] = [a.slice(start), b.slice(start)]
  return x.slice(1) === y.slice(1) || x.slice(1) === y || x === y.slice(1) || (x[0] === y[1] && x[1] === y[0] && x.slice(2) === y.slice(2))
}

// What is shown of a record: where it is, its title, what stands above it, and the words around those that were asked for.
async function shown({ record, kind, model }, wanted, core, load) {
  if (kind === "tensor") return ofTensor((await load("tensors.json"))[record - core.records.length], model, core)
  const [address, title, said] = core.records[record]
  if (kind !== "section") return { kind, address, title, said }
  return { kind, address, title, above: said, said: excerpt(await textOf(record, core, load), wanted) }
}

async function textOf(record, core, load) {
  for (const [kind, n] of core.kinds) {
    if (kind === "section") break
    record -= n
  }
  const piece = core.texts.findLastIndex(first => first <= record)
  return (await load(`text-${piece}.json`))[record - core.texts[piece]]
}

// A tensor's row in the table of the model that was named, or of the first that has it.
function ofTensor([name, models, others = {}], model = models[0], core) {
  const anchor = others[model] ?? name.replace("{i}", 0).replace("{e}", 0)
  const rest = models.length - 1
  const said = `in ${core.records[model][1]}${rest ? ` and ${rest} other model${rest > 1 ? "s" : ""}` : ""}`
  return { kind: "tensor", address: `${core.records[model][0]}#${anchor}`, title: name, said }
}

const ROOM = 150

function excerpt(text, wanted) {
  const places = [...text.matchAll(WORD)].filter(([word]) => isWanted(word, wanted)).map(match => match.index)
  // The stretch that holds most of them.
  let best = 0, most = 0
  places.forEach((start, n) => {
    const held = new Set(places.slice(n).filter(place => place < start + ROOM).map(place => /[\p{L}\p{N}_.]+/u.exec(text.slice(place))[0].toLowerCase())).size
    if (held > most) [best, most] = [start, held]
  })
  const start = best < 40 ? 0 : text.indexOf(" ", best - 40) + 1
  const end = start + ROOM >= text.length ? text.length : text.lastIndexOf(" ", start + ROOM)
  return `${start ? "… " : ""}${text.slice(start, end)}${end < text.length ? " …" : ""}`
}

export const isWanted = (word, wanted) => {
  const [whole, ...parts] = forms(word.toLowerCase())
  return whole !== undefined && wanted.some(term => term.whole === whole || (term.whole.length > 2 && whole.startsWith(term.whole)) || parts.includes(term.whole) || term.parts.includes(whole))
}

// A text in pieces, every other one of which was asked for.
export function marked(text, wanted) {
  const pieces = []
  let end = 0
  for (const match of text.matchAll(WORD)) {
    if (!isWanted(match[0], wanted)) continue
    pieces.push(text.slice(end, match.index), match[0])
    end = match.index + match[0].length
  }
  return [...pieces, text.slice(end)]
}
