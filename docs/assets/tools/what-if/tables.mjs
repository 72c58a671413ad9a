// The long tables of What if, which are read once they are opened: parts, and every tensor.

import { groupsOf, py } from "../../model.mjs"
import { difference, grouped, percent } from "../kit.mjs"
import { html, show } from "../view.mjs"

/**
 * The parameters of each part before and now; those of one title are told apart by their order.
 * @param {Engine.Model} now
 * @param {Engine.Model} before
 * @param {import("../../model.mjs").Titles} titles
 * @returns {{ title: string, cells: string[], isTotal?: boolean }[]}
 */
export function partsOf(now, before, titles) {
  const isSame = now === before,
    [old, current] = [before, now].map(m => byTitle(m, titles))
  const size = (/** @type {Engine.Group | undefined} */ group, /** @type {"count" | "active"} */ what = "count") =>
    group ? py.sum(group.weights.map(w => py.int(w[what]))) : 0n
  const row = (/** @type {[a: bigint, n: bigint, share: string, act: bigint]} */ ...[a, n, share, act]) => [
    ...(isSame ? [] : [grouped(a)]),
    ...[grouped(n), share, grouped(act)],
    ...(isSame ? [] : [difference(n, a, "parameters")]),
  ]
  const rows = [...new Set([...old.keys(), ...current.keys()])].map(key => {
    const { title, layers } = /** @type {Engine.Group} */ (current.get(key) ?? old.get(key)),
      group = current.get(key),
      n = size(group),
      many = layers?.length ?? 0
    return {
      title: many > 1 ? `${title} × ${many} layers` : title,
      cells: row(size(old.get(key)), n, percent(n, now.counts.total), size(group, "active")),
    }
  })
  const total = row(before.counts.total, now.counts.total, "", now.counts.active)
  return [...rows, { title: "Total", cells: total, isTotal: true }]
}
/** @param {Engine.Model} model @param {import("../../model.mjs").Titles} titles */
const byTitle = (model, titles) =>
  new Map(
    groupsOf(model, titles).map((group, i, all) => [
      `${group.title} ${all.slice(0, i).filter(other => other.title === group.title).length}`,
      group,
    ]),
  )

/**
 * Every tensor of a model, with its shape before and now.
 * @param {Engine.Model} now
 * @param {Engine.Model} before
 */
export function tensorsOf(now, before) {
  const all = (/** @type {Engine.Model} */ m) => [...m.counts.weights, ...m.counts.buffers],
    shape = (/** @type {Engine.Weight | undefined} */ w) =>
      w ? `[${w.shape.map(d => grouped(py.int(d))).join(", ")}]` : "–",
    old = new Map(all(before).map(w => [w.name, w]))
  return all(now).map(w => ({
    ...{ name: w.name, before: shape(old.get(w.name)), now: shape(w), formula: py.str(w.count.expr) },
    ...{ copies: grouped(py.int(w.copies)), parameters: grouped(py.int(w.count)) },
  }))
}

/**
 * @param {Engine.Model} now
 * @param {Engine.Model} before
 * @param {import("../../model.mjs").Titles} titles
 */
export function parts(now, before, titles) {
  const other = (/** @type {string} */ title) => (now === before ? [] : [title])
  return show(
    "Parameters by part",
    ["Part", ...other("#As published"), "#Now", "#Share", "#Active", ...other("#Difference")],
    partsOf(now, before, titles).map(({ title, cells, isTotal }) =>
      Object.assign([title, ...cells], isTotal ? { cls: "total" } : {}),
    ),
  )
}
/** @param {Engine.Model} now @param {Engine.Model} before */
export function tensors(now, before) {
  const isSame = now === before
  return show(
    "Tensors",
    ["Name", ...(isSame ? [] : ["Shape as published"]), "Shape", "#Copies", "#Parameters", "Formula"],
    tensorsOf(now, before).map(one => {
      const row = [
        ...[html`<code>${one.name}</code>`, ...(isSame ? [] : [one.before])],
        ...[one.now, one.copies, one.parameters, html`<code>${one.formula}</code>`],
      ]
      return Object.assign(row, isSame || one.before === one.now ? {} : { cls: "ep-differs" })
    }),
  )
}
