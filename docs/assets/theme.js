// What the theme's templates leave to a script: the colors, the header, the lists beside the text, the drawer, buttons
// that copy, the width of tables. It replaces the theme's own script, which took about four times as long to start. No
// module: it runs from a disk, too.

{
  const all = (/** @type {string} */ selector, /** @type {ParentNode} */ within = document) =>
    /** @type {HTMLElement[]} */ ([...within.querySelectorAll(selector)])
  const one = (/** @type {string} */ selector, /** @type {ParentNode} */ within = document) =>
    /** @type {HTMLElement?} */ (within.querySelector(selector))

  // Runs after the changes have been painted; measuring anything earlier would force a layout.
  const settled = (/** @type {() => void} */ look) => requestAnimationFrame(() => setTimeout(look))

  // Colors: the user's choice or the system's.

  function palette() {
    const form = one("[data-md-component=palette]")
    if (!form) return
    const options = /** @type {HTMLInputElement[]} */ (all("input", form)),
      meta = document.head.appendChild(Object.assign(document.createElement("meta"), { name: "theme-color" }))
    let now = globalThis.__md_colors()
    function show() {
      globalThis.__md_colors(now)
      options.forEach((option, n) => {
        option.checked = n === now
        const label = option.nextElementSibling
        if (label instanceof HTMLElement) label.hidden = n !== now
      })
      settled(() => (meta.content = getComputedStyle(one(".md-header") ?? document.body).backgroundColor))
    }
    form.addEventListener("change", ({ target }) => {
      now = options.findIndex(option => option === target)
      globalThis.__md_set("__palette", { index: now })
      show()
    })
    form.addEventListener("keydown", event => {
      if (event.key !== "Enter") return
      event.preventDefault()
      options[(now + 1) % options.length].focus()
      options[(now + 1) % options.length].click()
    })
    matchMedia("(prefers-color-scheme: light)").addEventListener("change", show)
    show()
  }

  // The header has the page's title once the heading is above it; a way back to the top while one scrolls up.

  function header() {
    const bar = one(".md-header"),
      title = one("[data-md-component=header-title]"),
      heading = one(".md-content h1"),
      top = one("[data-md-component=top]")
    if (!bar) return
    if (title && heading)
      new IntersectionObserver(
        ([{ isIntersecting, boundingClientRect }]) =>
          title.classList.toggle(
            "md-header__title--active",
            !isIntersecting && boundingClientRect.top < bar.offsetHeight,
          ),
        { rootMargin: `-${bar.offsetHeight}px 0px 0px` },
      ).observe(heading)
    if (!top) return
    let last = scrollY
    addEventListener(
      "scroll",
      () => {
        top.hidden = !(scrollY < last && scrollY > 2 * bar.offsetHeight)
        last = scrollY
      },
      { passive: true },
    )
    top.addEventListener("click", () => scrollTo({ top: 0 }))
  }

  // The list of a page's headings follows: those above are passed, the last of them is where one is.

  function headings() {
    const list = one(".md-sidebar--secondary"),
      bar = one(".md-header")
    if (!list || !bar) return
    /** @type {[link: HTMLElement, heading: HTMLElement][]} */
    const entries = []
    for (const link of all(".md-nav__link[href*='#']", list)) {
      const heading = document.getElementById(decodeURIComponent(/** @type {HTMLAnchorElement} */ (link).hash.slice(1)))
      if (heading) entries.push([link, heading])
    }
    let waits = false,
      active = -1
    function follow() {
      waits = false
      if (!list?.clientWidth || !bar) return // a narrow screen has no such list
      const line = 1.8 * bar.offsetHeight, // a heading that a link led to stands above it
        atEnd = scrollY > 0 && scrollY + innerHeight >= document.documentElement.scrollHeight - 1,
        passed = atEnd
          ? entries.length
          : entries.findLastIndex(([, heading]) => heading.getBoundingClientRect().top < line) + 1
      if (passed - 1 === active) return
      active = passed - 1
      entries.forEach(([link], n) => {
        link.classList.toggle("md-nav__link--passed", n <= active)
        link.classList.toggle("md-nav__link--active", n === active)
      })
      if (active >= 0) center(entries[active][0])
    }
    const soon = () => {
      if (waits) return
      waits = true
      requestAnimationFrame(follow)
    }
    if (!entries.length) return
    addEventListener("scroll", soon, { passive: true })
    addEventListener("resize", soon, { passive: true })
    soon()
  }

  // Scrolls the current page's link to the middle of its list if it is out of view.
  function center(/** @type {HTMLElement} */ link) {
    const box = link.closest(".md-sidebar__scrollwrap")
    if (!box || box.scrollHeight <= box.clientHeight) return
    const [outer, inner] = [box.getBoundingClientRect(), link.getBoundingClientRect()]
    if (inner.top < outer.top || inner.bottom > outer.bottom)
      box.scrollTop += inner.top - outer.top - box.clientHeight / 2
  }

  // The parts of the site, and on a narrow screen the drawer that they are in.

  function navigation() {
    const drawer = /** @type {HTMLInputElement?} */ (document.getElementById("__drawer")),
      side = one(".md-sidebar--primary")
    // Skip closed lists: measuring them would force a layout that the browser has skipped.
    if (side && side.getBoundingClientRect().right > 0)
      for (const link of all(".md-nav__link--active[href]", side)) if (link.clientHeight) center(link)
    side?.addEventListener("change", ({ target }) => {
      if (target instanceof HTMLInputElement)
        target.parentElement?.querySelector(":scope > nav")?.setAttribute("aria-expanded", String(target.checked))
    })
    side?.addEventListener("click", ({ target }) => {
      if (drawer && target instanceof Element && target.closest("a[href]")) drawer.checked = false
    })
  }

  // Keyboard shortcuts for the previous and next page and for the sidebars.

  function keys() {
    const drawer = /** @type {HTMLInputElement?} */ (document.getElementById("__drawer"))
    addEventListener("keydown", event => {
      const at = document.activeElement
      if (event.metaKey || event.ctrlKey || event.altKey || event.defaultPrevented) return
      if (event.key === "Escape" && drawer) drawer.checked = false
      if (event.key === "Enter" && at instanceof HTMLLabelElement) at.click()
      if (at instanceof HTMLElement && (at.isContentEditable || at.matches("input, select, textarea, dialog *"))) return
      const rel = { p: "prev", ",": "prev", n: "next", ".": "next" }[event.key],
        link = /** @type {HTMLLinkElement?} */ (rel ? one(`link[rel=${rel}]`) : null)
      if (link) location.href = link.href
    })
  }

  // In the text.

  function text(/** @type {HTMLElement} */ content) {
    for (const table of all("table:not([class])", content)) {
      if (table.closest(".md-typeset__table")) continue
      const frame = made("div", "md-typeset__scrollwrap"),
        inner = frame.appendChild(made("div", "md-typeset__table"))
      table.replaceWith(frame)
      inner.append(table)
    }
    const copied = location.protocol === "file:" ? [] : all("pre > code", content) // from a disk, no module comes
    for (const code of copied) {
      const button = made("button", "md-code__button")
      button.title = "Copy to clipboard"
      button.dataset.mdType = "copy"
      button.addEventListener("click", async () => {
        const { copy } = await import("./tables.mjs")
        await copy(code.textContent ?? "")
        tell("Copied to clipboard")
      })
      const place = made("div", "md-code__nav")
      place.append(button)
      code.before(place)
    }
    for (const tabs of all(".tabbed-set", content)) {
      const labels = one(".tabbed-labels", tabs)
      const mark = () => {
        const label = one(`label[for="${one(":scope > input:checked", tabs)?.id}"]`, tabs)
        labels?.style.setProperty("--md-indicator-x", `${label?.offsetLeft}px`)
        labels?.style.setProperty("--md-indicator-width", `${label?.offsetWidth}px`)
      }
      tabs.addEventListener("change", mark)
      new ResizeObserver(mark).observe(tabs)
    }
  }

  function made(/** @type {string} */ kind, /** @type {string} */ name) {
    const element = document.createElement(kind)
    element.className = name
    return element
  }

  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let said
  function tell(/** @type {string} */ words) {
    const dialog = one("[data-md-component=dialog]"),
      inner = dialog && one(".md-dialog__inner", dialog)
    if (!dialog || !inner) return
    dialog.role = "status"
    inner.textContent = words
    dialog.classList.add("md-dialog--active")
    clearTimeout(said)
    said = setTimeout(() => dialog.classList.remove("md-dialog--active"), 2000)
  }

  // Opens a `details` for a link into it, and for printing.

  function folded() {
    const reveal = () => {
      const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)))
      if (!target || !target.closest("details:not([open])")) return
      for (let box = target.closest("details"); box; box = box.parentElement?.closest("details") ?? null)
        box.open = true
      target.scrollIntoView()
    }
    /** @type {HTMLDetailsElement[]} */
    let opened = []
    addEventListener("hashchange", reveal)
    addEventListener("beforeprint", () => {
      opened = /** @type {HTMLDetailsElement[]} */ (all(".md-content details:not([open])"))
      for (const box of opened) box.open = true
    })
    addEventListener("afterprint", () => {
      for (const box of opened.splice(0)) box.open = false
    })
    reveal()
  }

  const content = one(".md-content")
  document.documentElement.classList.replace("no-js", "js")
  palette()
  if (content) text(content)
  folded()
  keys()
  settled(() => {
    header()
    headings()
    navigation()
  })
}
