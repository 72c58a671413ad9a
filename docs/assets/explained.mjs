// Explains a word or a symbol when it is hovered over or touched. All share one box, created on first use, because a
// page has hundreds of symbols. Without this script, the browser shows the same text as a tooltip to mouse users.

const tip = Object.assign(document.createElement("div"), { className: "ep-tip", popover: "manual" })
/** @type {HTMLElement?} */
let explained = null

function explain(/** @type {HTMLElement?} */ what) {
  if (what === explained) return
  if (explained) explained.title = tip.textContent
  explained = what
  if (!what) return tip.remove()
  tip.textContent = what.title
  what.removeAttribute("title") // else the browser shows it too
  document.body.append(tip)
  tip.showPopover()
  const { left, width, top, bottom } = what.getBoundingClientRect(),
    { clientWidth, clientHeight } = document.documentElement
  tip.style.left = `${Math.max(8, Math.min(left + (width - tip.offsetWidth) / 2, clientWidth - tip.offsetWidth - 8))}px`
  tip.style.top = `${bottom + tip.offsetHeight > clientHeight ? top - tip.offsetHeight : bottom}px`
}

/** Explains the word under the pointer. Moving from the word into its explanation keeps the box open. */
export function over(/** @type {EventTarget?} */ target) {
  const at = target instanceof Element ? target : null
  if (at !== tip && !(at && explained?.contains(at))) explain(at?.closest(".md-content :is(abbr, var)[title]") ?? null)
}
addEventListener("pointerover", ({ target }) => over(target))
addEventListener("keydown", ({ key }) => key === "Escape" && explain(null))
addEventListener("scroll", () => explain(null), { capture: true, passive: true })
