// A page with a walk loads the stepper. A page of a tool loads the tool's own script, and with it what that needs; no
// other page does. Tables of models lead there.

// Tools whose script has a different name.
/** @type {Record<string, string>} */
const SCRIPTS = { config: "what-if", station: "stations" }

// Counting takes many modules; each runs separately, so that the page stays responsive.
/** @type {Record<string, string>} */
const COUNTS = {
  "what-if": "counting",
  config: "counting",
  compare: "counting",
  plan: "counting",
  log: "counting",
  fits: "fitting",
}
async function begin(/** @type {string} */ name) {
  const [{ M }, { paced }] = await Promise.all([
    import("./engine/base.mjs"),
    import("./problems.mjs"),
    import(`./engine/${name}.mjs`),
  ])
  const rest = paced(8)
  for (const one of Object.keys(M)) {
    void Reflect.get(M, one)
    await rest()
  }
}

async function start() {
  /** @type {NodeListOf<HTMLOListElement>} */
  const walks = document.querySelectorAll("ol.ep-walk:not([data-stepper]):has(li.ep-step)")
  if (walks.length) {
    const { mount } = await import("./stepper.mjs")
    walks.forEach((walk, i) => mount(walk, i + 1))
  }
  /** @type {NodeListOf<HTMLTableElement>} */
  const tables = document.querySelectorAll(":is(.ep-catalogue, .ep-changes):not([data-ticks])")
  tables.forEach(ticks)
  /** @type {NodeListOf<HTMLElement>} */
  const places = document.querySelectorAll(".ep-tool:not([data-mounted])")
  for (const place of places) {
    place.dataset.mounted = "true"
    const tool = place.dataset.tool ?? ""
    if (COUNTS[tool]) await begin(COUNTS[tool])
    const { mount } = await import(`./tools/${SCRIPTS[tool] ?? tool}.mjs`)
    await mount(place)
  }
}

const now = () => (globalThis.document$ ? globalThis.document$.subscribe(start) : start())
if (document.readyState === "complete") now()
else addEventListener("load", now, { once: true })

// In a table of models, checking two to four leads to their comparison.
const MOST = 4

function ticks(/** @type {HTMLTableElement} */ table) {
  /** @type {HTMLElement?} */
  const place = table.closest("[data-compare]"),
    compare = place?.dataset.compare
  if (!compare) return // a site without that page
  table.dataset.ticks = "true"
  /** @type {Set<string>} */
  const chosen = new Set(),
    said = document.createElement("p")
  said.className = "ep-chosen"
  said.setAttribute("role", "status")
  const slug = (/** @type {HTMLAnchorElement} */ { pathname }) =>
    (pathname.split("/").filter(Boolean).at(-1) ?? "").replace(/\.html$/, "")
  for (const row of [...table.tBodies].flatMap(body => [...body.rows])) {
    /** @type {HTMLAnchorElement | null | undefined} */
    const link = row.cells[0]?.querySelector("a[href]")
    if (!link) continue
    const box = Object.assign(document.createElement("input"), { type: "checkbox", className: "ep-tick" })
    box.setAttribute("aria-label", `Compare ${link.textContent.trim()}`)
    box.addEventListener("change", () => {
      if (box.checked) chosen.add(slug(link))
      else chosen.delete(slug(link))
      const way = Object.assign(document.createElement("a"), {
        href: `${compare}?models=${[...chosen].join()}`,
        textContent: `Compare the ${chosen.size} selected models`,
      })
      said.replaceChildren(
        ...(chosen.size < 2
          ? [chosen.size ? "One model is selected. Select another to compare them." : ""]
          : chosen.size > MOST
            ? [`${chosen.size} models are selected. You can compare at most ${MOST}.`]
            : [way]),
      )
    })
    row.cells[0].prepend(box)
  }
  ;(table.closest(".ep-scroll") ?? table).after(said)
}
