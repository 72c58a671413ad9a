// A page of a tool loads the tool's own script, and with it the engine; no other page does.

const TOOLS = { "what-if": "what-if", config: "what-if", compare: "compare" }

async function start() {
  for (const place of document.querySelectorAll(".ep-tool:not([data-mounted])")) {
    place.dataset.mounted = "true"
    const { mount } = await import(`./tools/${TOOLS[place.dataset.tool]}.mjs`)
    await mount(place)
  }
}

const now = () => globalThis.document$ ? document$.subscribe(start) : start()
document.readyState === "complete" ? now() : addEventListener("load", now, { once: true })
