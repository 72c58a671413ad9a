// The compiled engine as the scripts of docs/assets see it: as much of Python's meaning, of the modules and of a model as
// they use. `python.mjs` is held to `Python` here; the rest is what macros/engine, macros/counting and macros/views define.

declare module "*/engine/engine.mjs" {
  export const py: Engine.Python
  export const M: Engine.Modules
  /** The file of each model type's forward pass. */
  export const MODULES: Record<string, string>
}

/** Material's: emits now and after each instant navigation. Other themes have none. */
declare var document$: { subscribe(again: () => void): void } | undefined

declare namespace Engine {
  /** `V` has undefined in it where a key may be missing. */
  interface Dict<K, V> extends Iterable<K> {
    map: Map<unknown, [K, V]>
    put(key: K, value: V): void
    read(key: K, otherwise?: V): V
    has(key: K): boolean
  }
  interface Fraction {
    numerator: bigint
    denominator: bigint
  }
  type Exact = bigint | number | Fraction
  type Json = null | boolean | number | bigint | string | Json[] | Keys
  /** Of a config.json, or of any other object of JSON; undefined where one is missing. */
  interface Keys extends Dict<string, Json | undefined> {}

  interface Python {
    Dict: new <K, V>(pairs?: Iterable<[K, V]>) => Dict<K, V>
    Fraction(numerator: Exact, denominator: Exact): Fraction
    apply<T>(f: (...args: never[]) => T, args: [], given: object): T
    entries<K, V>(dict: Dict<K, V>): [K, V][]
    eq(a: unknown, b: unknown): boolean
    float(x: Exact): number
    gt(a: Exact, b: Exact): boolean
    int(x: unknown): bigint
    isinstance(x: unknown, kinds: unknown[]): boolean
    parse(source: string): Json
    repr(x: unknown): string
    str(x: unknown): string
    sub(a: Exact, b: Exact): Exact
    sum(all: Iterable<bigint>): bigint
    truth(x: unknown): boolean
    type(x: Config): ConfigClass
  }

  interface Modules {
    "counting.accelerators": { Accelerator(): Accelerator }
    "counting.costs": { of(counts: Counts): Costs }
    "counting.conditions": { Conditions(): Conditions }
    "counting.differing": {
      side(config: Config, trace: unknown): object
      differs(field: string, sides: object[]): boolean
    }
    "counting.figures": { FIGURES: Dict<string, Figure> }
    "counting.formats": { FORMATS: Iterable<string>; CACHE_BYTES: Iterable<string> }
    "counting.parameters": { Counts(trace: Trace): Counts }
    "counting.parts": {
      by_category(parts: Iterable<Part>): Dict<unknown, bigint>
      grouped(parts: Iterable<Part>, title: (part: Part) => string): Group[]
    }
    "engine.architectures": { _registered: Dict<Json | undefined, Architecture> }
    "engine.architectures.config": { fields_of(config: ConfigClass): Iterable<Field> }
    "engine.architectures.heads": {
      /** The keys that are counted, which part they are, the type of a whole that is not known. */
      described(keys: Keys, known: string[], classes: Dict<unknown, string[]>): [Keys, unknown, string | null]
      find_head(architecture: string, keys: Keys, names: string[]): Head | null
      of_whole(whole: string, text: unknown, wrong: string): Problem
    }
    "engine.architectures.likeness": { unknown_type(keys: Keys, known: Dict<unknown, Architecture>): Problem }
    "engine.errors": { Problem(what: string, mend?: string): Problem }
    "engine.forward": { trace(architecture: Architecture, config: Config, head: Head | null): Trace }
    "engine.keys": {
      sizes_among(names: string[], keys: Keys): string[]
      continued(value: Json | undefined, layers: unknown, wanted: bigint): Json | undefined
    }
    "engine.rules": { ShapeError: unknown }
    "engine.variations": { VARIATIONS: Dict<string, Variation> }
    "views.charts.treemap": Treemap
  }

  // The engine

  /** A dataclass; its fields by name, of any type that a config's value has. */
  interface Config {
    symbols: Dict<string, unknown>
    [field: string]: unknown
  }
  interface ConfigClass {
    read(keys: Keys): [Config, string[]]
  }
  interface Problem extends Error {
    what: string
  }
  /** What stands on a trunk in the place of its own head. */
  interface Head {
    name: string
    said: string
  }
  interface Architecture {
    name: string
    config: ConfigClass
    stored_prefixes: Iterable<string>
    spellings: Dict<string, string>
  }
  /** A field of a config: its name, its key in a config.json, other spellings of that. */
  interface Field {
    field: string
    key: string
    is_size: boolean
    also: string[]
  }
  /** A change that teaches; null of a model that it does not fit. */
  interface Variation {
    name: string
    title: string
    says: string
    change(keys: Keys, config: Config): Keys | null
  }
  interface Trace {
    symbols: Dict<string, unknown>
  }

  // Counting

  interface Weight {
    name: string
    shape: unknown[]
    copies: unknown
    count: { expr: unknown }
    active: unknown
  }
  interface Part {
    role: string | null
    category: { value: string }
  }
  interface Group {
    title: string
    layers: unknown[] | null
    count: bigint
    weights: Weight[]
    parts: Part[]
  }
  interface Counts {
    total: bigint
    active: bigint
    total_poly: { text(written: (symbol: string) => string): string }
    parts: Iterable<Part>
    weights: Weight[]
    buffers: Weight[]
    trace: Trace
    /** Every tensor written out, of the weights or of what is given. */
    tensors(weights?: Weight[]): Iterable<[string, unknown[]]>
  }
  interface Costs {
    device_bytes(given: Conditions): Dict<string, bigint>
  }
  interface Accelerator {
    name: string
    memory_bytes: bigint
  }
  interface Conditions {
    context: bigint
    batch: bigint
    format: string
    devices: bigint
    item_bytes: bigint
  }
  interface Figure {
    title: string
    unit: string
    of(counts: Counts, given: Conditions): Exact | null
  }

  // The area map: lengths are numbers or whole numbers, boxes left, top, right, bottom

  type Length = number | bigint
  type Box = Length[]
  interface Area {
    title: string
    parameters: bigint
    said: string
    share: string
  }
  interface Treemap {
    WIDE: Length[]
    NARROW: Length[]
    IDLE: number
    USED: number
    Tensor(name: string, parameters: bigint, used: number, said: string): unknown
    Area(title: string, layers: bigint, parameters: bigint, said: string, share: string, tensors: unknown[]): Area
    drawn(
      areas: Area[],
      box: Box,
    ): {
      place: bigint
      box: Box
      used: Box[]
      inner: Box[]
      outer: Box[]
      lines: { x: Length; y: Length; content: string; size: Length; weight: Length | null }[]
    }[]
  }

  // A model in the browser, with the answers that docs/assets keeps beside it

  interface Model {
    raw: Keys
    config: Config
    head: Head | null
    sizes: string[]
    unknown: string[]
    counts: Counts
    costs: Costs
    architecture: string
    categories?: bigint[]
    groups?: Group[]
    areas?: { area: Area; category: string }[]
    sides?: object
    valuesFor?: string
    values?: Map<string, Exact | null>
  }
}
