// Explains, on a page opened from disk, that modules cannot run there: in place of a filter, above a tool, and below
// the home page's search field. Removes the space that is reserved for what modules add.
{
  const HELP = "run “python3 -m http.server” in the folder of the site and open http://localhost:8000."
  const said = (/** @type {string} */ words) =>
    Object.assign(document.createElement("p"), { className: "ep-problem", textContent: words })

  const asked = new URLSearchParams(location.search).get("find")
  const listed = asked ? `everything is listed, not only “${asked}”` : "everything is listed"
  for (const form of document.querySelectorAll(".ep-filter"))
    form.replaceWith(
      said(`From a disk, no filter runs: ${listed}. Your browser’s own search finds a name. To filter, ${HELP}`),
    )
  for (const place of document.querySelectorAll("[data-compare]")) place.removeAttribute("data-compare")
  for (const form of document.querySelectorAll(".ep-ask"))
    form.after(said(`From a disk, no search runs: “Look up” leads to the list of all models. To search, ${HELP}`))
  for (const tool of document.querySelectorAll(".ep-tool:not([data-tool=station])")) {
    const shown = tool.querySelector("table, figure") ? "an example" : "the command that does the same"
    tool.prepend(said(`From a disk, your browser runs no tool, so you see ${shown}. To use the tool, ${HELP}`))
  }
}
