// Where each word looks: all heads of the small model over a text, from the numbers of the page or from the model.

export const LONGEST = 400 // characters of a text
/**
 * @typedef {(number | null)[][]} Shares of one head: a row for each word; null for a later word, which it cannot see
 * @typedef {{ words: string[], heads: Shares[] }} Looks of all heads over a text, layer by layer
 * @typedef {import("../capitals/small.mjs").Small} Small
 * @typedef {{ text: string, word: string, head: string }} Chosen
 */

const square = (/** @type {number} */ n, /** @type {(i: number, j: number) => number} */ of) =>
  Array.from({ length: n }, (_, i) => Array.from({ length: n }, (_, j) => (j > i ? null : of(i, j))))

/** The numbers that the page was served with. @param {DOMStringMap} of @returns {Looks} */
export function served({ words = "", shares = "" }) {
  const all = words.split("|"),
    heads = shares.split(",").map(one => {
      const numbers = one.split(" ").map(Number)
      return square(all.length, (i, j) => numbers[(i * (i + 1)) / 2 + j])
    })
  return { words: all, heads }
}

/** @param {Small} small @param {string[]} words @param {number[]} ids @returns {Looks} */
export function computed({ session, config }, words, ids) {
  session.run(ids)
  const head = (/** @type {number} */ n) => `${Math.floor(n / config.n_head)}/${n % config.n_head}`,
    heads = Array.from({ length: config.n_layer * config.n_head }, (_, n) =>
      square(words.length, (i, j) => session.number(`share/${head(n)}/${i}/${j}`)),
    )
  return { words, heads }
}

/** The names of the heads, as "layer.head". @param {string[]} habits of each @param {number} layers */
export const namesOf = (habits, layers) => {
  const perLayer = habits.length / layers
  return habits.map((_, n) => `${Math.floor(n / perLayer)}.${n % perLayer}`)
}
/** @param {string[]} names @returns {Record<string, import("../address.mjs").Rule>} */
export const rulesOf = names => ({
  text: text => text.slice(0, LONGEST),
  word: text => `${Math.max(1, Math.floor(Number(text)) || 1)}`,
  head(text) {
    if (!names.includes(text)) throw new Error(`head = ${text.slice(0, 20)}: there is none; choose one of ${names}`)
    return text
  },
})
/**
 * The chosen head, and the word at which the chosen one looks most; without a choice, the last word's.
 * @param {Looks} looks
 * @param {Chosen} chosen
 * @param {string[]} names
 */
export function answer({ words, heads }, { word, head }, names) {
  const n = names.indexOf(head),
    row = Math.min(Number(word) || words.length, words.length) - 1,
    own = /** @type {number[]} */ (heads[n][row].slice(0, row + 1)),
    most = own.indexOf(Math.max(...own)),
    [layer, of] = head.split(".")
  return { n, row, most, share: own[most], name: `Layer ${layer}, head ${of}` }
}
