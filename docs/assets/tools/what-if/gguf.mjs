// A GGUF file of the reader's own: its config from its header's metadata, its bytes from its list of tensors.

import { M } from "../../engine/base.mjs"
import "../../engine/file_weights.mjs"
import { headerOf } from "../../gguf.mjs"
import { pause, py } from "../../model.mjs"
import { configOf, madeOf } from "../gguf_model.mjs"
import { grouped, json } from "../kit.mjs"
import { differences } from "../tensors.mjs"
import { html } from "../view.mjs"

const { of_gguf: ofGguf, StoredTensor } = M["counting.file_weights"]
let read = 0 // files

/**
 * The config of a file, or of the parts of one, and how its tensors are counted; throws a problem.
 * @param {File[]} files
 * @returns {Promise<{ own: Engine.Keys, stored: import("../../model.mjs").Stored, listed: Engine.Gguf }>}
 */
export async function opened(files) {
  const gguf = await headerOf(files)
  await pause()
  const own = await configOf(gguf),
    tensors = new py.Dict()
  for (const [name, { type, shape, size }] of py.entries(gguf.tensors))
    tensors.put(name, StoredTensor(type, shape, size))
  return {
    own,
    listed: gguf,
    stored: {
      ...{ id: ++read, json: json(own) },
      weights: (raw, trace) => ofGguf(madeOf(raw, trace), tensors, files[0].name),
    },
  }
}

/**
 * The tensors that the metadata ask for held against those of the file, and the types of these. Of a model with changes
 * nothing.
 * @param {Engine.Model} model
 * @param {any} gguf
 */
export function compared({ file }, gguf) {
  if (!file?.decides) return null
  /** @type {Map<string, bigint>} */
  const types = new Map(),
    /** @type {{ type: string }[]} */
    tensors = py.entries(gguf.tensors).map(([, tensor]) => tensor)
  for (const { type } of tensors) types.set(type, (types.get(type) ?? 0n) + 1n)
  const inOrder = [...types].map(([type, n]) => `${grouped(n)} in ${type}`),
    shape = (/** @type {bigint[]} */ dims) => `[${dims.join(", ")}]`,
    other = file.apart.map(([name, its, ours]) => `${name}: ${shape(its)} instead of ${shape(ours)}`),
    asked = tensors.length - file.rest.length + file.missing.length
  return html`${differences(asked - file.missing.length, asked, { missing: file.missing, more: file.rest, other })}
    <p>${`${grouped(file.total)} bytes in ${grouped(BigInt(tensors.length))} tensors: ${inOrder.join(", ")}.`}</p>`
}
