// Designs of the forward pass that can be left out: what they are for shows in what becomes of the numbers.

import { html } from "../view.mjs"

/** By their names for `Ablation`. */
export const DESIGNS = {
  scaling: "Scaling by 1 / √d_head",
  causal_mask: "Causal mask",
  ln_1: "Norms before attention",
  ln_2: "Norms before feed-forward",
  ln_f: "Last norm",
  residual_stream: "Residual stream",
}

/**
 * A switch for each.
 * @param {string[]} without what is left out
 * @param {(chosen: { without: string }) => void} set
 * @param {Record<string, string>} [all]
 */
export const designs = (without, set, all = DESIGNS) =>
  html`<fieldset class="ep-designs">
    <legend>Why it is built this way: leave one out</legend>
    ${Object.entries(all).map(
      ([name, title]) =>
        html`<label class="ep-on">
          <input type="checkbox" data-key=${`design ${name}`} checked=${!without.includes(name)}
            onchange=${() => set({ without: turned(without, name) })} />${title}
        </label>`,
    )}
  </fieldset>`
/** These with the one, or without it if it is among them. @param {Iterable<string>} those @param {string} one */
export function turned(those, one) {
  const all = new Set(those)
  return [...(all.delete(one) ? all : all.add(one))].join("|")
}
