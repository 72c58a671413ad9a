// What draws the numbers of the small model, which comes with it.

export * from "../view.mjs"
export { numberOf, panel } from "./asked.mjs"
export { allHeads, contributions } from "./heads.mjs"
export { bar, matrix, small } from "./matrices.mjs"
