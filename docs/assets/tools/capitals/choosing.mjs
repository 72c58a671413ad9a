// How a next token is chosen: the buttons and the fields of it.

import { html, labelled } from "../view.mjs"

/**
 * @typedef {"temperature" | "top_k" | "top_p"} Name
 * @param {object} how
 * @param {string} how.one what the text is made of
 * @param {boolean} how.isAtEnd whether none can follow
 * @param {boolean} how.isWhole whether none was added
 * @param {string} how.temperature
 * @param {(name: Name) => string | undefined} how.valueOf a field
 * @param {{ next: () => void, draw: () => void, remove: () => void }} doing
 */
export function choosing({ one, isAtEnd, isWhole, temperature, valueOf }, { next, draw, remove }) {
  const button = (/** @type {string} */ text, /** @type {boolean} */ isOff, /** @type {() => void} */ does) =>
    html`<button type="button" disabled=${isOff} onclick=${does}>${text}</button>`
  const field = (/** @type {string} */ type, /** @type {Name} */ name, /** @type {object} */ more) =>
    html`<input type=${type} name=${name} value=${valueOf(name)} ...${more} />`
  return [
    button(`Next ${one}`, isAtEnd, next),
    button(`Draw a ${one}`, isAtEnd, draw),
    button(`Remove last ${one}`, isWhole, remove),
    labelled(
      html`<span>${"Temperature "}<span>${temperature}</span></span>`,
      field("range", "temperature", { min: "0.1", max: "3", step: "0.1" }),
    ),
    labelled("Top-k", field("number", "top_k", { min: "1", step: "1", placeholder: "all" })),
    labelled("Top-p", field("number", "top_p", { min: "0.01", max: "1", step: "0.01", placeholder: "1" })),
  ]
}
