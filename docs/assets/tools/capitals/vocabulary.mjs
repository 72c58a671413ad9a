// The words of the small model: a text cut into them, what completes a text, and what comes near an unknown word.

/**
 * @typedef {{ text: string, start: number, id: number | undefined }} Piece of a text; without an id where it is unknown
 * @typedef {{ model: { vocab: Record<string, number> }, added_tokens: { content: string }[] }} Tokenizer
 */

const MOST = 8 // completions
const quoted = (/** @type {string} */ text) => text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")
const LETTER = "[\\p{L}\\p{N}_]"

export class Vocabulary {
  /** @param {Tokenizer} tokenizer */
  constructor(tokenizer) {
    const names = tokenizer.added_tokens.map(({ content }) => content).sort((a, b) => b.length - a.length)
    this.ids = new Map(Object.entries(tokenizer.model.vocab))
    /** @type {string[]} */
    this.words = []
    for (const [word, id] of this.ids) this.words[id] = word
    const whole = `(?<!${LETTER})(?:${names.map(quoted).join("|")})(?!${LETTER})` // each class of letters takes time
    this.pieces = new RegExp([whole, `${LETTER}+`, `[^\\s${LETTER.slice(1)}+`].join("|"), "gu")
  }

  /**
   * A text in words and names, the longest name first.
   * @param {string} text
   * @returns {Piece[]}
   */
  cut(text) {
    return [...text.matchAll(this.pieces)].map(({ 0: piece, index }) => ({
      text: piece,
      start: index,
      id: this.ids.get(piece),
    }))
  }

  /**
   * Words that the end of a text may become, the likeliest first, and where they would begin.
   * @param {string} text
   * @param {number[]} scores of the words, after the text before
   * @returns {{ start: number, words: string[] }}
   */
  completions(text, scores) {
    const starts = [...text.matchAll(/(?<!\S)\S/gu)].map(({ index }) => index)
    for (const start of /\s$/.test(text) ? [] : starts) {
      const typed = text.slice(start).toLowerCase(),
        words = this.words.filter(word => word.toLowerCase().startsWith(typed) && word !== text.slice(start))
      const likely = (/** @type {string} */ word) => scores[/** @type {number} */ (this.ids.get(word))] ?? 0
      if (words.length) return { start, words: words.sort((a, b) => likely(b) - likely(a)).slice(0, MOST) }
    }
    return { start: text.length, words: [] }
  }

  /**
   * The word that an unknown one was most likely meant to be, if there is one near it.
   * @param {string} word
   */
  nearest(word) {
    const typed = word.toLowerCase(),
      most = Math.max(1, Math.floor(typed.length / 3))
    const near = this.words
      .map(known => ({ known, far: distance(typed, known.toLowerCase()) }))
      .sort((a, b) => a.far - b.far)[0]
    return near.far <= most ? near.known : null
  }
}

// How many letters are to be changed, added or left out.
function distance(/** @type {string} */ a, /** @type {string} */ b) {
  let before = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++)
      row.push(Math.min(before[j] + 1, row[j - 1] + 1, before[j - 1] + Number(a[i - 1] !== b[j - 1])))
    before = row
  }
  return before[b.length]
}
