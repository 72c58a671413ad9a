// The keys of a list of options that a field opens.

const COMBOBOX = "../vendor/combobox-nav.mjs" // not ours: it is not looked into for types
/** @typedef {{ start: () => void, stop: () => void }} Moves */

/**
 * What moves through the options of a list by the keys of a field, while it is started; the list says what is taken by
 * a `combobox-commit` of the option.
 * @param {HTMLInputElement} field
 * @param {HTMLElement} list
 * @param {"active" | "none"} first whether Enter takes the first option if no other was moved to
 * @returns {Promise<Moves>}
 */
export async function combobox(field, list, first) {
  const { default: Combobox } = await import(COMBOBOX)
  return new Combobox(field, list, { tabInsertsSuggestions: false, firstOptionSelectionMode: first })
}
