// The files of the small model of this site, as if a reader had chosen its folder.

const FOLDER = new URL("../../capitals/", import.meta.url)

/** @returns {Promise<import("./folder.mjs").Given[]>} */
export const filesOfSmall = () =>
  Promise.all(
    ["config.json", "tokenizer.json", "model.safetensors"].map(async path => {
      const answer = await fetch(new URL(path, FOLDER))
      if (!answer.ok) throw new Error(`${path} could not be loaded: ${answer.status}`)
      return { path, file: await answer.blob() }
    }),
  )
