// What the tools have of preact.mjs.

export interface VNode {
  type: unknown
  props: any
  key: unknown
}
export type Child = VNode | string | number | bigint | boolean | null | undefined | Child[]
export function html(texts: TemplateStringsArray, ...values: unknown[]): VNode
export function render(child: Child, place: Element): void
export abstract class Component<P = any, S = any> {
  props: P
  state: S
  setState(state: Partial<S>, done?: () => void): void
  abstract render(props: P, state: S): Child
}
