// The files that a reader drops.

/** @typedef {import("./folder.mjs").Given} Given */

/** What of a folder is read. */
export const KEPT = /(^|\/)(config\.json|tokenizer\.json|model\.safetensors\.index\.json|[^/]+\.(safetensors|gguf))$/i

/**
 * The files that were dropped, also those in folders.
 * @param {DataTransfer} transfer
 * @returns {Promise<Given[]>}
 */
export async function dropped(transfer) {
  const entries = [...transfer.items].map(item => item.webkitGetAsEntry?.() ?? null)
  if (entries.includes(null)) return [...transfer.files].map(file => ({ path: file.name, file }))
  /** @type {Given[]} */
  const given = []
  const walk = async (/** @type {FileSystemEntry} */ entry, /** @type {number} */ depth) => {
    if (entry.isFile && KEPT.test(entry.fullPath)) {
      const file = await new Promise((resolve, reject) =>
        /** @type {FileSystemFileEntry} */ (entry).file(resolve, reject),
      )
      given.push({ path: entry.fullPath.slice(1), file })
    } else if (entry.isDirectory && depth < 4) {
      const reader = /** @type {FileSystemDirectoryEntry} */ (entry).createReader()
      for (;;) {
        /** @type {FileSystemEntry[]} */
        const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject))
        if (!some.length) break
        for (const one of some) await walk(one, depth + 1)
      }
    }
  }
  for (const entry of entries) if (entry) await walk(entry, 0)
  return given
}
