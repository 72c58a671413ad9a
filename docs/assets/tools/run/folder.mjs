// A checkpoint's folder: which of its files are read, and the tensors of those that hold the weights.

import { BOUNDS, named, Problem, py, said, shorten, textOf } from "../../problems.mjs"
import { entriesOf, isTable, tensorsIn } from "../../safetensors.mjs"

/**
 * @typedef {{ path: string, file: Blob }} Given a file and its place in what was dropped
 * @typedef {import("../../safetensors.mjs").Tensor} Tensor
 * @typedef {{ config: string, tokenizer: Blob | null, tensors: Map<string, Tensor> }} Folder
 */

const INDEX = "model.safetensors.index.json",
  MOST_FILES = 10_000

/**
 * What is done for a file: a problem says which.
 * @template T
 * @param {string} name
 * @param {() => Promise<T>} task
 * @returns {Promise<T>}
 */
export async function of(name, task) {
  try {
    return await task()
  } catch (error) {
    throw py.isinstance(error, [Problem])
      ? /** @type {Engine.Problem} */ (error).at(name)
      : Problem(said(error), "", name)
  }
}

/** The GGUF files, where there is no config.json beside which they are another form. @param {Given[]} given */
export const ggufsOf = given =>
  given.some(({ path }) => path.endsWith("config.json")) ? [] : given.filter(({ path }) => /\.gguf$/i.test(path))

/**
 * The files of the folder that holds the config.json, the uppermost one if there are several.
 * @param {Given[]} given
 * @returns {Promise<Folder>}
 */
export async function opened(given) {
  if (given.length > MOST_FILES) throw Problem(`there are more than ${MOST_FILES} files`, "choose the model’s folder")
  const parts = (/** @type {string} */ path) => path.split("/").filter(Boolean)
  const configs = given.filter(({ path }) => parts(path).at(-1) === "config.json")
  if (!configs.length) throw Problem("no config.json and no GGUF file here", "choose the folder, or all of its files")
  const first = configs.sort((a, b) => parts(a.path).length - parts(b.path).length)[0],
    folder = parts(first.path).slice(0, -1).join("/")
  const files = new Map(
    given.flatMap(({ path, file }) => {
      const all = parts(path),
        name = all.pop()
      return name && all.join("/") === folder ? [[name, file]] : []
    }),
  )
  const config = await of("config.json", () => textOf(first.file, BOUNDS.LARGEST_TEXT))
  return { config, tokenizer: files.get("tokenizer.json") ?? null, tensors: await tensorsOf(files) }
}

/**
 * The tensors of the folder: of its one file, or of those that its index names.
 * @param {Map<string, Blob>} files
 */
async function tensorsOf(files) {
  const index = files.get(INDEX),
    map = index && (await of(INDEX, () => mapOf(index)))
  const names = map
    ? [...new Set(map.values())]
    : [...files.keys()].filter(name => name.endsWith(".safetensors")).sort()
  if (!names.length) throw Problem("no *.safetensors here", "add the files with the model’s weights")
  /** @type {Map<string, Tensor>} */
  const tensors = new Map()
  for (const name of names) {
    const file = files.get(name)
    if (!file) throw Problem(`${named(name)} is missing`, `add it: ${INDEX} names it`)
    for (const [tensor, place] of await of(named(name), () => tensorsIn(file)))
      if (!map || map.get(tensor) === name) tensors.set(tensor, place)
  }
  for (const [tensor, name] of map ?? [])
    if (!tensors.has(tensor))
      throw Problem(`has no tensor ${named(tensor)}, although the index lists it`, "download the file again", name)
  return tensors
}

/** @returns {Promise<Map<string, string>>} the file of each tensor */
async function mapOf(/** @type {Blob} */ index) {
  const map = new Map(entriesOf(await textOf(index, BOUNDS.LARGEST_INDEX), "is not an index of tensors")).get(
    "weight_map",
  )
  if (!isTable(map)) throw Problem("weight_map is missing", "download the file again")
  return new Map(
    Object.entries(map).map(([tensor, file]) => {
      if (typeof file !== "string") throw Problem(`weight_map: ${shorten(file)} is not a file`, "download it again")
      return [tensor, file]
    }),
  )
}
