// A checkpoint's tokenizer.json: a text in token ids, and ids in text.

import { BOUNDS, named, Problem, said, textOf } from "../../problems.mjs"
import { Vocabulary } from "../capitals/vocabulary.mjs"
import { of } from "./folder.mjs"

/** @typedef {{ encode(text: string): number[], decode(id: number): string }} Tokenizer */

const FILE = "tokenizer.json",
  LIBRARY = "../../vendor/tokenizers.mjs" // not ours: it is not looked into for types

/**
 * @param {Blob} file
 * @param {number} size of the model's vocabulary
 * @returns {Promise<Tokenizer>}
 */
export const tokenizerOf = (file, size) =>
  of(FILE, async () => tokenizerIn(JSON.parse(await textOf(file, BOUNDS.LARGEST_TOKENIZER)), size, FILE))

/**
 * @param {any} table the contents of a tokenizer.json
 * @param {number} size of the model's vocabulary
 * @param {string} where they are from
 * @returns {Promise<Tokenizer>}
 */
export async function tokenizerIn(table, size, where) {
  const tokenizer = await made(table, where)
  return {
    encode(text) {
      const ids = tokenizer.encode(text),
        strange = ids.find(id => !Number.isInteger(id) || id < 0 || id >= size)
      if (strange === undefined) return ids
      throw Problem(
        `gives the token id ${strange}, and ids of this model run from 0 to ${size - 1}`,
        "give the tokenizer.json that belongs to config.json",
        where,
      )
    },
    decode: tokenizer.decode,
  }
}

/** @returns {Promise<Tokenizer>} */
async function made(/** @type {any} */ table, /** @type {string} */ where) {
  if (table?.model?.type === "WordLevel") return ofWords(new Vocabulary({ added_tokens: [], ...table }))
  const { Tokenizer } = await import(LIBRARY),
    made = new Tokenizer(table, {})
  return {
    encode: text => Array.from(made.encode(text).ids, Number),
    decode: id => {
      try {
        return made.decode([id], { skip_special_tokens: false, clean_up_tokenization_spaces: false })
      } catch (error) {
        throw Problem(`cannot put tokens together: ${said(error)}`, "", where)
      }
    },
  }
}

/** @returns {Tokenizer} of a list of words, which needs no library */
const ofWords = (/** @type {Vocabulary} */ words) => ({
  encode: text =>
    words.cut(text).map(({ text, id }) => {
      if (id === undefined) throw Problem(`“${named(text)}” is not one of the words that this model knows`)
      return id
    }),
  decode: id => words.words[id] ?? "",
})
