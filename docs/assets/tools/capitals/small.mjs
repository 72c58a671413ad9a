// The small model of this site, with what runs it.

import { checkpoint } from "../../running.mjs"
import { Session } from "../run/session.mjs"
import { fileOf } from "./files.mjs"
import { Vocabulary } from "./vocabulary.mjs"

/**
 * @typedef {{ vocab_size: number, n_positions: number, n_embd: number, n_layer: number, n_head: number }} Config
 * @typedef {{ session: Session, vocabulary: Vocabulary, config: Config }} Small
 */

/** @returns {Promise<Small>} */
export async function smallModel() {
  const [text, tokenizer, weights] = await Promise.all([
    fileOf("config.json").then(answer => answer.text()),
    fileOf("tokenizer.json").then(answer => answer.json()),
    fileOf("model.safetensors").then(answer => answer.arrayBuffer()),
  ])
  /** @type {Config} */
  const config = JSON.parse(text),
    vocabulary = new Vocabulary(tokenizer)
  const words = {
    encode: (/** @type {string} */ text) => vocabulary.cut(text).flatMap(({ id }) => id ?? []),
    decode: (/** @type {number} */ id) => vocabulary.words[id],
  }
  const about = {
    layers: config.n_layer,
    vocabulary: config.vocab_size,
    longest: config.n_positions,
    hasSource: false,
    isSum: true,
  }
  return { session: new Session(await checkpoint(text, weights), words, about), vocabulary, config }
}
