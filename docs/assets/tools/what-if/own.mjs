// A config.json of the reader's own, and a list of its tensors: read here, never uploaded; or the config of a model by
// its name.

import { BOUNDS, described, loadFormats, parsed, Problem, py, shorten, textOf, WEIGHTS } from "../../model.mjs"
import { about, json } from "../kit.mjs"
import { held, textOf as typedIn } from "../tool.mjs"
import { html, labelled, stay } from "../view.mjs"

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
const IS_NEW = { set: new Map(), way: null }

/** The fields for a config, and what is read of them. */
export class OwnConfig {
  /** @type {{ listed: import("../tensors.mjs").Tensors?, reconciled?: typeof import("../tensors.mjs").reconciled }} */
  file = { listed: null }
  /** @type {Engine.Keys?} */
  readOf = null
  /** @type {Promise<Engine.Keys>?} */
  readAs = null
  /** @type {Map<string, { own: Engine.Keys, text: string, listed: import("../tensors.mjs").Tensors? }>} */
  fromHub = new Map()
  /** @type {{ own: Engine.Keys, known: Partial<import("../figures.mjs").Listed> } | undefined} */
  ofCatalog
  /** @type {import("../../model.mjs").Stored?} */
  ofFile = null
  /** @param {() => import("../tool.mjs").Begun} tool */
  constructor(tool) {
    this.tool = tool
  }
  take(/** @type {string} */ text, /** @type {EventTarget?} */ field = null) {
    Object.assign(this.tool().shown.values, { text })
    const own = text.trim() ? keysIn(text) : null // what is not a config leaves the last
    return this.tool().change({ own, ...IS_NEW, ...NO_NAME }, field)
  }
  /** Looks for the model that one names; what is none leaves the last. */
  async look() {
    const { shown } = this.tool(),
      name = typedIn(shown, "name").trim()
    if (!name) return
    await (await names()).meant(name)
    await this.tool().change({ ...IS_NEW, ...NO_NAME, own: null, text: "", name, weights: "published" })
  }
  /** Asks the hub, as the reader said. */
  async ask() {
    const { values } = this.tool().shown,
      { waiting } = values
    Object.assign(values, { isAsking: true })
    this.tool().draw()
    try {
      const { text, listed } = await (await names()).fromHub(waiting)
      this.fromHub.set(waiting, { own: keysIn(text), text, listed })
      if (values.waiting === waiting) await this.tool().change({ ...IS_NEW, waiting: "", note: "" })
    } finally {
      Object.assign(values, { isAsking: false })
      this.tool().draw()
    }
  }
  /** The config of the model that is named, or who would be asked for it. */
  async named(/** @type {any} */ values) {
    const { meant, host, others } = await names(),
      { name } = values,
      { slug, title, format, why, repository } = await meant(name),
      known = slug ? await about(slug) : null,
      got = known ? { own: known.keys, text: json(known.keys), listed: null } : this.fromHub.get(repository)
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
    if (known) this.ofCatalog = { own, known }
    Object.assign(values, { own, text, title, note: said && `${said}.`, waiting: "" })
    if (isOther) Object.assign(values, { weights: format })
    if (listed) Object.assign(this.file, { reconciled: (await import("../tensors.mjs")).reconciled })
    this.file.listed = listed
    await loadFormats(values.weights)
  }
  /** What an event does, whose problem is said. @param {(target: any) => unknown} does */
  doing = does => async (/** @type {Event} */ event) => {
    try {
      await does(event.target)
    } catch (error) {
      this.tool().refuse(error)
    }
  }
  async read(/** @type {File[]} */ chosen) {
    const [first] = chosen
    if (!first) return
    if (!(await isGguf(first))) return this.take(await textOf(first, BOUNDS.LARGEST_TEXT))
    const { opened, compared } = await import("./gguf.mjs"),
      { own, stored, listed } = await opened(chosen)
    this.ofFile = stored
    Object.assign(this.file, { reconciled: compared, listed })
    await this.tool().change({ own, text: json(own), ...IS_NEW, ...NO_NAME, weights: "published" })
  }
  async list(/** @type {File[]} */ [chosen]) {
    const { tensorList, reconciled } = await import("../tensors.mjs")
    Object.assign(this.file, { reconciled, listed: chosen ? await tensorList(chosen) : null })
    await this.tool().change({})
  }
  drop(/** @type {DragEvent} */ event) {
    const dropped = [...(event.dataTransfer?.files ?? [])]
    if (dropped.length) event.preventDefault()
    this.doing(() => this.read(dropped))(event)
  }
  /** The keys of the reader's config, read once. @returns {Promise<Partial<import("../figures.mjs").Listed>>} */
  async keysOf(/** @type {any} */ values) {
    if (values.name && !values.own) await this.named(values)
    const { own } = values
    if (own && this.ofCatalog && own === this.ofCatalog.own) return this.ofCatalog.known
    if (own && own !== this.readOf) {
      this.readOf = own
      this.readAs = described(own)
    }
    const keys = (own && (await this.readAs)) ?? undefined,
      isOfFile = keys && this.ofFile?.json === json(own)
    if (this.ofFile && !isOfFile && this.file.listed && !(this.file.listed instanceof Map)) this.file.listed = null
    return { keys, stored: (isOfFile && this.ofFile) || undefined }
  }
  fields(/** @type {import("../tool.mjs").Shown} */ shown) {
    const { values } = shown,
      enter = (/** @type {KeyboardEvent} */ event) => {
        if (event.key !== "Enter") return
        event.preventDefault()
        this.doing(() => this.look())(event)
      }
    const area = html`<textarea name="config" rows="8" spellcheck=${false} value=${values.text}
      placeholder=${'{"model_type": "llama", …}'} oninput=${this.doing(field => this.take(field.value, field))}
      ondragover=${stay} ondrop=${this.drop.bind(this)} />`
    const chooser = (/** @type {string} */ accept, /** @type {(files: File[]) => unknown} */ take, many = false) =>
      html`<input type="file" accept=${accept} multiple=${many}
        onchange=${this.doing(({ files }) => take([...(files ?? [])]))} />`
    return html`<div class="ep-drop">
      <div class="ep-row">
        ${labelled(
          "Name or address of a model",
          html`<input type="text" ...${held(shown, "name")} placeholder="Qwen/Qwen3-8B" size="30" maxlength="300"
            spellcheck=${false} autocomplete="off" onkeydown=${enter} />`,
        )}
        <button type="button" onclick=${this.doing(() => this.look())}>Look up</button>
      </div>
      ${
        values.note &&
        html`<p class="ep-note" role="status">
        ${values.note}
        ${
          values.waiting &&
          html` <button type="button" disabled=${values.isAsking} onclick=${this.doing(() => this.ask())}>
          ${values.isAsking ? "Asking …" : `Ask ${values.host}`}
        </button>`
        }
      </p>`
      }
      ${labelled("Paste a config.json, drop it here, or choose a file", area)}
      <div class="ep-row">
        ${labelled(
          "config.json file or GGUF file, in parts too (only headers are read)",
          chooser(TAKEN, files => this.read(files), true),
        )}
        ${labelled(
          "Tensor list: model.safetensors.index.json or a .safetensors file (only its header is read)",
          chooser(".json,.safetensors", files => this.list(files)),
        )}
      </div>
    </div>`
  }
}
