// What a question names besides words of a page: models, a machine, a format, a context, a figure. From it come links
// to the tools with these values filled in, and the question that answers.mjs computes. It knows nothing of the page.

/**
 * @typedef {object} Names what names.json has: everything by every name that people use, asked.toml says why
 * @property {[place: number, names: string[], keys?: Record<string, string>][]} models in the order of their records
 * @property {Record<string, string>} keys of a config.json, by the sizes
 * @property {Record<string, string>} machines
 * @property {Record<string, string>} machineNames
 * @property {Record<string, string[]>} formats
 * @property {[name: string, words: string[], section: string][]} figures
 * @property {[name: string, words: string[]][]} sizes
 * @property {string[][]} same
 * @property {Record<number, string[]>} topics other names of a section, by its record
 * @property {string[]} plain
 * @property {string[]} noise
 * @property {string[]} training
 * @property {string[]} fitting
 * @property {string[]} against
 * @property {Partial<Record<"whatIf" | "fits" | "compare" | "plan" | "training", string>>} tools of the pages that are
 * built
 * @property {Record<"context" | "batch" | "devices", number>} most
 *
 * @typedef {object} Named a model of a question
 * @property {number} record
 * @property {string} slug
 * @property {string} title
 * @property {string} page
 * @property {string} known what is said of it
 * @property {boolean} isListed whether a tool can start from it
 * @property {boolean} isSure whether the question says which, not only of which family
 *
 * @typedef {object} Meaning
 * @property {Named[]} models
 * @property {string} [format]
 * @property {string} [on] a machine as the tools take it
 * @property {string} [onName]
 * @property {boolean} isAmount whether an amount of memory was named, not an accelerator
 * @property {number} [context]
 * @property {number} [batch]
 * @property {number} [devices]
 * @property {[size: string, value: number][]} changes
 * @property {string} [figure]
 * @property {string} [section]
 * @property {string} [size]
 * @property {boolean} isTraining
 * @property {string} [method] of training, if not all weights are trained
 * @property {boolean} isFitting
 * @property {boolean} isAgainst
 * @property {boolean} isWhy whether it asks for a reason or a meaning
 *
 * @typedef {object} Computed what answers.mjs is asked for
 * @property {string} slug
 * @property {string} title
 * @property {string} [what] a figure's name; without one whether the model fits
 * @property {string} [size]
 * @property {string} [format]
 * @property {string} [on]
 * @property {number} context
 * @property {number} batch
 * @property {number} devices
 * @property {[size: string, key: string, value: number][]} changes
 *
 * @typedef {{ kind: string, address: string, title: string, said: string, compute?: Computed }} Lead
 * @typedef {Pick<import("./ask.mjs").Core, "records">} Records
 */

const CONTEXT = 8192 // the tools' own
const TOKEN = /\d+(?:\.\d+)?x\d+(?:\.\d+)?[a-z]*|(?<![a-z])[a-z]\d[\d.]*[a-z]?(?![a-z\d])|[a-z]+|\d+(?:\.\d+)*[a-z]*/g
const COUNTS = ["one", "two", "three", "four", "five", "six", "seven", "eight"]
const ADAPTERS = ["qlora", "dora", "lora"]
const WHOLE = "the-whole-model" // the section of a model's page that has its sizes
const BEFORE_MODELS = /\d+gb|^[a-z]{5,}\d$/ // with memory or a generation, which a model's name would take
const GAP = "¦" // where something was taken out: what stands at both sides is no phrase

/** @typedef {{ text: string, start: number, end: number }} Token */
/** @returns {Token[]} */
const tokens = (/** @type {string} */ text, pattern = TOKEN) =>
  [...text.matchAll(pattern)].map(m => ({ text: m[0], start: m.index, end: m.index + m[0].length }))
const isSize = (/** @type {string} */ token) => /^\d[\d.]*[bmt]$|^\d+x\d/.test(token)
const escaped = (/** @type {string} */ text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")
/** Words however they are joined. */
const phrase = (/** @type {string} */ words) =>
  words
    .split(/[\s_-]+/)
    .map(escaped)
    .join("[\\s_-]?")
const alone = (/** @type {string} */ pattern) => `(?<![\\p{L}\\p{N}._])(?:${pattern})(?![\\p{L}\\p{N}_])`

/**
 * What is made of the names, once.
 * @typedef {object} Prepared
 * @property {{ record: number, place: number, names: string[][] }[]} models
 * @property {Set<string>} first the tokens that names begin with
 * @property {Set<string>} whole names of which no part is one
 * @property {[pattern: RegExp, name: string][]} formats
 * @property {[pattern: RegExp, figure: string | null, size: string | null, section: string][]} figures
 * @property {[before: RegExp, after: RegExp, size: string][]} changes
 */
/** @type {WeakMap<Names, Prepared>} */
const prepared = new WeakMap()

/**
 * @param {Names} names
 * @param {Records} core
 */
function prepare(names, core) {
  const known = prepared.get(names)
  if (known) return known
  const cut = (/** @type {string} */ name) =>
    tokens(name.toLowerCase())
      .map(token => token.text)
      .filter(token => !names.noise.includes(token))
  const models = names.models.map(([place, others], record) => {
    const [address, title] = core.records[record]
    return { record, place, names: [title, slugOf(address), ...others].map(cut) }
  })
  /** @typedef {[word: string, name: string | null, size: string | null, section: string]} Word */
  const longest = (/** @type {Word[]} */ list) => list.sort((a, b) => b[0].length - a[0].length)
  /**
   * @param {string[]} words
   * @param {string | null} name
   * @param {string | null} size
   * @param {string} section
   */
  const each = (words, name, size, section) => words.map(word => /** @type {Word} */ ([word, name, size, section]))
  const formats = longest(
    Object.entries(names.formats).flatMap(([name, words]) => each([name.toLowerCase(), ...words], name, null, "")),
  )
  const figures = longest([
    ...names.figures.flatMap(([name, words, section]) => each(words, name, null, section)),
    ...names.sizes.flatMap(([name, words]) => each(words, null, name, WHOLE)),
  ])
  const all = {
    models,
    first: new Set(models.flatMap(model => model.names.flatMap(name => name[0] ?? []))),
    whole: new Set(models.flatMap(model => model.names.flatMap(name => (name.length > 2 ? name.join(" ") : [])))),
    formats: formats.map(([word, name]) => [new RegExp(alone(phrase(word)), "u"), name]),
    figures: figures.map(([word, ...rest]) => [new RegExp(alone(phrase(word)), "u"), ...rest]),
    changes: names.sizes
      .filter(([name]) => names.keys[name])
      .map(([name, words]) => {
        const of = words.map(phrase).join("|")
        return [
          new RegExp(`${alone(of)}\\s*(?:of|to|is|=|:)?\\s*(\\d[\\d,.]*)(k?)(?![\\p{L}\\p{N}])`, "u"),
          new RegExp(`(?<![\\p{L}\\p{N}.])(\\d[\\d,.]*)(k?)[\\s-]*${alone(of)}`, "u"),
          name,
        ]
      }),
  }
  const made = /** @type {Prepared} */ (all)
  prepared.set(names, made)
  return made
}

const slugOf = (/** @type {string} */ address) =>
  (address.split("/").filter(Boolean).at(-1) ?? "").replace(/\.html$/, "")

/**
 * @param {string} question
 * @param {Records} core
 * @param {Names} names
 * @returns {Meaning}
 */
export function meant(question, core, names) {
  const made = prepare(names, core)
  let text = ` ${question.toLowerCase()} `.replace(/(?<=\d),(?=\d{3}(?!\d))/g, "").replace(/[×*](?=\s*[a-z\d])/g, "x")
  text = text.replace(/(?<![\w.])[a-z][\w.-]*\/(?=[a-z][\w.]*[-\d])/g, "") // who published a file
  /** Takes out what a pattern finds. @param {RegExp} pattern */
  const take = pattern => {
    const found = pattern.exec(text)
    if (found) text = `${text.slice(0, found.index)} ${GAP} ${text.slice(found.index + found[0].length)}`
    return found
  }
  const has = (/** @type {string[]} */ words) => words.some(word => new RegExp(alone(phrase(word)), "u").test(text))
  /** @type {Meaning} */
  const meaning = {
    models: [],
    changes: [],
    isAmount: false,
    isTraining: has(names.training),
    method: ADAPTERS.find(name => has([name])),
    isFitting: false,
    isAgainst: false,
    isWhy: /^\s*(?:why|how|what (?:is|are|does|do))\b/.test(text),
  }
  take(/\d[\d.]*\s*[gt]i?b\/s/)
  let formats = 0
  for (const [pattern, name] of made.formats)
    while (take(pattern)) {
      formats++
      meaning.format ??= name
    }
  if (formats > 1) delete meaning.format // one against another
  const blank = (/** @type {number} */ start, /** @type {number} */ end) => {
    text = `${text.slice(0, start)}${GAP.repeat(end - start)}${text.slice(end)}`
  }
  const early = machineIn(text, names, blank, true)
  const memory =
    take(
      /(?:(\d{1,4})\s*x\s*)?(\d{1,5}(?:\.\d{1,3})?)\s*(g|t|gi?b|ti?b|gigs?|gigabytes?)\b(?=\s*(?:of\s+)?(?:vram|gpu))/,
    ) ?? take(/(?:(\d{1,4})\s*x\s*)?(\d{1,5}(?:\.\d{1,3})?)\s*(g|gi?b|ti?b|gigs?|gigabytes?)\b/)
  if (memory?.[1]) meaning.devices = Number(memory[1])
  const batch =
    take(/\bbatch(?:[\s_-]*size)?\s*(?:of|=|:)?\s*(\d{1,6})\b/) ??
    take(/(?<![.\d])(\d{1,6})\s*(?:concurrent|parallel)?\s*(?:users?|requests?|sequences?|streams?)\b/)
  if (batch) meaning.batch = Number(batch[1])
  meaning.models = modelsIn(text, made, core, names, blank)
  if (isOfTensor(text, made)) return { ...meaning, models: [] }
  const machine = early ?? machineIn(text, names, blank)
  for (const [before, after, size] of made.changes) {
    const found = take(before) ?? take(after)
    const value = found && number(found[1], found[2] ? (size === "vocab_size" ? 1000 : 1024) : 1)
    if (value) meaning.changes.push([size, value])
  }
  meaning.context = contextIn(take)
  meaning.isAgainst = has(names.against)
  meaning.isFitting = has(names.fitting)
  const figure = made.figures.find(([pattern]) => pattern.test(text))
  if (figure)
    Object.assign(meaning, { figure: figure[1] ?? undefined, size: figure[2] ?? undefined, section: figure[3] })
  const amount = memory && `${memory[2]}${unit(memory[3])}`
  if (machine) {
    // Memory beside it may be the computer's: it only tells two of one name apart.
    const slug = (memory && names.machines[`${machine.key}${memory[2]}gb`]) || machine.slug
    meaning.on = slug
    meaning.onName = names.machineNames[slug]
    meaning.devices = machine.count ?? meaning.devices
  } else if (amount) {
    meaning.on = amount
    meaning.onName = amount.replace(/(?<=\d)(?=[A-Z])/, " ")
    meaning.isAmount = true
  }
  for (const name of /** @type {const} */ (["context", "batch", "devices"])) {
    const value = meaning[name]
    if (value !== undefined && !(value > 0 && value <= names.most[name])) delete meaning[name]
  }
  return meaning
}

// A tensor's name and a key of a config are looked up, not computed.
const isOfTensor = (/** @type {string} */ text, /** @type {Prepared} */ made) =>
  [...text.matchAll(/[a-z]\w*(?:[._]\w+)+/g)].some(
    ([name]) =>
      /[a-z][._][a-z]/.test(name) &&
      !made.figures.some(([pattern]) => pattern.test(name)) &&
      !made.formats.some(([pattern]) => pattern.test(name)) &&
      !/^(?:q\d|iq\d|config\.json|num_ctx|n_ctx)/.test(name),
  )

/**
 * @param {string} text
 * @param {number} times
 */
function number(text, times) {
  const value = Number(text.replaceAll(",", "").replace(/\.$/, "")) * times
  return Number.isSafeInteger(value) && value > 0 ? value : 0
}
const unit = (/** @type {string} */ text) =>
  `${text[0].toUpperCase()}${(text.startsWith("gi") && text.endsWith("b")) || text === "tib" ? "iB" : "B"}`.replace(
    "GiGB",
    "GB",
  )

/** @returns {number | undefined} tokens; k is 1,024 of them, as models' contexts are */
function contextIn(/** @type {(pattern: RegExp) => RegExpExecArray | null} */ take) {
  const words = "(?:context|ctx|num_ctx|n_ctx|max_model_len|tokens?|window|seq(?:uence)?)"
  const found =
    take(new RegExp(`(?<![\\w.])(\\d+(?:\\.\\d+)?)\\s*([km])[\\s-]*(?:tokens?\\s*(?:of\\s+)?)?${words}`)) ??
    take(
      new RegExp(
        `\\b${words}(?:[\\s_-]*(?:length|len|size|window))?\\s*(?:of|is|=|:|at)?\\s*(\\d+(?:\\.\\d+)?)\\s*([km]?)\\b`,
      ),
    ) ??
    take(new RegExp(`(?<![\\w.])(\\d{3,9})()[\\s-]*${words}`)) ??
    take(/(?<![\w.])(\d+(?:\.\d+)?)\s?(k)\b/)
  if (!found) return undefined
  return number(found[1], found[2] === "m" ? 1024 * 1024 : found[2] === "k" ? 1024 : 1) || undefined
}

/**
 * The models of a question, in its order.
 * @param {string} text
 * @param {Prepared} made
 * @param {Records} core
 * @param {Names} names
 * @param {(start: number, end: number) => void} take
 */
function modelsIn(text, made, core, names, take) {
  /** @type {Named[]} */
  const found = []
  const all = tokens(text.replace(/(\d)\s+(?:b|billion)\b/g, (whole, digit) => `${digit}b`.padEnd(whole.length)))
  const joined = (/** @type {number} */ from, /** @type {number} */ to) =>
    !text.slice(all[from].start, all[to - 1].end).includes(GAP)
  for (let i = 0; i < all.length;) {
    let best,
      length = 0
    for (let n = Math.min(8, all.length - i); n > 0 && !best; n--) {
      if (!joined(i, i + n)) continue
      const said = all.slice(i, i + n).map(token => token.text)
      const asked = said.filter(word => !names.noise.includes(word))
      const isName = asked.length > 1 || (asked.length === 1 && asked[0].length > 2 && !names.plain.includes(asked[0]))
      const begins = asked.some(token => made.first.has(token) && /^[a-z][a-z\d]/.test(token))
      if (!isName || !(begins || made.whole.has(asked.join(" ")))) continue
      best = closest(asked, made)
      length = n
    }
    if (!best) {
      i++
      continue
    }
    const [address, title, known] = core.records[best.record]
    if (!found.some(({ record }) => record === best.record))
      found.push({
        record: best.record,
        slug: slugOf(address),
        title,
        known,
        page: address,
        isListed: best.place >= 0,
        isSure: best.isSure,
      })
    take(all[i].start, all[i + length - 1].end)
    i += length
  }
  return found
}

/**
 * The model whose name has all of these and least besides; of several the newest.
 * @param {string[]} asked
 * @param {Prepared} made
 */
function closest(asked, made) {
  /** @type {{ record: number, place: number, isSure: boolean } | undefined} */
  let best
  let least = Infinity,
    several = 0
  for (const { record, place, names } of made.models)
    for (const name of names) {
      if (!asked.every(token => name.includes(token))) continue
      const more = new Set(name).size - new Set(asked).size,
        isBetter = more < least || (more === least && best && before(place, best.place))
      if (more < least) several = 0
      if (more === least && best?.record !== record) several++
      if (!isBetter) continue
      least = more
      best = { record, place, isSure: false }
    }
  if (best) best.isSure = least === 0 || several === 0 || asked.some(isSize)
  return best
}
const before = (/** @type {number} */ a, /** @type {number} */ b) => a >= 0 && (b < 0 || a < b)

/**
 * The accelerator of a question, and how many.
 * @param {string} text
 * @param {Names} names
 * @param {(start: number, end: number) => void} take
 * @param {boolean} isBefore whether only those are meant that are read before the models
 */
function machineIn(text, names, take, isBefore = false) {
  const all = tokens(text.replace(/(?<![a-z\d])(\d{1,4})x(?=[a-z\d])/g, "$1 "), /[a-z\d.]*[a-z\d]/g)
  for (let n = 5; n > 0; n--)
    for (let i = 0; i + n <= all.length; i++) {
      if (text.slice(all[i].start, all[i + n - 1].end).includes(GAP)) continue
      const joined = all
        .slice(i, i + n)
        .map(token => token.text)
        .join("")
      const key = [joined, joined.replace(/s$/, "")].find(name => Object.hasOwn(names.machines, name))
      if (key === undefined || (isBefore && !BEFORE_MODELS.test(key))) continue
      // The number in front of it; a vendor's name may stand between
      const counted =
        /(?<![\p{L}\p{N}.])(\d{1,5}|[a-z]+)\s*x?\s*(?:nvidia|amd|intel|google|geforce|rtx|instinct)?\s*$/u.exec(
          text.slice(0, all[i].start),
        )
      const word = counted?.[1] ?? ""
      const count = /^\d+$/.test(word)
        ? Number(word)
        : ({ dual: 2, double: 2, quad: 4 }[word] ?? COUNTS.indexOf(word) + 1)
      take(all[i].start, all[i + n - 1].end)
      return { slug: names.machines[key], key, count: count || undefined }
    }
  return null
}

// What is shown of it

const grouped = (/** @type {number} */ n) => n.toLocaleString("en")
/**
 * @param {string} page
 * @param {Record<string, string | number | undefined>} choices
 */
const link = (page, choices) => {
  const given = Object.entries(choices).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${encodeURIComponent(value).replaceAll("%2C", ",")}`],
  )
  return given.length ? `${page}?${given.join("&")}` : page
}
const conditionsOf = (/** @type {Meaning} */ { format, context, batch, devices }) =>
  [
    format && ` in ${format}`,
    context && ` with ${grouped(context)} tokens of context`,
    batch && batch > 1 && ` for ${grouped(batch)} sequences`,
    devices && devices > 1 && ` on ${grouped(devices)} devices`,
  ]
    .filter(Boolean)
    .join("")

/**
 * The results that come before what the index finds.
 * @param {Meaning} meaning
 * @param {Names} names
 * @returns {Lead[]}
 */
export function leads(meaning, names) {
  const { models, format, context, batch, devices, on, onName, changes, figure, size, section } = meaning,
    { whatIf, fits, compare, plan, training } = names.tools
  /** @type {Lead[]} */
  const ofTraining = training
    ? [
        {
          kind: "tool",
          address: training,
          title: "Training memory",
          said: "Weights, gradients, optimizer states and activations.",
        },
      ]
    : []
  const listed = models.filter(({ isListed }) => isListed)
  const tool = "Opens with these values filled in."
  if (listed.length > 1 && compare && meaning.isAgainst) {
    const four = listed.slice(0, 4)
    const title = `Compare ${four.map(one => one.title).join(" and ")}`
    return [
      {
        kind: "tool",
        address: link(compare, { models: four.map(one => one.slug).join(), weights: format, context, on }),
        title,
        said: tool,
      },
    ]
  }
  const [model] = listed
  if (model && models.length === 1) {
    if (meaning.isTraining) {
      const { method } = meaning
      const fill = {
        task: "training",
        model: model.slug,
        method,
        on,
        devices: devices ?? (method || on ? 1 : undefined),
      }
      const title = `Training of ${model.title}${method ? ` with ${method.replace("ora", "oRA")}` : ""}`
      return plan ? [{ kind: "tool", address: link(plan, fill), title, said: tool }, ...ofTraining] : ofTraining
    }
    const ofArchitecture = names.models[model.record][2] ?? {}
    const keys = changes.flatMap(([name, value]) => {
      const key = ofArchitecture[name] ?? names.keys[name]
      return key ? [/** @type {[string, string, number]} */ ([name, key, value])] : []
    })
    const choices = { model: model.slug, weights: format, context, batch, on, devices }
    /** @type {Computed} */
    const compute = {
      slug: model.slug,
      title: model.title,
      format,
      on,
      context: context ?? CONTEXT,
      batch: batch ?? 1,
      devices: devices ?? 1,
      changes: keys,
    }
    const fill = { ...choices, ...Object.fromEntries(keys.map(([, key, value]) => [`set.${key}`, value])) }
    const inWhatIf = whatIf && link(whatIf, fill)
    /** @param {string | undefined} address @param {string} title @param {Computed} [asked] @returns {Lead[]} */
    const lead = (address, title, asked) =>
      address
        ? [
            {
              kind: asked ? "answer" : "tool",
              address,
              title,
              said: asked ? model.known : tool,
              ...(asked && { compute: asked }),
            },
          ]
        : []
    const named = `${model.title}${conditionsOf(meaning)}`
    if (keys.length) {
      const said = keys.map(([name, , value]) => `${name} = ${grouped(value)}`).join(", ")
      return lead(inWhatIf, `${model.title} with ${said}`, {
        ...compute,
        what: figure === "size" ? "total" : (figure ?? "total"),
      })
    }
    if (on && figure !== "tokens_per_second" && model.isSure) {
      const first = { model: model.slug, weights: format, on, context: context ?? CONTEXT, batch }
      // Several devices are What if's: it splits the model over them.
      const address = fits && !(devices && devices > 1) ? link(fits, first) : inWhatIf
      return lead(address, `${named} on ${onName}`, compute)
    }
    if (on)
      return lead(inWhatIf, `${named} on ${onName}`, model.isSure && figure ? { ...compute, what: figure } : undefined)
    if (!model.isSure) return figure || size || !(format || context) ? [] : lead(inWhatIf, named)
    const isLength = size === "context" || figure === "largest_context"
    if (isLength && !context)
      return lead(`${model.page}#${WHOLE}`, `${model.title}: context`, { ...compute, size: "context" })
    if (size && !isLength) return lead(`${model.page}#${WHOLE}`, `${model.title}: ${size}`, { ...compute, size })
    const what = figure && !isLength ? figure : format ? "weight_bytes" : undefined
    const isFile = format && (what === "size" || (what === "device_bytes" && !context))
    if (what)
      return [
        ...lead(`${model.page}#${isFile ? "memory" : figure && !isLength ? section : "memory"}`, named, {
          ...compute,
          what: what === "size" ? (isFile ? "weight_bytes" : "total") : what,
        }),
        ...(format || context ? lead(inWhatIf, `What if: ${named}`) : []),
      ]
    return context ? lead(inWhatIf, named, { ...compute, what: "cache_bytes" }) : []
  }
  if (models.length) return []
  if (meaning.isTraining) return on ? ofTraining : []
  if (changes.length && whatIf && !meaning.isWhy) {
    const set = Object.fromEntries(changes.map(([name, value]) => [`set.${names.keys[name]}`, value]))
    return [
      {
        kind: "tool",
        address: link(whatIf, { context, on, ...set }),
        title: `What if ${changes.map(([name, value]) => `${name} = ${grouped(value)}`).join(", ")}`,
        said: tool,
      },
    ]
  }
  const page = fits ?? whatIf
  if (on && page && (meaning.isAmount || context || format || devices || meaning.isFitting)) {
    const several = devices && devices > 1 ? `${grouped(devices)} × ` : "",
      under = conditionsOf({ ...meaning, devices: undefined }),
      title = `${fits ? "What fits on" : "What if on"} ${several}${onName}${under}`
    return [
      {
        kind: "tool",
        address: link(page, { on, weights: format, context, batch: fits ? (batch ?? 1) : batch, devices }),
        title,
        said: tool,
      },
    ]
  }
  return []
}
