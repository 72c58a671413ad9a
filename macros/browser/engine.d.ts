// The compiled engine as the scripts of docs/assets see it: as much of Python's meaning, of the modules and of a model as
// they use. `python.mjs` is held to `Python` here; the rest is what macros/engine, macros/counting and macros/views define.

declare module "*/engine/base.mjs" {
  export const py: Engine.Python
  export const M: Engine.Modules
}

/** The grammar of questions, which needs the runtime alone. */
declare module "*/engine/question.mjs" {
  export const py: Engine.Python
  export const M: Engine.Modules
}

/** What resolves the name of a hub, a file or an Ollama tag; it needs the runtime alone, too. */
declare module "*/engine/resolving.mjs" {
  export const M: Engine.Modules
}

declare module "*/engine/engine.mjs" {
  /** The file of each model type's forward pass. */
  export const MODULES: Engine.Dict<string, string>
}
declare module "*/engine/conditions.mjs"
declare module "*/engine/counting.mjs"

/** Arrays with numbers: `macros/browser/numpy.mjs`. */
declare module "*/engine/numpy.mjs" {
  export class NDArray {
    dims: number[]
    /** The numbers one after the other. */
    flat(): ArrayLike<number | bigint>
    lists(): any
    __getitem__(key: unknown): NDArray
    __mul__(other: NDArray | number): NDArray
  }
  export const TYPES: Record<string, unknown>
  export const ofF16: () => Float32Array
  export function ofHalves(halves: Uint16Array, dims: number[], type: string): NDArray
  export function array(numbers: ArrayLike<number | bigint>, dims: number[], dtype?: unknown): NDArray
  export function wholeNumbers(numbers: number[]): NDArray
  export function watched<T>(tracer: object | null, run: () => T): T
}

declare module "*/engine/ablations.mjs"
declare module "*/engine/answering.mjs"
declare module "*/engine/bill.mjs"
declare module "*/engine/loaded.mjs"
declare module "*/engine/gguf_config.mjs"
declare module "*/engine/gguf_tokenizer.mjs"
declare module "*/engine/gguf_weights.mjs"
declare module "*/engine/file_weights.mjs"
declare module "*/engine/treemap.mjs"
declare module "*/engine/memory_areas.mjs"
declare module "*/engine/bar_values.mjs"
declare module "*/engine/gguf.mjs"
declare module "*/engine/design.mjs"
declare module "*/engine/differing.mjs"
declare module "*/engine/variations.mjs"
declare module "*/engine/published.mjs"
declare module "*/engine/fitting.mjs"
declare module "*/engine/divided.mjs"
declare module "*/engine/engines.mjs"
declare module "*/engine/llama_server.mjs"
declare module "*/engine/vllm_server.mjs"
declare module "*/engine/runs.mjs"
declare module "*/engine/served_instead.mjs"
declare module "*/engine/spreads.mjs"
declare module "*/engine/prefix.mjs"
declare module "*/engine/offload.mjs"
declare module "*/engine/speculative.mjs"
declare module "*/engine/training_plan.mjs"

/** Material's: emits now and after each instant navigation. Other themes have none. */
declare var document$: { subscribe(again: () => void): void } | undefined

/** The theme's, of the page's head: keeps what a reader has chosen. */
declare function __md_set(name: "__palette", value: { index: number }): void
/** Shows the colors of a choice, or of the one that is kept; returns its place. */
declare function __md_colors(index?: number): number

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
    apply<T>(f: (...args: never[]) => T, args: unknown[], given: object): T
    entries<K, V>(dict: Dict<K, V>): [K, V][]
    eq(a: unknown, b: unknown): boolean
    float(x: Exact): number
    format(x: bigint, how: ","): string
    gt(a: Exact, b: Exact): boolean
    has(x: unknown, all: unknown): boolean
    int(x: unknown): bigint
    isinstance(x: unknown, kinds: unknown[]): boolean
    /** What reads the digits of a whole number, and what has the last word on an object. */
    parse(source: string, how?: { whole?: (digits: string) => bigint; table?: (table: Keys) => Json }): Json
    repr(x: unknown): string
    str(x: unknown): string
    sub(a: Exact, b: Exact): Exact
    sum(all: Iterable<bigint>): bigint
    truth(x: unknown): boolean
    type(x: Config): ConfigClass
  }

  /** A function that a run calls as one step, and its role. */
  interface Step {
    function: (...args: any[]) => any
    role: unknown
  }
  /** The rows that earlier steps left; `kept` by layer, content and part. */
  interface Cache {
    kept: Dict<unknown[], any>
    after(tokens: bigint): Cache
  }

  /** The names of a model of the catalog. */
  interface Known {
    title: string
  }
  /** A GGUF file as `catalogue.gguf_config` reads it. */
  interface Gguf {
    architecture: string
    metadata: Dict<string, unknown>
    tensors: Dict<string, GgufTensor>
    of(key: string): unknown
    listed(key: string): unknown[] | null
    list_of(key: string): unknown[] | null
  }
  interface GgufTensor {
    type: string
    shape: bigint[]
    size: bigint
    floats(): number[]
  }
  /** Tensors of a file by the weights that they hold. */
  interface FileWeights {
    decides: boolean
    total: bigint
    missing: string[]
    rest: string[]
    apart: [name: string, there: bigint[], ours: bigint[]][]
  }
  interface Modules {
    "catalogue.gguf_tokenizer": { tokenizer_json(file: Gguf): Dict<string, unknown> }
    "catalogue.gguf_weights": PythonModule
    "catalogue.gguf_config": { config_of(file: Gguf, types: string[]): Keys }
    "counting.file_weights": {
      StoredTensor(type: string, shape: bigint[], size: bigint): unknown
      of_gguf(made: unknown, tensors: Dict<string, unknown>, source: string): FileWeights
    }
    "counting.gguf": {
      GgufFile(weights: Iterable<unknown>, rules: unknown, model_type: unknown, symbols: unknown): unknown
    }
    "catalogue.question": { meant(question: string, grammar: Grammar): Meaning }
    "catalogue.question_leads": {
      leads(meaning: Meaning, grammar: Grammar): Lead[]
      note_of(meaning: Meaning): string
    }
    "catalogue.question_of_model": { with_format(lead: Lead, format: string): Lead }
    "catalogue.question_table": { Grammar(names: unknown, records: string[][]): Grammar }
    "catalogue.resolving": {
      Resolver: unknown
      Known(title: string, hub: string, aliases: string[], headline: string): Known
      MOST_CANDIDATES: bigint
      by_words(names: Dict<string, Known>): Dict<unknown, string>
      contained(
        text: string,
        names: Dict<string, Known>,
        formats: string[],
        known: Dict<unknown, string>,
      ): { slug: string; format: string; why: string }[]
      reference(text: string): { organization: string; name: string }
      resolve(
        text: string,
        names: Dict<string, Known>,
        formats: string[],
      ): { slug: string; format: string; why: string; candidates: string[] }
    }
    "engine.ops.recurrence": PythonModule
    "engine.published": PythonModule
    "counting.accelerators": { Accelerator(): Accelerator; Link(): Link }
    "counting.adapter_choice": PythonModule
    "counting.adapters": PythonModule
    "counting.answering": {
      agreed(answers: Answer[], titles: string[]): Answer | null
      OF_TIME: string[]
      USUAL_MACHINE: string
      Writing(...writers: ((n: bigint) => string)[]): unknown
      answered(
        asked: Asked,
        counts: Counts,
        config: Config,
        longest: bigint | null,
        machine: Machine | null,
        writing: unknown,
      ): Answer
    }
    "counting.asked": {
      /** A whole number above 0; throws a problem. */
      whole(name: string, value: bigint | string, most: bigint): bigint
      /** A share up to 1; throws a problem. */
      share(name: string, value: string, may_be_zero?: boolean): Exact
      /** An amount above 0; throws a problem. */
      amount_of(name: string, value: string): Exact
      one_of(name: string, value: string, known: Dict<string, unknown>, what?: string): string
    }
    "counting.bill": PythonModule
    "counting.capacity": {
      Capacity(data: Dict<string, unknown>): Capacity
      longest_context(
        kept: unknown,
        operations: unknown,
        left: bigint,
        batch: bigint,
        item_bytes: bigint,
        most: bigint,
      ): bigint
    }
    "counting.divided": { Divided(whole: Capacity, data: Dict<string, unknown>): Divided }
    "counting.costs": { of(counts: Counts): Costs }
    "counting.conditions": { Conditions(): Conditions }
    "counting.design": { choices(counts: Counts): Dict<string, Exact | null> }
    "counting.differing": {
      side(config: Config, trace: unknown): object
      differs(field: string, sides: object[]): boolean
    }
    "counting.engines": PythonModule
    "counting.figures": { FIGURES: Dict<string, Figure> }
    "counting.fitting": {
      BEST: string
      LADDER: string[]
      LISTED: string[]
      DIVIDED_ON_SITE: bigint[]
      fitting(sized: Sized, weights: string, given: Conditions, machine: Machine): Fitting | null
      answer(sized: Sized, given: Conditions, machine: Machine): Fitting | null
      chosen(sized: Sized, weights: string, given: Conditions, memory_bytes: bigint): string | null
      instead(costs: Costs, formats: WeightFormats, given: Conditions, memory_bytes: bigint): string
      smallest(sized: Sized, accelerator: Accelerator | null): string
      in_order(found: [string, bigint, Fitting][]): [string, bigint, Fitting][]
      in_words(format: string, said: string): string
      order_of_machines(said: Fitting | null, enough: Split | null, machine: Machine): [boolean, bigint, bigint]
    }
    "counting.runs": {
      left_out(format: string, accelerator: Accelerator | null, engine?: string, published?: Iterable<string>): string
    }
    "counting.served_instead": PythonModule
    "counting.gguf_types": { FORMATS: string[]; BY_ID: Dict<bigint, [name: string, block: bigint, bytes: bigint]> }
    "counting.formats": {
      FLOATS: string[]
      WEIGHTS: Dict<string, unknown>
      CACHE_BYTES: Dict<string, unknown>
      format_meant(name: string): string
      cache_meant(name: string): string
    }
    "counting.cards": PythonModule
    "counting.engine_options": PythonModule
    "counting.log_facts": PythonModule
    "counting.log_forms": PythonModule
    "counting.log_reader": PythonModule
    "counting.log_replay": PythonModule
    "counting.log_rows": PythonModule
    "counting.deploying": PythonModule
    "counting.deployments": PythonModule
    "counting.links": PythonModule
    "counting.offload": PythonModule
    "counting.own_machine": { EXAMPLE: string; named(text: string, known: Dict<string, Accelerator>): Machine }
    "counting.parameters": {
      Counts(trace: Trace, keys?: Keys, architecture?: Architecture, file?: () => FileWeights): Counts
      /** The longest context that a config states. */
      stated_context(keys: Keys): bigint | null
    }
    "counting.parts": {
      by_category(parts: Iterable<Part>): Dict<unknown, bigint>
      grouped(parts: Iterable<Part>, title: (part: Part) => string): Group[]
    }
    "counting.prefix": PythonModule
    "counting.speculative": PythonModule
    "counting.spreads": PythonModule
    "counting.training_plan": PythonModule
    "counting.training_setup": PythonModule
    "engine.ablations": PythonModule
    "engine.architectures": { _registered: Dict<Json | undefined, Architecture> }
    "engine.architectures.config": { fields_of(config: ConfigClass): Iterable<Field> }
    "engine.architectures.heads": {
      /** The keys that are counted, which part they are, the type of a whole that is not known. */
      described(
        keys: Keys,
        known: string[],
        classes: Dict<unknown, string[]>,
        there: Keys,
      ): [Keys, unknown, string | null]
      find_head(architecture: Architecture, keys: Keys, names: string[]): Head | null
      of_whole(whole: string, text: unknown, wrong: string): Problem
    }
    "engine.architectures.otherwise": { with_rounded_head(keys: Keys, rounds_heads: unknown): Keys }
    "engine.architectures.likeness": { unknown_type(keys: Keys, known: Dict<unknown, Architecture>): Problem }
    "engine.bounds": Bounds
    "engine.errors": {
      Problem(what: string, mend?: string, where?: string): Problem
      shorten(value: unknown): string
      named(name: string, width?: bigint): string
    }
    "engine.forward": {
      renaming(architecture: Architecture, config: Config, head: Head | null): [string, string]
      trace(architecture: Architecture, config: Config, head: Head | null): Trace
    }
    "engine.json_data": {
      whole(digits: string): bigint
      special_float(table: Keys): Json
      check_data(data: Json): void
      check_text(text: string): void
    }
    "engine.layouts": {
      Layout(architecture: Architecture, stored: Dict<string, bigint[] | null>, renamed: [string, string]): Layout
    }
    "engine.loaded": { Arrays(tensors: Dict<string, unknown>): unknown; Cache(...given: unknown[]): Cache }
    "engine.steps": {
      Role: Record<string, unknown>
      Holds: Record<string, unknown>
      ACTIVATIONS: Set<unknown>
      FEED_FORWARDS: Set<unknown>
      NORMS: Set<unknown>
    }
    "engine.keys": {
      sizes_among(names: string[], keys: Keys): string[]
      continued(value: Json | undefined, layers: unknown, wanted: bigint): Json | undefined
    }
    "engine.rules": { ShapeError: unknown }
    "engine.variations": { VARIATIONS: Dict<string, Variation> }
    "views.charts.treemap": Treemap
    "views.charts.memory_areas": MemoryAreas
    "views.charts.bar_values": BarValues
  }

  // Questions

  interface Grammar {
    catalog: { resolving: unknown }
  }
  interface Meaning {
    models: { record: bigint; is_sure: boolean }[]
    absent: object[]
    corrected: [typed: string, meant: string][]
  }
  interface Lead {
    kind: string
    address: string
    title: string
    said: string
    compute: Asked | null
  }
  /** What is to be computed of a model. */
  interface Asked {
    slug: string
    title: string
    what: string | null
    format: string | null
    on: string | null
    changes: [size: string, key: string, value: bigint][]
  }
  interface Answer {
    title: string
    said: string
    format: string | null
  }

  /** What one task alone asks for: its functions are held to Python's by a test of their answers. */
  type PythonModule = Record<string, any>

  // The engine

  /** How much is read, in bytes, and what can be asked for: those of the command line. */
  interface Bounds {
    LARGEST_TEXT: bigint
    LARGEST_TOKENIZER: bigint
    LARGEST_INDEX: bigint
    LARGEST_HEADER: bigint
    MOST_DIGITS: bigint
    MOST_AXES: bigint
    MOST_TOKENS: bigint
    MOST_TEXTS: bigint
    MOST_DEVICES: bigint
  }
  /** A dataclass; its fields by name, of any type that a config's value has. */
  interface Config {
    symbols: Dict<string, unknown>
    /** The tokens that a learned position table has rows for. */
    position_reach: bigint | null
    [field: string]: unknown
  }
  interface ConfigClass {
    read(keys: Keys): [Config, string[]]
    /** A line for each key with which transformers computes something else. */
    read_otherwise(keys: Keys): string[]
  }
  interface Problem extends Error {
    at(where: string): Problem
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
    gguf: unknown
    vllm: { is_packed: boolean }
    rounds_heads: unknown
    forward(weights: unknown, ids: unknown, config: Config, cache: Cache, last: boolean): any
  }
  /** The tensors of a file by our names: where one stands, and its shape where the file says it. */
  interface Layout {
    find(name: string): Place | null
    shape(place: Place): bigint[] | null
  }
  interface Place {
    cuts: { stored: string }[]
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
    weights: Dict<string, Weight>
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
  /** In which format the weights are, where they are asked for in one: in words, and as a sentence has it. */
  interface WeightFormats {
    names: unknown
    architecture: Architecture | null
    said(format: string): string
    phrase(format: string): string
  }
  interface Counts {
    formats: WeightFormats
    total: bigint
    active: bigint
    total_poly: { text(written: (symbol: string) => string): string }
    parts: Iterable<Part>
    weights: Weight[]
    buffers: Weight[]
    trace: Trace
    values(): Dict<string, bigint>
    cache_bytes_per_token_uncapped(): bigint
    index_bytes_per_token(): bigint
    /** Every tensor written out, of the weights or of what is given. */
    tensors(weights?: Weight[]): Iterable<[string, unknown[]]>
  }
  interface Split {
    devices: bigint
    /** The degrees above 1, in words and in letters. */
    said: string
    letters: string
  }
  interface Devices {
    check_split(given: Conditions): void
    n_layers: bigint
    split_bytes(split: Split, given: Conditions): Dict<string, bigint>
    split(given: Conditions, memory_bytes: bigint): Split | null
    least_split(given: Conditions, memory_bytes: bigint): Split | null
    without_split(devices: bigint, batch: bigint): object
  }
  interface Costs {
    formats: { names: Iterable<string> }
    published: Iterable<string>
    devices: Devices
    is_there(format: string): boolean
    split(given: Conditions, memory_bytes: bigint): Split | null
    largest_context(memory_bytes: bigint, given: Conditions): bigint | null
  }
  /** A model without its trace, on one device. */
  interface Capacity {
    total: bigint
    weights: Dict<string, { total: bigint }>
    is_there(format: string): boolean
    add(format: string, data: unknown): void
  }
  /** A model without its trace, on several devices. */
  interface Divided {
    total: bigint
    is_there(format: string): boolean
  }
  type Sized = Costs | Capacity | Divided
  /** A model in a format on a machine. */
  interface Fitting {
    format: string
    terms: Dict<string, bigint>
    total: bigint
    left: bigint
    split: Split
    longest_context: bigint | null
    largest_batch: bigint
    seconds: Exact | null
    bits_per_weight: Exact
  }
  interface Accelerator {
    watts: bigint | null
    capability: bigint | null
    kind: string
    name: string
    vendor: string
    bytes_per_second: bigint
    memory_bytes: bigint
    peak_flops: Dict<string, bigint>
    link: Link | null
  }
  interface Link {
    name: string
    bytes_per_second: bigint
  }
  interface Machine {
    name: string
    memory_bytes: bigint
    accelerator: Accelerator | null
  }
  interface Conditions {
    accelerator: Accelerator | null
    context: bigint
    batch: bigint
    format: string
    dtype: string
    devices: bigint
    item_bytes: bigint
  }
  interface Figure {
    needs: string[]
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
  interface MemoryDevice {
    name: string
    memory: bigint
  }
  interface MemoryMark {
    at: number
    said: string
  }
  interface MemoryPanel {
    weights: [left: number, top: number, right: number, bottom: number]
    cache: [x: number, y: number][]
    devices: (MemoryMark & { start: number; base: number })[]
    across: MemoryMark[]
    up: MemoryMark[]
    cursor: number
    total: number
  }
  interface MemoryAreas {
    WIDTH: bigint
    HEIGHT: bigint
    Device(name: string, memory: bigint): MemoryDevice
    cache_bytes(kept: unknown, context: bigint, users: bigint): bigint
    panels(
      kept: unknown,
      weights: bigint[],
      users: bigint,
      longest: bigint,
      at: bigint,
      devices: MemoryDevice[],
    ): MemoryPanel[]
    device_for(weights: bigint, devices: MemoryDevice[]): MemoryDevice | null
  }
  /** A bar of a figure that moves: starts and widths are in percent. */
  interface Bar {
    label: string
    total: bigint
    segments: { kind: bigint; amount: bigint; start: number; width: number }[]
  }
  interface BarValues {
    bars(rows: unknown, given: bigint[], most: bigint): Bar[]
    evaluate(tree: unknown, given: bigint[]): bigint
    largest(rows: unknown, stops: bigint[], given: bigint[]): bigint
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
    otherwise: string[]
    counts: Counts
    costs: Costs
    architecture: string
    /** The tensors of the reader's file, if it is of one. */
    file?: FileWeights
    categories?: bigint[]
    groups?: Group[]
    areas?: { area: Area; category: string }[]
    sides?: object
    ways?: Variation[]
    valuesFor?: string
    values?: Map<string, Exact | null>
  }
}
