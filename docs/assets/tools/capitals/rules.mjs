// What an address may ask of a model that runs: each value, or what is wrong with it.

export const LONGEST = 400 // characters of a text

// A text for a message, with every character visible.
export const quoted = (/** @type {string} */ text) =>
  JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text).replace(/[\p{C}\p{Z}]/gu, c =>
    c === " " ? c : `\\u{${c.codePointAt(0)?.toString(16)}}`,
  )
/**
 * @param {string} name
 * @param {string} text
 * @param {string[]} known
 */
export function oneOf(name, text, known) {
  if (known.includes(text)) return text
  throw new Error(`${name} = ${quoted(text)}: not in the list`)
}

/**
 * @param {string} name
 * @param {string} text
 * @param {number} [longest]
 */
export function short(name, text, longest = LONGEST) {
  if (text.length <= longest) return text
  throw new Error(`${name} = ${quoted(text)}: longer than ${longest} characters`)
}

/**
 * @param {string} name
 * @param {string} text
 * @param {number} least
 * @param {number} most
 */
export function within(name, text, least, most, isWhole = false) {
  const number = Number(text)
  if (text && number >= least && number <= most && (!isWhole || Number.isInteger(number))) return `${number}`
  throw new Error(
    `${name} = ${quoted(text)}: expected a ${isWhole ? "whole number" : "number"} from ${least} to ${most}`,
  )
}
