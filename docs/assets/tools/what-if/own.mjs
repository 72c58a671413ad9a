// A config.json of the reader's own, and a list of its tensors: read here, never uploaded; or the config of a model by
// its name.

import { BOUNDS, described, loadFormats, parsed, Problem, py, shorten, textOf, WEIGHTS } from "../../model.mjs"
import { about, json } from "../kit.mjs"
import { held, textOf as typedIn } from "../tool.mjs"
import { html, labelled } from "../view.mjs"

const names = () => import("./names.mjs") // once one names a model
const NO_NAME = { name: "", title: "", waiting: "", note: "" }

const TAKEN = ".json,.gguf,application/json"
const isGguf = async (/** @type {File} */ file) =>
  file.name.toLowerCase().endsWith(".gguf") || (await file.slice(0, 4).text()) === "GGUF"

/** @returns {Engine.Keys} of a config.json; throws if it is not one */
export function keysIn(/** @type {string} */ text) {
  const value = parsed(text)
  if (value instanceof py.Dict) return value
  throw Problem(`expected a JSON object, found ${shorten(value)}`, "give a whole config.json")
}

/**
 * The fields for a config, and what is read of them.
 * @param {() => import("../tool.mjs").Begun} tool
 */
export function ownConfig(tool) {
  /** @type {{ listed: import("../tensors.mjs").Tensors?, reconciled?: typeof import("../tensors.mjs").reconciled }} */
  const file = { listed: null }
  /** @type {Engine.Keys?} */
  let readOf = null
  /** @type {Promise<Engine.Keys>?} */
  let readAs = null
  /** @type {Map<string, { own: Engine.Keys, text: string, listed: import("../tensors.mjs").Tensors? }>} */
  const fromHub = new Map()
  /** @type {{ own: Engine.Keys, known: Partial<import("../figures.mjs").Listed> } | undefined} */
  let ofCatalog
  /** @type {import("../../model.mjs").Stored?} */
  let ofFile = null
  const isNew = { set: new Map(), way: null }
  function take(/** @type {string} */ text, /** @type {EventTarget?} */ field = null) {
    Object.assign(tool().shown.values, { text })
    const own = text.trim() ? keysIn(text) : null // what is not a config leaves the last
    return tool().change({ own, ...isNew, ...NO_NAME }, field)
  }
  /** Looks for the model that one names; what is none leaves the last. */
  async function look() {
    const { shown } = tool(),
      name = typedIn(shown, "name").trim()
    if (!name) return
    await (await names()).meant(name)
    await tool().change({ ...isNew, ...NO_NAME, own: null, text: "", name, weights: "published" })
  }
  /** Asks the hub, as the reader said. */
  async function ask() {
    const { values } = tool().shown,
      { waiting } = values
    Object.assign(values, { isAsking: true })
    tool().draw()
    try {
      const { text, listed } = await (await names()).fromHub(waiting)
      fromHub.set(waiting, { own: keysIn(text), text, listed })
      if (values.waiting === waiting) await tool().change({ ...isNew, waiting: "", note: "" })
    } finally {
      Object.assign(values, { isAsking: false })
      tool().draw()
    }
  }
  /** The config of the model that is named, or who would be asked for it. */
  async function named(/** @type {any} */ values) {
    const { meant, host, others } = await names(),
      { name } = values,
      { slug, title, format, why, repository } = await meant(name),
      known = slug ? await about(slug) : null,
      got = known ? { own: known.keys, text: json(known.keys), listed: null } : fromHub.get(repository)
    if (values.name !== name) return // another one by now
    if (!got) {
      const files = others().length ? `the headers of its weights, which ${others().join(" and ")} may have` : "",
        what = ["its config.json", files || "its list of tensors"].join(" and "),
        has = `${host()} has to be asked for ${what}, and sees your address then`,
        note = `${repository} is not in the catalog. ${has}.`
      return void Object.assign(values, { waiting: repository, host: host(), note })
    }
    const { own, text, listed } = got,
      isOther = format && WEIGHTS.has(format) && values.weights === "published",
      said = known ? `${name}: ${title}${format ? ` in ${format}` : ""}${why ? ` (${why})` : ""}` : ""
    if (known) ofCatalog = { own, known }
    Object.assign(values, { own, text, title, note: said && `${said}.`, waiting: "" })
    if (isOther) Object.assign(values, { weights: format })
    if (listed) Object.assign(file, { reconciled: (await import("../tensors.mjs")).reconciled })
    file.listed = listed
    await loadFormats(values.weights)
  }
  /** What an event does, whose problem is said. @param {(target: any) => unknown} does */
  const doing = does => async (/** @type {Event} */ event) => {
    try {
      await does(event.target)
    } catch (error) {
      tool().refuse(error)
    }
  }
  async function read(/** @type {File[]} */ chosen) {
    const [first] = chosen
    if (!first) return
    if (!(await isGguf(first))) return take(await textOf(first, BOUNDS.LARGEST_TEXT))
    const { opened, compared } = await import("./gguf.mjs"),
      { own, stored, listed } = await opened(chosen)
    ofFile = stored
    Object.assign(file, { reconciled: compared, listed })
    await tool().change({ own, text: json(own), ...isNew, ...NO_NAME, weights: "published" })
  }
  async function list(/** @type {File[]} */ [chosen]) {
    const { tensorList, reconciled } = await import("../tensors.mjs")
    Object.assign(file, { reconciled, listed: chosen ? await tensorList(chosen) : null })
    await tool().change({})
  }
  function drop(/** @type {DragEvent} */ event) {
    const dropped = [...(event.dataTransfer?.files ?? [])]
    if (dropped.length) event.preventDefault()
    doing(() => read(dropped))(event)
  }
  return {
    file,
    /** The keys of the reader's config, read once. @returns {Promise<Partial<import("../figures.mjs").Listed>>} */
    async keysOf(/** @type {any} */ values) {
      if (values.name && !values.own) await named(values)
      const { own } = values
      if (own && ofCatalog && own === ofCatalog.own) return ofCatalog.known
      if (own && own !== readOf) {
        readOf = own
        readAs = described(own)
      }
      const keys = (own && (await readAs)) ?? undefined,
        isOfFile = keys && ofFile?.json === json(own)
      if (ofFile && !isOfFile && file.listed && !(file.listed instanceof Map)) file.listed = null
      return { keys, stored: (isOfFile && ofFile) || undefined }
    },
    fields(/** @type {import("../tool.mjs").Shown} */ shown) {
      const { values } = shown,
        enter = (/** @type {KeyboardEvent} */ event) => {
          if (event.key !== "Enter") return
          event.preventDefault()
          doing(look)(event)
        }
      const area = html`<textarea name="config" rows="8" spellcheck=${false} value=${values.text}
        placeholder=${'{"model_type": "llama", …}'} oninput=${doing(field => take(field.value, field))}
        ondragover=${(/** @type {Event} */ event) => event.preventDefault()} ondrop=${drop} />`
      const chooser = (/** @type {string} */ accept, /** @type {(files: File[]) => unknown} */ take, many = false) =>
        html`<input type="file" accept=${accept} multiple=${many}
          onchange=${doing(({ files }) => take([...(files ?? [])]))} />`
      return html`<div class="ep-drop">
        <div class="ep-row">
          ${labelled(
            "Name or address of a model",
            html`<input type="text" ...${held(shown, "name")} placeholder="Qwen/Qwen3-8B" size="30" maxlength="300"
              spellcheck=${false} autocomplete="off" onkeydown=${enter} />`,
          )}
          <button type="button" onclick=${doing(look)}>Look up</button>
        </div>
        ${
          values.note &&
          html`<p class="ep-note" role="status">
          ${values.note}
          ${
            values.waiting &&
            html` <button type="button" disabled=${values.isAsking} onclick=${doing(ask)}>
            ${values.isAsking ? "Asking …" : `Ask ${values.host}`}
          </button>`
          }
        </p>`
        }
        ${labelled("Paste a config.json, drop it here, or choose a file", area)}
        <div class="ep-row">
          ${labelled("config.json file or GGUF file, in parts too (only headers are read)", chooser(TAKEN, read, true))}
          ${labelled(
            "Tensor list: model.safetensors.index.json or a .safetensors file (only its header is read)",
            chooser(".json,.safetensors", list),
          )}
        </div>
      </div>`
    },
  }
}
