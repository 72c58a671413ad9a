// A GGUF file from a reader's disk, or its parts: config, tokenizer and weights, as a session that runs texts.

import { numbersOf } from "../../dequantized.mjs"
import { M } from "../../engine/base.mjs"
import "../../engine/gguf_tokenizer.mjs"
import { headerOf } from "../../gguf.mjs"
import { named, Problem, py } from "../../problems.mjs"
import { bytesOf, Checkpoint } from "../../running.mjs"
import "../../engine/gguf_weights.mjs"
import { checkCompared, configOf, madeOf } from "../gguf_model.mjs"
import { of } from "./folder.mjs"
import { aboutOf, checkBytes, runnable, Weights } from "./opening.mjs"
import { Session } from "./session.mjs"
import { tokenizerIn } from "./tokens.mjs"

/**
 * @typedef {import("../../running.mjs").NDArray} NDArray
 * @typedef {import("../../gguf.mjs").Header} Header
 * @typedef {import("./folder.mjs").Given} Given
 * @typedef {import("./session.mjs").Progress} Progress
 */

class GgufWeights extends Weights {
  arrays() {
    return [...this.files, ...this.known]
  }
}

/**
 * @param {Given[]} given
 * @param {(progress: Progress) => void} came
 * @returns {Promise<Session<import("./session.mjs").About>>}
 */
export function open(given, came) {
  const files = given.map(({ path, file }) => new File([file], path.split("/").at(-1) ?? path))
  return of(files[0].name, async () => {
    const gguf = await headerOf(files),
      raw = await configOf(gguf)
    await checkCompared(raw.read("model_type"))
    const counted = runnable(raw),
      arrays = await arraysOf(gguf, came),
      at = (/** @type {string} */ name) => {
        if (arrays.has(name)) return arrays.read(name)
        throw Problem(`the file has no tensor ${named(name)}`, "check that it is whole")
      },
      member = (/** @type {string} */ name, /** @type {bigint} */ n) => at(name).__getitem__(n),
      ours = M["catalogue.gguf_weights"].GgufWeights({ __getitem__: at, member }, madeOf(raw, counted.counts.trace)),
      tensors = py.entries(gguf.tensors).map(([, tensor]) => tensor),
      [tokenizer, said] = await tokenizerOf(gguf, Number(counted.config.symbols.read("vocab_size", undefined) ?? 0))
    return new Session(
      new Checkpoint(raw, new GgufWeights(ours, py.entries(arrays))),
      tokenizer,
      aboutOf(counted, {
        bytes: tensors.reduce((all, { size }) => all + Number(size), 0),
        unpacked: unpackedOf(tensors),
        types: [...new Set(tensors.map(({ type }) => type))],
        hasTokenizer: tokenizer !== null,
        warnings: said,
      }),
    )
  })
}

const elements = (/** @type {bigint[]} */ shape) => Number(shape.reduce((all, n) => all * n, 1n))
/** Bytes in memory. @param {Engine.GgufTensor[]} tensors */
const unpackedOf = tensors =>
  tensors.reduce((all, { type, shape }) => all + elements(shape) * (/^B?F16$/.test(type) ? 2 : 4), 0)

/** The numbers of all tensors, by the file's names. @param {Header} gguf @param {(progress: Progress) => void} came */
async function arraysOf(gguf, came) {
  const tensors = py.entries(gguf.tensors),
    total = tensors.reduce((all, [, { size }]) => all + Number(size), 0),
    /** @type {Engine.Dict<string, NDArray>} */
    arrays = new py.Dict()
  checkBytes(unpackedOf(tensors.map(([, tensor]) => tensor)))
  let done = 0
  for (const [name, { type, shape, size, file, begin }] of tensors) {
    const start = Number(begin),
      end = start + Number(size)
    if (!file || end > file.size) throw Problem(`ends within ${named(name)}`, "download the file again")
    const bytes = await bytesOf(file, start, end, slice => came({ done: (done += slice), of: total }))
    arrays.put(name, numbersOf(name, type, shape.map(Number), bytes))
  }
  return arrays
}

/**
 * The file's own tokenizer; where its kind is not known, none, and a line that says so.
 * @param {Header} gguf
 * @param {number} size of the vocabulary
 * @returns {Promise<[tokenizer: import("./tokens.mjs").Tokenizer | null, said: string[]]>}
 */
async function tokenizerOf(gguf, size) {
  try {
    const made = M["catalogue.gguf_tokenizer"].tokenizer_json(gguf)
    return [await tokenizerIn(plain(made), size, "its metadata"), []]
  } catch (error) {
    if (!py.isinstance(error, [Problem])) throw error
    return [null, [/** @type {Engine.Problem} */ (error).what]]
  }
}
/** A value of Python as one of JSON. @returns {any} */
function plain(/** @type {any} */ value) {
  if (typeof value === "bigint") return Number(value)
  if (Array.isArray(value)) return value.map(plain)
  return value instanceof py.Dict ? Object.fromEntries(py.entries(value).map(([key, one]) => [key, plain(one)])) : value
}
