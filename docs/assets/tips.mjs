// The explanations of words and symbols, which the first move of a pointer loads. By then it may be elsewhere.
const load = async (/** @type {PointerEvent} */ { target }) => {
  const { over } = await import("./explained.mjs")
  over([...document.querySelectorAll(":hover")].at(-1) ?? target)
}
addEventListener("pointerover", load, { once: true })
