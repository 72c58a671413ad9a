// Opens the search; its code and index are fetched on first use. Not a module, because a page opened from disk cannot
// load one: there, the link in the header still leads to all models, as it does without scripts.
{
  const script = /** @type {HTMLScriptElement} */ (document.currentScript).src,
    root = new URL("../../", script)
  /** @type {HTMLAnchorElement?} */
  const link = document.querySelector(".ep-search-link")
  const catalogue = link?.href ?? ""
  /** @type {Promise<(question?: string) => void> | undefined} */
  let show

  /** @param {string} [question] */
  const open = async question => {
    try {
      show ??= import(`${new URL("dialog.mjs", script)}`).then(({ make }) => make(root, catalogue))
      ;(await show)(question)
    } catch (error) {
      console.warn(error)
      location.href = catalogue
    }
  }

  if (!location.protocol.startsWith("http")) {
    link?.setAttribute("data-lists", "")
    const disk = Object.assign(document.createElement("script"), { src: `${new URL("disk.js", script)}` })
    document.head.append(disk)
  } else if (link) {
    link.href = catalogue // whole, for it stays while pages change
    link.addEventListener("click", event => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return
      event.preventDefault()
      event.stopPropagation() // or the theme goes there
      open()
    })
    // The field on the home page; without scripts it leads to all models.
    addEventListener("submit", event => {
      const form = event.target
      if (!(form instanceof HTMLFormElement) || !form.matches(".ep-ask")) return
      event.preventDefault()
      open(`${new FormData(form).get("find")}`)
    })
    addEventListener("keydown", event => {
      const isTyping =
        event.target instanceof Element && event.target.closest("input, select, textarea, [contenteditable]")
      const isAsked = event.key === "k" && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey
      if (!isAsked && (isTyping || event.ctrlKey || event.metaKey || event.altKey || event.key !== "/")) return
      event.preventDefault()
      open()
    })
  }
}
