// The pieces that a published tokenizer cuts a text into.

const BYTES = 256,
  SHIFT = 2 ** 20 // above every id: two of them make one key
/**
 * @typedef {{ id: number, content: Uint8Array }} Piece
 * @typedef {{ joins: Map<number, number>, contents: Uint8Array[], pattern: RegExp }} Merges
 */

// The bytes by their token ids, the printable ones first.
const byId = Array.from({ length: BYTES }, (_, byte) => byte),
  isPrintable = (/** @type {number} */ byte) =>
    (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte < 0x100 && byte !== 0xad)
byId.sort((a, b) => Number(isPrintable(b)) - Number(isPrintable(a)) || a - b)
const idOf = byId.map((_, byte) => byId.indexOf(byte))

/**
 * The merges of a file: `macros/catalogue/merges.py` says how it is written.
 * @param {Uint8Array} planes
 * @param {string} pattern of what is never joined with its neighbors
 * @returns {Merges}
 */
export function mergesOf(planes, pattern) {
  const n = planes.length / 6,
    id = (/** @type {number} */ i, /** @type {number} */ from) =>
      planes[from + i] + planes[from + n + i] * BYTES + planes[from + 2 * n + i] * BYTES ** 2
  const contents = byId.map(byte => Uint8Array.of(byte)),
    joins = new Map()
  for (let i = 0; i < n; i++) {
    const left = id(i, 0),
      right = id(i, 3 * n)
    joins.set(left * SHIFT + right, BYTES + i)
    const whole = new Uint8Array(contents[left].length + contents[right].length)
    whole.set(contents[left])
    whole.set(contents[right], contents[left].length)
    contents.push(whole)
  }
  const unicode = pattern.replaceAll("\\s", "\\p{White_Space}").replaceAll("\\S", "\\P{White_Space}")
  return { joins, contents, pattern: new RegExp(unicode, "gu") }
}

/** The tokens of a text. @param {Merges} merges @param {string} text @returns {Piece[]} */
export function cut({ joins, contents, pattern }, text) {
  const ids = [...text.matchAll(pattern)].flatMap(([piece]) => joined(joins, new TextEncoder().encode(piece)))
  return ids.map(id => ({ id, content: contents[id] }))
}
/** @param {Map<number, number>} joins @param {Uint8Array} piece */
function joined(joins, piece) {
  const ids = Array.from(piece, byte => idOf[byte]),
    made = (/** @type {number} */ i) => joins.get(ids[i] * SHIFT + ids[i + 1]) ?? Infinity
  for (;;) {
    let first = 0
    for (let i = 1; i < ids.length - 1; i++) if (made(i) < made(first)) first = i
    if (made(first) === Infinity) return ids
    ids.splice(first, 2, made(first))
  }
}

const whole = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
/** Its characters, or its bytes where they are not whole ones. @param {Uint8Array} content */
function said(content) {
  try {
    return whole.decode(content).replaceAll(" ", "·").replaceAll("\n", "↵").replaceAll("\t", "⇥")
  } catch {
    return Array.from(content, byte => byte.toString(16).padStart(2, "0").toUpperCase()).join(" ")
  }
}
/**
 * What is shown of a text.
 * @param {DOMStringMap} row of a vocabulary
 * @param {Merges | undefined} known once it is loaded
 * @param {string} text
 */
export function answer({ of = "", merges = "" }, known, text) {
  const pieces = known ? cut(known, text) : [],
    count = known ? `${pieces.length} token${pieces.length === 1 ? "" : "s"}` : "not loaded"
  return {
    title: `${of}, ${Number(merges).toLocaleString("en")} merges: ${count}`,
    pieces: pieces.map(({ id, content }) => ({ id, said: said(content) })),
  }
}
