// The area map of a model: the boxes and what is written in them are those of the pages' own drawing, compiled;
// elements are drawn of them here.

import { M } from "../engine/base.mjs"
import "../engine/treemap.mjs"
import { groupsOf, py } from "../model.mjs"
import { path, text } from "./boxes.mjs"
import { count, grouped, percent, short } from "./kit.mjs"
import { Component, html } from "./view.mjs"

const treemap = M["views.charts.treemap"]

const PHONE = "(max-width: 33.25em)" // where the narrow one is seen: its place is 25rem wide or less
const GAP = 16,
  ABOVE = 18 // between two maps, and for what is said above each

/**
 * @typedef {import("../model.mjs").Titles} Titles
 * @typedef {Engine.Dict<string, string>} Colours
 */

/**
 * One map, or that of before and of now beside each other: what is twice as large has twice the area. The one for
 * another window, or paper, comes a moment later.
 * @typedef {{ now: Engine.Model, before: Engine.Model, titles: Titles, colours: Colours }} Mapped
 * @extends {Component<Mapped, { isBoth: boolean }>}
 */
export class AreaMap extends Component {
  state = { isBoth: false }
  isNarrow = matchMedia(PHONE).matches
  componentDidMount() {
    setTimeout(() => this.setState({ isBoth: true }), 100)
  }
  shouldComponentUpdate(/** @type {Mapped} */ { now, before }, /** @type {{ isBoth: boolean }} */ { isBoth }) {
    return now !== this.props.now || before !== this.props.before || isBoth !== this.state.isBoth
  }
  render() {
    const { now, before } = this.props,
      { isBoth } = this.state
    const used = now.counts.active !== now.counts.total ? " The stronger color marks those that one token uses." : "",
      scale = now === before ? "" : " Both maps have the same scale."
    return html`<figure class="ep-map">
      ${(isBoth || !this.isNarrow) && drawing(this.props, "wide", treemap.WIDE.map(Number), true)}
      ${(isBoth || this.isNarrow) && drawing(this.props, "narrow", treemap.NARROW.map(Number), false)}
      <figcaption>
        ${`The area of each box is proportional to its share of the ${grouped(now.counts.total)} parameters.`}
        ${used}${scale}
      </figcaption>
    </figure>`
  }
}
/**
 * @param {Mapped} of
 * @param {string} cls
 * @param {number[]} size
 * @param {boolean} isRow
 */
function drawing({ now, before, titles, colours }, cls, [width, height], isRow) {
  /** @type {[title: string, model: Engine.Model][]} */
  const maps = now === before ? [["", now]] : [["As published: ", before], ["Now: ", now]] // prettier-ignore
  const most = Math.max(...maps.map(([, m]) => Number(m.counts.total))),
    room = maps.length === 1 ? [width, height] : isRow ? [(width - GAP) / 2, height] : [width, height * 0.6],
    above = maps.length === 1 ? 0 : ABOVE
  const parts = maps.map(([title, m], i) => {
    const side = Math.sqrt(Number(m.counts.total) / most) || 0,
      left = isRow ? i * (room[0] + GAP) : 0,
      top = above + (isRow ? 0 : i * (room[1] + above + 4))
    return [
      above > 0 && text(left, top - 6, title + count(m.counts.total), 11.5),
      map(areasOf(m, titles), [left, top, left + side * room[0], top + side * room[1]], colours),
    ]
  })
  const tall = isRow || maps.length === 1 ? above + room[1] : 2 * (above + room[1]) + 4
  return html`<svg key=${cls} class=${`ep-svg ${cls}`} viewBox=${`0 0 ${width} ${tall}`} role="img"
    aria-label=${`Where the parameters are: ${said(now, titles)}`}>${parts}</svg>`
}

/**
 * The areas of the map, each with what it does.
 * @param {Engine.Model} model
 * @param {Titles} titles
 */
const areasOf = (model, titles) =>
  (model.areas ??= groupsOf(model, titles).map(group => {
    const tensors = group.weights.map(w => {
      const n = py.int(w.count),
        name = w.name.replace(/\.weight$/, "")
      return treemap.Tensor(
        name.slice(name.lastIndexOf(".") + 1),
        n,
        n ? Number(py.int(w.active)) / Number(n) : 0,
        short(n),
      )
    })
    const area = treemap.Area(
      group.title,
      BigInt(group.layers?.length ?? 0),
      group.count,
      short(group.count),
      percent(group.count, model.counts.total),
      tensors,
    )
    return { area, category: group.parts[0].category.value }
  }))

const said = (/** @type {Engine.Model} */ m, /** @type {Titles} */ titles) =>
  areasOf(m, titles)
    .filter(({ area }) => area.parameters)
    .map(({ area }) => `${area.title} ${area.said}, ${area.share}`)
    .join("; ")

/**
 * @param {NonNullable<Engine.Model["areas"]>} areas
 * @param {Engine.Box} box
 * @param {Colours} colours
 */
const map = (areas, box, colours) =>
  treemap
    .drawn(
      areas.map(({ area }) => area),
      box,
    )
    .map(drawn => {
      const { area, category } = areas[Number(drawn.place)],
        fill = colours.read(category)
      return html`<g>
        <title>${`${area.title}: ${grouped(area.parameters)} parameters, ${area.share}`}</title>
        <path d=${path([drawn.box])} fill=${fill} fill-opacity=${`${treemap.IDLE}`} />
        <path d=${path(drawn.used)} fill=${fill} fill-opacity=${`${treemap.USED}`} />
        <path d=${path(drawn.inner)} class="inner" fill="none" />
        <path d=${path(drawn.outer)} class="outer" fill="none" />
        ${drawn.lines.map(line => text(line.x, line.y, line.content, line.size, line.weight))}
      </g>`
    })
