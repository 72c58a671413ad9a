// The files of the small model of this site, as if a reader had chosen its folder.

import { fileOf } from "../capitals/files.mjs"

/** @returns {Promise<import("./folder.mjs").Given[]>} */
export const filesOfSmall = () =>
  Promise.all(
    ["config.json", "tokenizer.json", "model.safetensors"].map(async path => ({
      ...{ path, file: await (await fileOf(path)).blob() },
    })),
  )
