// Designs of the forward pass that can be left out: what they are for shows in what becomes of the numbers.

import { make } from "../elements.mjs"

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
  make(
    "fieldset",
    { class: "ep-designs" },
    make("legend", {}, "Why it is made so: leave one out"),
    Object.entries(all).map(([name, title]) =>
      make(
        "label",
        { class: "ep-on" },
        make("input", {
          type: "checkbox",
          "data-key": `design ${name}`,
          checked: !without.includes(name),
          onchange: () =>
            set({
              without: [...new Set([...without, name])].filter(n => n !== name || !without.includes(n)).join("|"),
            }),
        }),
        title,
      ),
    ),
  )
