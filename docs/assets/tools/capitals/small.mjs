// The small model of this site, with what runs it.

import { checkpoint } from "../../running.mjs"
import { Session } from "../run/session.mjs"
import { Vocabulary } from "./vocabulary.mjs"

const FOLDER = new URL("../../capitals/", import.meta.url)
/**
 * @typedef {{ vocab_size: number, n_positions: number, n_embd: number, n_layer: number, n_head: number }} Config
 * @typedef {{ session: Session, vocabulary: Vocabulary, config: Config }} Small
 */

const fetched = async (/** @type {string} */ name) => {
  const answer = await fetch(new URL(name, FOLDER))
  if (!answer.ok) throw new Error(`${name} could not be loaded: ${answer.status}`)
  return answer
}

/** @returns {Promise<Small>} */
export async function smallModel() {
  const [text, tokenizer, weights] = await Promise.all([
    fetched("config.json").then(answer => answer.text()),
    fetched("tokenizer.json").then(answer => answer.json()),
    fetched("model.safetensors").then(answer => answer.arrayBuffer()),
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
