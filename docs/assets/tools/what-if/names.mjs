// What people call a model: one of the catalog, or one that a hub has. Another host is asked by `fromHub` alone.

import { M } from "../../engine/resolving.mjs"
import { BOUNDS, Problem, py, shorten, textOf, WEIGHTS } from "../../model.mjs"
import { fetched, grouped } from "../kit.mjs"
import { tensorList } from "../tensors.mjs"

const { by_words, contained, Known, MOST_CANDIDATES, reference, resolve } = M["catalogue.resolving"],
  NAME = /^[A-Za-z0-9][\w.-]*\/[A-Za-z0-9][\w.-]*$/,
  FILE = /\.(json|safetensors|gguf)$/i,
  INDEX = "model.safetensors.index.json",
  SINGLE = "model.safetensors",
  FIRST = 100_000, // bytes of a file that hold most headers
  MOST_FILES = 200,
  MOST_MILLISECONDS = 30_000

/** The hub of this site and the hosts to which it redirects; an empty text if it asks none. @returns {string[]} */
const hosts = () => {
  const meta = /** @type {HTMLMetaElement?} */ (document.querySelector('meta[name="ep-hub"]'))
  return (meta?.content ?? "").split(" ")
}
const hub = () => hosts()[0]
/** The host that would be asked. */
export const host = () => (hub() ? new URL(hub()).host : "")
/** The other hosts that would be, for the headers of the weights. */
export const others = () =>
  hosts()
    .slice(1)
    .map(one => new URL(one).host)

/** @type {Promise<Engine.Dict<string, Engine.Known>> | undefined} */
let known
const names = () =>
  (known ??= fetched("names.json").then(all => {
    const found = new py.Dict()
    for (const [slug, [title, name, aliases, headline]] of py.entries(all))
      found.put(slug, Known(title, name, aliases, headline))
    return found
  }))

/**
 * The model of the catalog that a name or an address means, or the hub's repository of one that the catalog lacks;
 * throws a problem.
 * @param {string} text
 * @returns {Promise<{ slug: string, title: string, format: string, why: string, repository: string }>}
 */
export async function meant(text) {
  const all = await names(),
    { slug, format, why, candidates } = resolve(text.trim(), all, [...WEIGHTS])
  if (slug) return { slug, title: all.read(slug).title, format, why, repository: "" }
  if (why) throw Problem(`${shorten(text)}: ${why}`, `name ${candidates.join(" or ")}`)
  const { organization, name } = reference(text),
    repository = `${organization}/${name}`
  if (NAME.test(repository) && !FILE.test(name)) {
    if (hub()) return { slug, title: repository, format, why, repository }
    throw Problem(`unknown model ${shorten(text)}`, "paste its config.json: this site asks no hub")
  }
  if (!candidates.length)
    throw Problem(`unknown model ${shorten(text)}`, "write organization/name, or the address of a model’s page")
  const shown = candidates.slice(0, Number(MOST_CANDIDATES)),
    more = candidates.length > shown.length ? ` or one of ${candidates.length - shown.length} more` : ""
  throw candidates.length === 1
    ? Problem(`unknown model ${shorten(text)}`, `write ${shown[0]} if you mean ${all.read(shown[0]).title}`)
    : Problem(`${shorten(text)} could be several models`, `name one: ${shown.join(", ")}${more}`)
}

/**
 * The models of the catalog that a name in a log may mean: its own first, then those whose names stand inside it.
 * @param {string} text
 * @returns {Promise<{ slug: string, format: string, why: string }[]>}
 */
export async function inside(text) {
  const all = await names(),
    own = resolve(text, all, [...WEIGHTS])
  return own.slug ? [own] : [...contained(text, all, [...WEIGHTS], by_words(all))]
}

/**
 * The config.json of a repository and, if it has an index, the names of its tensors; where the site lists the hosts of
 * its weights, the shapes too, from their headers. Throws a problem.
 * @param {string} repository
 */
export async function fromHub(repository) {
  const [config, index] = await Promise.all([
    file(repository, "config.json", BOUNDS.LARGEST_TEXT),
    file(repository, INDEX, BOUNDS.LARGEST_INDEX),
  ])
  if (!config)
    throw Problem("its repository has no config.json", "name one that has, or paste a config.json", repository)
  const listed = index && (await tensorList(new File([index], INDEX)))
  return {
    text: await textOf(config, BOUNDS.LARGEST_TEXT),
    listed: others().length ? await headers(repository, index && (await textOf(index, BOUNDS.LARGEST_INDEX))) : listed,
  }
}

/**
 * The tensors of a repository with their shapes, by the headers of its files; null if it has no such files.
 * @param {string} repository
 * @param {string?} index
 */
async function headers(repository, index) {
  const named = index ? [...new Set(Object.values(JSON.parse(index).weight_map).map(String))] : [SINGLE]
  const wrong = named.find(name => !/^\w[\w.-]*\.safetensors$/.test(name))
  if (wrong !== undefined || !named.length || named.length > MOST_FILES) {
    const what = wrong === undefined ? `${grouped(BigInt(named.length))} files` : shorten(wrong)
    throw Problem(`${INDEX} names ${what}`, `expected 1 to ${MOST_FILES} safetensors files beside it`, repository)
  }
  /** @type {import("../tensors.mjs").Tensors} */
  const found = new Map()
  for (const name of named) {
    const begun = await file(repository, name, BigInt(FIRST), FIRST)
    if (!begun) return null
    const length = begun.size < 8 ? 0n : new DataView(await begun.slice(0, 8).arrayBuffer()).getBigUint64(0, true),
      isMore = length + 8n > BigInt(begun.size) && length <= BOUNDS.LARGEST_HEADER,
      whole = isMore ? await file(repository, name, length + 8n, Number(length) + 8) : begun
    for (const [tensor, shape] of await tensorList(new File([whole ?? begun], name))) found.set(tensor, shape)
  }
  return found
}

/**
 * A small file of a repository, or the first bytes of one; null if it has none of that name.
 * @param {string} repository
 * @param {string} name
 * @param {bigint} most bytes
 * @param {number} [first] bytes, of a large file
 */
async function file(repository, name, most, first) {
  const signal = AbortSignal.timeout(MOST_MILLISECONDS)
  let answer
  try {
    answer = await fetch(`${hub()}/${repository}/resolve/main/${name}`, {
      ...{ credentials: "omit", referrerPolicy: "no-referrer", signal },
      headers: first ? { Range: `bytes=0-${first - 1}` } : {},
    })
  } catch {
    throw Problem(`${host()} cannot be reached`, "check the connection, or paste the config.json", repository)
  }
  if (!answer.ok) return refused(answer, repository)
  const length = answer.headers.get("content-length")
  if (first && answer.status !== 206)
    throw Problem(`${host()} does not answer range requests`, "choose the list of tensors", repository)
  if (length && BigInt(length) > most) throw tooLarge(repository, name, BigInt(length), most)
  const parts = []
  let size = 0
  try {
    const reader = answer.body?.getReader()
    for (let part = await reader?.read(); part && !part.done && size <= most; part = await reader?.read()) {
      parts.push(part.value)
      size += part.value.length
    }
    if (size > most) await reader?.cancel()
  } catch {
    throw Problem(`${host()} broke off within ${name}`, "try again later", repository)
  }
  if (size > most) throw tooLarge(repository, name, BigInt(size), most)
  return new Blob(parts)
}
/** @param {string} repository @param {string} name @param {bigint} size @param {bigint} most */
const tooLarge = (repository, name, size, most) =>
  Problem(`${name} has ${grouped(size)} bytes, and at most ${grouped(most)} are read`, "give another model", repository)

/**
 * Null for a file that a repository does not have; throws why there is no answer.
 * @param {Response} answer
 * @param {string} repository
 */
function refused({ status, headers }, repository) {
  const code = headers.get("x-error-code")
  if (code === "EntryNotFound") return null
  if (code === "GatedRepo" || status === 403)
    throw Problem(
      `${host()} gives its files only to those who accepted its terms`,
      "download its config.json there, and drop it here",
      repository,
    )
  if (status === 401 || status === 404)
    throw Problem(`${host()} has no such model, or it is private`, "check the name", repository)
  if (status === 429) throw Problem(`${host()} asks for fewer requests`, "wait a few minutes", repository)
  throw Problem(`${host()} answered with status ${status}`, "try again later", repository)
}
