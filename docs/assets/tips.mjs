// Loads the explanations of words and symbols on the first pointer move. By then, the pointer may be elsewhere.
const load = async (/** @type {PointerEvent} */ { target }) => {
  const { over } = await import("./explained.mjs")
  over([...document.querySelectorAll(":hover")].at(-1) ?? target)
}
addEventListener("pointerover", load, { once: true })
