// The atlas, with a model of the reader's own if the address has its config. Without one nothing more is loaded.

/** @param {HTMLElement} place */
export function mount(place) {
  const still = [...place.childNodes]
  async function recall() {
    if (!place.isConnected) return removeEventListener("hashchange", recall)
    if (!location.hash.startsWith("#config=")) return
    const { marked } = await import("./atlas/mark.mjs")
    await marked(place, still)
  }
  addEventListener("hashchange", recall)
  return recall()
}
