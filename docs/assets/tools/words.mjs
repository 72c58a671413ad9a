// What is asked for, in words.

import { grouped } from "./figures.mjs"

/** Several devices, or one, by name. @param {{ devices: bigint }} given @param {Engine.Machine} on */
export const several = ({ devices }, on) => (devices > 1n ? `${grouped(devices)} × ${on.name}` : on.name)
/** Sequences of tokens, or the tokens of one. @param {Engine.Conditions} given */
export const tokensSaid = ({ batch, context }) =>
  `${batch > 1n ? `${grouped(batch)} sequences of ` : ""}${grouped(context)} tokens`
