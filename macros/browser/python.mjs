// What Python means, for the modules that the build compiles to JavaScript (macros/browser/javascript.py writes calls
// of this): whole numbers without end (BigInt), dicts and sets by value, operators of classes, keyword arguments,
// classes, and as much of the standard library and of NumPy's names as the engine and the counting use. Nothing here
// knows a model. Where no type is said, a value is any of Python's.

// Values

// A tuple is an array as a list is: what tells them apart here is only that nothing adds to a tuple in place.
const tuple = (items = []) => [...items]

// What a dict or a set finds a value by: equal values have equal keys. Numbers and text are their own.
let lastId = 0
const id = x => (x.$id ??= ++lastId)
const key = x => {
  switch (typeof x) {
    case "string":
    case "bigint":
    case "boolean":
      return x
    case "number":
      return Number.isInteger(x) ? BigInt(x) : x
    case "function":
      return x
  }
  if (x == null) return null
  if (x.$key !== undefined) return x.$key
  const keyed = x
  if (Array.isArray(x)) {
    let k = "\u0001("
    for (let i = 0; i < x.length; i++) k += part(x[i]) + ","
    return (keyed.$key = k)
  }
  if (x.$text !== undefined) return x.$text
  if (x.$int !== undefined) return x.$int
  if (x instanceof Frozen) return (keyed.$key = `\u0001{${[...x.map.keys()].map(text).sort().join(",")}}`)
  if (x.__hash__) return (x.$key = x.__hash__())
  return x
}
const text = k =>
  typeof k === "string"
    ? `${k.length}:${k}`
    : typeof k === "object" || typeof k === "function"
      ? k === null
        ? "~"
        : `#${id(k)}`
      : typeof k === "bigint"
        ? `${k}`
        : `'${k}`
const part = x => text(key(x))
const define = (object, name, value) => {
  Object.defineProperty(object, name, { value, configurable: true, writable: true })
  return value
}

class Dict {
  /** @param {Iterable<any>} pairs */
  constructor(pairs = []) {
    this.map = new Map()
    for (const [k, v] of pairs) this.put(k, v)
  }
  put(k, v) {
    const at = key(k),
      old = this.map.get(at)
    if (old) old[1] = v
    else this.map.set(at, [k, v])
  }
  read(k, otherwise) {
    return this.map.get(key(k))?.[1] ?? otherwise
  }
  has(k) {
    return this.map.has(key(k))
  }
  *[Symbol.iterator]() {
    for (const [k] of this.map.values()) yield k
  }
}
class PySet {
  constructor(items = []) {
    this.map = new Map()
    for (const x of items) this.add(x)
  }
  add(x) {
    const at = key(x)
    if (!this.map.has(at)) this.map.set(at, x)
  }
  has(x) {
    return this.map.has(key(x))
  }
  [Symbol.iterator]() {
    return this.map.values()
  }
}
class Frozen extends PySet {}
class Range {
  /**
   * @param {bigint} start
   * @param {bigint} stop
   * @param {bigint} step
   */
  constructor(start, stop, step) {
    this.start = start
    this.stop = stop
    this.step = step
  }
  *[Symbol.iterator]() {
    for (let i = this.start; this.step > 0n ? i < this.stop : i > this.stop; i += this.step) yield i
  }
  get size() {
    const n =
      this.step > 0n
        ? (this.stop - this.start + this.step - 1n) / this.step
        : (this.start - this.stop - this.step - 1n) / -this.step
    return n > 0n ? n : 0n
  }
  has(x) {
    const d = int(x) - this.start
    return mod(d, this.step) === 0n && d / this.step >= 0n && d / this.step < this.size
  }
}
class Slice {
  constructor(start = null, stop = null, step = null) {
    this.start = start
    this.stop = stop
    this.step = step
  }
}
const Ellipsis = { toString: () => "Ellipsis" },
  NotImplemented = { toString: () => "NotImplemented" }

// A dimension as its number, a text of a class as text; anything else as it is.
const plain = x =>
  x === null || typeof x !== "object" ? x : x.$int !== undefined ? x.$int : x.$text !== undefined ? x.$text : x
const isText = x => typeof x === "string" || (x != null && x.$text !== undefined)
const isWhole = x => typeof x === "bigint" || typeof x === "boolean" || (x != null && x.$int !== undefined)
const isNumber = x => typeof x === "number" || isWhole(x)

// Calls

// A function with the names of its parameters: by position, by keyword only, and whether it takes any others.
const def = (f, name, positional, keyword, varargs, varkeywords) => {
  if (varargs === undefined) {
    f.__name__ = name
    f.$order = keyword ? positional.concat(keyword) : positional
    return f
  }
  const n = positional.length
  const packed = (args, given) => {
    const list = args.slice(0, n)
    let more = 0
    for (const k in given) {
      const i = positional.indexOf(k)
      if (i >= 0) list[i] = given[k]
      else more++
    }
    list.length = n
    if (varargs) list.push(args.slice(n))
    for (const k of keyword) list.push(given[k])
    if (varkeywords)
      list.push(
        new Dict(more ? Object.entries(given).filter(([k]) => !keyword.includes(k) && !positional.includes(k)) : []),
      )
    return list
  }
  const g = function (...args) {
    return f.apply(this, packed(args, NONE))
  }
  g.$keywords = (self, args, given) => f.apply(self, packed(args, given))
  g.__name__ = name
  return g
}
const NONE = {}
// A call with keywords: of a function that says how it takes them, or by the names of its parameters.
const send = (f, self, args, given) => {
  if (f.$keywords) return f.$keywords(self, args, given)
  if (!f.$order) throw new Error(`no keywords for ${f.__name__ ?? f.name}: ${Object.keys(given)}`)
  return f.apply(self, inOrder(f, args, given))
}
// The arguments of a call with keywords, each at its parameter's place.
const inOrder = (f, args, given) => {
  const list = [...args]
  for (const k in given) {
    const i = f.$order.indexOf(k)
    if (i < 0) throw TypeError_(`${f.__name__}() got an unexpected keyword argument '${k}'`)
    list[i] = given[k]
  }
  return list
}
// A function of this file that takes keywords: they come last, as an object.
const withKeywords = (f, count = f.length - 1) => {
  const filled = (args, given) => {
    while (args.length < count) args.push(undefined)
    args.push(given)
    return f(...args)
  }
  const g = (...args) => filled(args, {})
  g.$keywords = (_, args, given) => filled([...args], given)
  return g
}
const apply = (f, args, given) => {
  for (const _ in given) return send(f, undefined, args, given)
  return f(...args)
}
const methodsOf = o => {
  switch (typeof o) {
    case "string":
      return TEXT
    case "bigint":
      return INT
    case "object":
      return Array.isArray(o)
        ? LIST
        : o instanceof Dict
          ? DICT
          : o instanceof PySet
            ? SET
            : o !== null && o.$text !== undefined && !o.$class.$own?.has("replace")
              ? TEXT
              : null
  }
  return null
}
const call = (o, name, ...args) => {
  if (typeof o === "object" && o !== null && o.$class !== undefined && o.$text === undefined) {
    const f = o[name]
    if (f !== undefined) return f.apply(f.$isClassMethod ? o.$class : o, args)
  }
  const method = methodsOf(o)?.[name]
  if (method) return method(plain(o), ...args)
  if (typeof o === "function" && o.$isClass) return fromClass(o, name)(...args)
  const f = o[name]
  if (f === undefined) throw AttributeError_(`${repr(o)} has no ${name}`)
  if (f.$isClassMethod) return f.apply(o.$class, args)
  return f.apply(o, args)
}
const callKeywords = (o, name, args, given) => {
  const methods = methodsOf(o)
  if (methods && Object.hasOwn(methods, name)) return apply(methods[name], [o, ...args], given)
  if (typeof o === "function" && o.$isClass) return apply(fromClass(o, name), args, given)
  const f = o[name]
  if (f === undefined) throw AttributeError_(`${repr(o)} has no ${name}`)
  for (const _ in given) return send(f, f.$isClassMethod ? o.$class : o, args, given)
  return f.apply(f.$isClassMethod ? o.$class : o, args)
}
const bound = (f, self) => {
  const g = (...args) => f.apply(self, args)
  g.$keywords = (_, args, given) => send(f, self, args, given)
  g.$order = f.$order
  define(g, "__name__", f.__name__)
  return g
}
// An attribute of a class: a method of the class bound to it, a method of its objects that takes the object first.
const fromClass = (c, name) => {
  if (Object.hasOwn(c, name) && name !== "name" && name !== "length") return c[name]
  const f = c.prototype[name]
  if (f === undefined) throw AttributeError_(`class ${c.__name__} has no ${name}`)
  if (typeof f !== "function" || f.$isClass || f.$isValue) return f
  if (f.$isClassMethod) return bound(f, c)
  return ofObject(f)
}
const get = (o, name) => {
  if (typeof o === "object" && o !== null) {
    const v = o[name]
    if (v !== undefined && typeof v !== "function") return v
  }
  if (typeof o === "function" && o.$isClass) {
    if (name === "__name__") return o.__name__
    return fromClass(o, name)
  }
  if (o == null) throw AttributeError_(`None has no ${name}`)
  const v = o[name]
  if (typeof o === "bigint") {
    if (name === "numerator" || name === "real") return o
    if (name === "denominator") return 1n
  }
  const methods = methodsOf(o)
  if (methods && Object.hasOwn(methods, name)) return (...args) => methods[name](plain(o), ...args)
  if (name === "__class__") return type(o)
  if (name === "__module__") return py.running
  if (name === "__doc__") return null
  if (v === undefined) {
    if (o.$int !== undefined && (name === "numerator" || name === "denominator"))
      return name === "numerator" ? o.$int : 1n
    if (o.__getattr__) return o.__getattr__(name)
    throw AttributeError_(`${typeof o === "object" ? o.$class?.__name__ : typeof o} has no ${name}`)
  }
  if (typeof v === "function" && o.$class && !v.$isClass && !Object.hasOwn(o, name) && !v.$isValue)
    return bound(v, v.$isClassMethod ? o.$class : o)
  return v
}

// A method as a function that takes its object first: what `Class.method` is.
const ofObject = f => {
  const g = (self, ...args) => f.apply(self, args)
  g.$keywords = (_, [self, ...args], given) => send(f, self, args, given)
  return g
}
// Classes: functions that make an object when called; what is set in the body of a class is on its prototype.

// An object that can be called is a function with the methods of its class.
const callable_ = c => {
  /** @type {any} */
  const self = function (...args) {
    return self.__call__(...args)
  }
  self.$keywords = (_, args, given) => send(self.__call__, self, args, given)
  return Object.setPrototypeOf(self, c.prototype)
}
const construct = (c, args, given) => {
  const { make, init, isCalled } = (c.$making ??= {
    make: c.prototype.__new__,
    init: c.prototype.__init__,
    isCalled: !!c.prototype.__call__,
  })
  if (make) return given === NONE ? make.apply(c, args) : send(make, c, args, given)
  const self = isCalled ? callable_(c) : Object.create(c.prototype)
  if (init && given === NONE) init.apply(self, args)
  else if (init) send(init, self, args, given)
  return self
}
const makeClass = (name, base) => {
  /** @type {any} */
  const c = function (...args) {
    return construct(c, args, NONE)
  }
  c.$making = null // how objects are made, once the first one is
  c.$keywords = (_, args, given) => construct(c, args, given)
  c.$isClass = true
  c.$base = base
  if (base) Object.setPrototypeOf(c, base)
  define(c, "__name__", name)
  c.prototype = Object.create(base ? base.prototype : null)
  define(c.prototype, "$class", c)
  c.$annotations = new Map()
  c.$own = new Set()
  c.$get = attribute => c.prototype[attribute]
  c.$set = (attribute, value) => {
    c.$own.add(attribute)
    if (value instanceof Property)
      Object.defineProperty(c.prototype, attribute, { ...value.descriptor(attribute), configurable: true })
    else {
      if (typeof value === "function" && !value.__name__) value.$isValue = true
      Object.defineProperty(c.prototype, attribute, { value, writable: true, configurable: true })
      define(
        c,
        attribute,
        typeof value !== "function" || value.$isClassMethod || value.$isValue || value.$isClass
          ? value
          : ofObject(value),
      )
    }
  }
  c.$annotate = (attribute, kind, value) => {
    c.$annotations.set(attribute, kind)
    if (value !== undefined) c.$set(attribute, value)
  }
  return c
}
const object = makeClass("object", null)
class Property {
  constructor(read, keep = false) {
    this.read = read
    this.keep = keep
  }
  descriptor(name) {
    const { read, keep } = this
    return keep
      ? {
          get() {
            return define(this, name, read.call(this))
          },
        }
      : {
          get() {
            return read.call(this)
          },
          set(value) {
            define(this, name, value)
          },
        }
  }
}
const class_ = (name, bases, options, body) => {
  const base =
    bases
      .map(b => (b === int ? PyInt : b === str ? PyText : b instanceof Type && b.origin === dict ? PyDict : b))
      .find(b => b.$isClass && b !== object) ?? object
  const c = makeClass(name, base)
  body(c)
  if (base.$made) base.$made(c, options)
  if (base.$made && !c.$made) c.$made = base.$made
  if (c.prototype.__eq__ && c.$own.has("__eq__") && !c.prototype.__hash__) c.$unhashable = true
  return c
}
const super_ = (c, self, name, args, given) => {
  const f = c.$base.prototype[name]
  if (f === undefined) {
    if (name === "__init__") return null
    throw AttributeError_(`super of ${c.__name__} has no ${name}`)
  }
  for (const _ in given) return send(f, self, args, given)
  return f.apply(self, args)
}
const superGet = (c, self, name) => {
  const v = Reflect.get(c.$base.prototype, name, self)
  return typeof v === "function" && !v.$isValue ? bound(v, self) : v
}
const mro = c => (c ? [...mro(c.$base), c] : [])
const fieldsOf = c => {
  const all = new Map()
  for (const k of mro(c))
    for (const [name, kind] of k.$annotations) {
      if (k.$isDataclass || k === c)
        all.set(name, { kind, value: k.$own.has(name) ? k.prototype[name] : all.get(name)?.value })
    }
  return all
}
class Field {
  constructor(given) {
    this.default = MISSING
    this.init = true
    Object.assign(this, given)
    this.metadata = given.metadata ?? new Dict()
  }
}
const made = factory => (factory instanceof Type ? factory.origin() : factory())
const MISSING = { toString: () => "MISSING" }
const isClassVar = kind => {
  const k = String(kind)
  return k.includes("ClassVar")
}
const dataclass = withKeywords((c, options) => {
  const make = c => {
    c.$isDataclass = true
    const fields = []
    for (const [name, { kind, value }] of fieldsOf(c)) {
      if (isClassVar(kind)) continue
      const old = mro(c.$base)
        .reverse()
        .find(b => b.$fields)
        ?.$fields.find(f => f.name === name)
      const field =
        value instanceof Field
          ? value
          : c.$annotations.has(name) || !old
            ? new Field({ default: value === undefined ? MISSING : value })
            : old
      field.name = name
      fields.push(field)
      if (field.default !== MISSING && c.$own.has(name)) define(c.prototype, name, field.default)
    }
    c.$fields = fields
    const given = fields.filter(f => f.init !== false)
    const names = given.map(f => f.name),
      others = fields.filter(f => f.init === false)
    const otherwise = f => {
      if (f.default_factory) return made(f.default_factory)
      if (f.default !== MISSING) return f.default
      throw TypeError_(`${c.__name__}() is missing ${f.name}`)
    }
    const fill = Object.hasOwn(c, "$fill")
      ? c.$fill
      : (self, ...args) => {
          for (let i = 0; i < names.length; i++) self[names[i]] = args[i]
        }
    const init = function (...args) {
      for (let i = 0; i < names.length; i++) if (args[i] === undefined) args[i] = otherwise(given[i])
      fill(this, ...args)
      for (const f of others) this[f.name] = f.default_factory ? made(f.default_factory) : f.default
      if (this.__post_init__) this.__post_init__()
      return null
    }
    c.$set("__init__", def(init, "__init__", names))
    if (options.eq !== false) {
      define(c.prototype, "__eq__", function (other) {
        return other != null && other.$class === this.$class
          ? fields.every(f => eq(this[f.name], other[f.name]))
          : NotImplemented
      })
      if (!c.$own.has("__hash__"))
        define(c.prototype, "__hash__", function () {
          return `\u0001${id(c)}(${fields.map(f => (f.hash === false ? "" : part(this[f.name]))).join(",")})`
        })
    }
    if (!c.prototype.__repr__)
      define(c.prototype, "__repr__", function () {
        return `${c.__name__}(${fields.map(f => `${f.name}=${repr(this[f.name])}`).join(", ")})`
      })
    return c
  }
  return c === undefined ? make : make(c)
}, 1)
const isEnum = kind => c => {
  const members = []
  for (const name of c.$own) {
    const value = c.prototype[name]
    if (typeof value === "function" || name.startsWith("__")) continue
    const member = Object.create(c.prototype)
    Object.assign(member, { value })
    define(member, "name", name)
    if (kind === "text") define(member, "$text", value)
    define(c, name, member)
    c.prototype[name] = member
    members.push(member)
  }
  c.$members = members
  c[Symbol.iterator] = () => members[Symbol.iterator]()
}
const Enum = makeClass("Enum", object),
  StrEnum = makeClass("StrEnum", object)
Enum.$made = isEnum()
StrEnum.$made = isEnum("text")
const NamedTuple = makeClass("NamedTuple", object)
NamedTuple.$made = c => dataclass(c)
define(NamedTuple.prototype, Symbol.iterator, function* () {
  for (const f of this.$class.$fields) yield this[f.name]
})
// A whole number or a text of a class of its own: `$int` or `$text` is what it is.
const PyInt = makeClass("int", object)
define(PyInt.prototype, "__new__", function (cls, value) {
  const self = Object.create(cls.prototype)
  self.$int = int(value)
  return self
})
const PyText = makeClass("str", object)
define(PyText.prototype, "__new__", function (value) {
  const self = Object.create(this.prototype)
  define(self, "$text", plain(value))
  return self
})
// A dict of a class of its own.
const PyDict = makeClass("dict", object)
define(PyDict.prototype, "__init__", function () {
  this.$dict = new Dict()
  return null
})
define(PyDict.prototype, "__getitem__", function (k) {
  return this.$dict.map.get(key(k))?.[1] ?? this.__missing__(k)
})
define(PyDict.prototype, "__setitem__", function (k, value) {
  this.$dict.put(k, value)
})

const exception = (name, base) => {
  const c = makeClass(name, base)
  if (!base) {
    Object.setPrototypeOf(c.prototype, Error.prototype)
    define(c.prototype, "__init__", function (...args) {
      define(this, "args", tuple(args))
    })
    define(c.prototype, "__str__", function () {
      return this.args?.length ? str(this.args[0]) : ""
    })
    Object.defineProperty(c.prototype, "message", {
      get() {
        return str(this)
      },
    })
  }
  return c
}
const Exception = exception("Exception", null)
const ValueError = exception("ValueError", Exception),
  TypeError$ = exception("TypeError", Exception)
const KeyError = exception("KeyError", Exception),
  IndexError = exception("IndexError", Exception)
const AttributeError = exception("AttributeError", Exception),
  OverflowError = exception("OverflowError", Exception)
const UnicodeEncodeError = exception("UnicodeEncodeError", ValueError),
  ZeroDivisionError = exception("ZeroDivisionError", Exception),
  NotImplementedError = exception("NotImplementedError", Exception)
const TypeError_ = m => TypeError$(m),
  AttributeError_ = m => AttributeError(m)
const raised = e => (e.$isClass ? e() : e)
const catches = (error, kind) =>
  isinstance(error, kind) || (error instanceof RangeError && isinstance(OverflowError(""), kind))

// Operators

const tried = (a, b, forward, backward) => {
  if (a != null && a[forward] && typeof a !== "string") {
    const result = a[forward](b)
    if (result !== NotImplemented) return result
  }
  if (b != null && b[backward] && typeof b !== "string") {
    const result = b[backward](a)
    if (result !== NotImplemented) return result
  }
  return NotImplemented
}
const op = (a, b, forward, backward, sign) => {
  const result = tried(a, b, forward, backward)
  if (result === NotImplemented) throw TypeError_(`unsupported operand types for ${sign}: ${repr(a)}, ${repr(b)}`)
  return result
}
const arithmetic = (forward, backward, sign, whole, real) => (a, b) => {
  const s = typeof a,
    t = typeof b
  if (s === "bigint" && t === "bigint") return whole(a, b)
  if (s === "number" && t === "number") return real(a, b)
  if ((s === "object" && a !== null && a[forward]) || (t === "object" && b !== null && b[backward])) {
    if (Array.isArray(a) && !a[forward]) return other(sign, a, plain(b))
    const result = tried(a, b, forward, backward)
    if (result !== NotImplemented) return result
  }
  if (isNumber(a) && isNumber(b)) {
    const x = wholeOf(a),
      y = wholeOf(b)
    if (typeof x === "bigint" && typeof y === "bigint") return whole(x, y)
    return real(Number(x), Number(y))
  }
  return other(sign, a, b)
}
const wholeOf = x => (typeof x === "boolean" ? BigInt(x) : typeof x === "object" ? x.$int : x)
const other = (sign, a, b) => {
  if (sign === "+") {
    if (isText(a) && isText(b)) return plain(a) + plain(b)
    if (Array.isArray(a) && Array.isArray(b)) return [...a, ...b]
  }
  if (sign === "*") {
    if (isWhole(a)) [a, b] = [b, a]
    if (isText(a)) return plain(a).repeat(Number(int(b)))
    if (Array.isArray(a)) {
      const n = Number(int(b)),
        items = []
      for (let i = 0; i < n; i++) items.push(...a)
      return items
    }
  }
  if (a instanceof PySet && sign === "-")
    return setOf(
      a,
      [...a].filter(x => !b.has(x)),
    )
  throw TypeError_(`unsupported operand types for ${sign}: ${repr(a)}, ${repr(b)}`)
}
const setOf = (like, items) => (like instanceof Frozen ? new Frozen(items) : new PySet(items))
const add = arithmetic(
  "__add__",
  "__radd__",
  "+",
  (a, b) => a + b,
  (a, b) => a + b,
)
const sub = arithmetic(
  "__sub__",
  "__rsub__",
  "-",
  (a, b) => a - b,
  (a, b) => a - b,
)
const mul = arithmetic(
  "__mul__",
  "__rmul__",
  "*",
  (a, b) => a * b,
  (a, b) => a * b,
)
const div = arithmetic(
  "__truediv__",
  "__rtruediv__",
  "/",
  (a, b) => {
    if (b === 0n) throw ZeroDivisionError("division by zero")
    return Number(a) / Number(b)
  },
  (a, b) => a / b,
)
/**
 * @param {bigint} a
 * @param {bigint} b
 */
const floored = (a, b) => {
  if (b === 0n) throw ZeroDivisionError("division by zero")
  const q = a / b
  return a % b !== 0n && a < 0n !== b < 0n ? q - 1n : q
}
const floordiv = arithmetic("__floordiv__", "__rfloordiv__", "//", floored, (a, b) => Math.floor(a / b))
const mod = arithmetic(
  "__mod__",
  "__rmod__",
  "%",
  (a, b) => a - b * floored(a, b),
  (a, b) => a - b * Math.floor(a / b),
)
const pow = arithmetic(
  "__pow__",
  "__rpow__",
  "**",
  (a, b) => (b >= 0n ? a ** b : Number(a) ** Number(b)),
  (a, b) => a ** b,
)
const matmul = (a, b) => op(a, b, "__matmul__", "__rmatmul__", "@")
const bitand = (a, b) =>
  a instanceof PySet
    ? setOf(
        a,
        [...a].filter(x => has(x, b)),
      )
    : typeof a === "boolean" && typeof b === "boolean"
      ? a && b
      : isWhole(a) && isWhole(b)
        ? int(a) & int(b)
        : op(a, b, "__and__", "__rand__", "&")
const bitor = (a, b) => {
  if (a instanceof PySet) return setOf(a, [...a, ...b])
  if (a instanceof Dict) return new Dict([...entries(a), ...entries(b)])
  if (isWhole(a) && isWhole(b)) return int(a) | int(b)
  return a?.$isArray || b?.$isArray ? op(a, b, "__or__", "__ror__", "|") : new Union([a, b])
}
const bitxor = (a, b) => (isWhole(a) && isWhole(b) ? int(a) ^ int(b) : op(a, b, "__xor__", "__rxor__", "^"))
const lshift = (a, b) => int(a) << int(b)
const neg = a => (typeof a === "bigint" || typeof a === "number" ? -a : a.__neg__ ? a.__neg__() : -plain(a))
const iadd = (a, b) => {
  if (!Array.isArray(a)) return add(a, b)
  for (const x of b) a.push(x)
  return a
}
const ibitor = (a, b) => {
  if (a instanceof Dict) for (const [k, v] of entries(b)) a.put(k, v)
  else if (a instanceof PySet && !(a instanceof Frozen)) for (const x of b) a.add(x)
  else return bitor(a, b)
  return a
}
// 1 is 1.0 and True.
const isSame = (x, y) => x === y || (typeof x !== typeof y && x <= y && x >= y)
const eq = (a, b) => {
  if (a === b) return true
  const s = typeof a,
    t = typeof b
  if (s === t && s !== "object") return false
  if (a == null || b == null) return a == null && b == null
  if ((s === "object" && a.$isArray) || (t === "object" && b.$isArray)) return op(a, b, "__eq__", "__eq__", "==")
  if (isNumber(a) && isNumber(b)) return isSame(plain(a), plain(b))
  if (isText(a) && isText(b)) return plain(a) === plain(b)
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((x, i) => eq(x, b[i]))
  if (a instanceof Dict && b instanceof Dict)
    return a.map.size === b.map.size && entries(a).every(([k, v]) => b.has(k) && eq(v, b.read(k)))
  if (a instanceof PySet && b instanceof PySet) return a.map.size === b.map.size && [...a].every(x => b.has(x))
  for (const [x, y] of [
    [a, b],
    [b, a],
  ])
    if (typeof x === "object" && x.__eq__) {
      const result = x.__eq__(y)
      if (result !== NotImplemented) return result
    }
  return false
}
const ne = (a, b) => {
  const result = (a != null && a.$isArray) || (b != null && b.$isArray) ? op(a, b, "__ne__", "__ne__", "!=") : eq(a, b)
  return result.$isArray ? result : !truth(result)
}
const ordered = (forward, backward, decide) => (a, b) => {
  const s = typeof a
  if (
    (s === "bigint" || s === "number" || s === "string") &&
    (typeof b === "bigint" || typeof b === "number" || typeof b === "string")
  )
    return decide(a < b ? -1 : a > b ? 1 : 0)
  const x = plain(a),
    y = plain(b)
  if ((typeof x !== "object" || x === null) && (typeof y !== "object" || y === null))
    return decide(x < y ? -1 : x > y ? 1 : 0)
  if (a instanceof PySet) return decide([...a].every(v => b.has(v)) ? (a.map.size < b.map.size ? -1 : 0) : NaN)
  if (Array.isArray(a) && Array.isArray(b)) return decide(compare(a, b))
  return op(a, b, forward, backward, "<")
}
const lt = ordered("__lt__", "__gt__", c => c < 0),
  le = ordered("__le__", "__ge__", c => c <= 0)
const gt = ordered("__gt__", "__lt__", c => c > 0),
  ge = ordered("__ge__", "__le__", c => c >= 0)
const compare = (a, b) => {
  if (Array.isArray(a)) {
    for (let i = 0; i < Math.min(a.length, b.length); i++) {
      const c = compare(a[i], b[i])
      if (c) return c
    }
    return a.length - b.length
  }
  return eq(a, b) ? 0 : lt(a, b) ? -1 : 1
}
const has = (x, all) => {
  if (all instanceof Dict || all instanceof PySet || all instanceof Range) return all.has(x)
  if (isText(all)) return plain(all).includes(plain(x))
  if (all.__contains__) return all.__contains__(x)
  for (const y of all) if (x === y || truth(eq(x, y))) return true
  return false
}
const chain = (names, ...values) => {
  for (let i = 0; i < names.length; i++) if (!truth(py[names[i]](values[i], values[i + 1]))) return false
  return true
}
const truth = x => {
  switch (typeof x) {
    case "boolean":
      return x
    case "bigint":
      return x !== 0n
    case "number":
      return x !== 0
    case "string":
      return x !== ""
    case "function":
      return true
  }
  if (x == null) return false
  if (Array.isArray(x)) return x.length > 0
  if (x instanceof Dict || x instanceof PySet) return x.map.size > 0
  if (x.__bool__) return x.__bool__()
  if (x.$int !== undefined) return x.$int !== 0n
  if (x.$text !== undefined) return x.$text !== ""
  if (x instanceof Range) return x.size > 0n
  return true
}
const and = (a, ...rest) => {
  for (const next of rest) {
    if (!truth(a)) return a
    a = next()
  }
  return a
}
const or = (a, ...rest) => {
  for (const next of rest) {
    if (truth(a)) return a
    a = next()
  }
  return a
}
const place = (list, i) => {
  const at = Number(int(i)),
    n = at < 0 ? at + list.length : at
  if (n < 0 || n >= list.length) throw IndexError("index out of range")
  return n
}
const item = (o, k) => {
  if (typeof o === "string" || Array.isArray(o)) {
    if (k instanceof Slice) {
      const all = [...o],
        n = all.length,
        step = k.step == null ? 1 : Number(int(k.step))
      const at = (x, otherwise) =>
        x == null ? otherwise : Math.max(0, Math.min(n, Number(int(x)) < 0 ? n + Number(int(x)) : Number(int(x))))
      const picked = []
      if (step > 0) for (let i = at(k.start, 0), end = at(k.stop, n); i < end; i += step) picked.push(all[i])
      else
        for (let i = k.start == null ? n - 1 : at(k.start), end = k.stop == null ? -1 : at(k.stop); i > end; i += step)
          picked.push(all[i])
      return typeof o === "string" ? picked.join("") : picked
    }
    return o[place(o, k)]
  }
  if (o instanceof Dict) {
    const pair = o.map.get(key(k))
    if (!pair) throw KeyError(k)
    return pair[1]
  }
  if (typeof o === "function" || o instanceof Type) return new Type(o, Array.isArray(k) ? k : [k])
  if (o instanceof Range) return o.start + int(k) * o.step
  return o.__getitem__(k)
}
const setitem = (o, k, value) => {
  if (Array.isArray(o)) {
    if (k instanceof Slice) throw new Error("assignment to a slice")
    o[place(o, k)] = value
  } else if (o instanceof Dict) o.put(k, value)
  else o.__setitem__(k, value)
}
const unpack = (value, count, star, after) => {
  const items = Array.isArray(value) ? value : [...value]
  if (star === undefined) {
    if (items.length !== count) throw ValueError(`expected ${count} values to unpack, got ${items.length}`)
    return items
  }
  const end = items.length - after
  return [...items.slice(0, star), items.slice(star, end), ...items.slice(end)]
}

// Built-in functions and types

const builtin = (name, make, check) => {
  make.$isBuiltin = true
  define(make, "__name__", name)
  make.$check = check
  return make
}
const int = builtin(
  "int",
  x => {
    switch (typeof x) {
      case "bigint":
        return x
      case "boolean":
        return BigInt(x)
      case "number":
        if (!Number.isFinite(x)) throw OverflowError("cannot convert float infinity to integer")
        return BigInt(Math.trunc(x))
      case "string":
        return BigInt(x)
    }
    if (x.$int !== undefined) return x.$int
    if (x.__int__) return x.__int__()
    throw TypeError_(`int() of ${repr(x)}`)
  },
  isWhole,
)
PyInt.$builtin = int
for (const [name, f] of Object.entries({
  __add__: add,
  __sub__: sub,
  __mul__: mul,
  __eq__: eq,
  __radd__: (a, b) => add(b, a),
  __rsub__: (a, b) => sub(b, a),
  __rmul__: mul,
})) {
  int[name] = (a, b) => f(plain(a), plain(b))
}
int.__hash__ = x => x
const str = builtin(
  "str",
  /** @param {any} x */
  (x = "") => {
    if (typeof x === "string") return x
    if (x != null && typeof x === "object" && !Array.isArray(x)) {
      if (x.__str__) return x.__str__()
      if (x.$text !== undefined) return x.$text
    }
    return repr(x)
  },
  isText,
)
PyText.$builtin = str
const float = builtin(
  "float",
  x => (x != null && x.__float__ ? x.__float__() : Number(plain(x))),
  x => typeof x === "number",
)
const bool = builtin(
  "bool",
  x => truth(x),
  x => typeof x === "boolean",
)
const list = builtin("list", (x = []) => [...x], Array.isArray)
const tuple_ = builtin("tuple", tuple, x => Array.isArray(x) || x instanceof NamedTuple)
const pairs = x => (x instanceof Dict ? x.map.values() : call(x, "items"))
const entries = x => (x instanceof Dict ? [...x.map.values()] : [...x])
const dict = builtin(
  "dict",
  withKeywords((x, given) => {
    const d = new Dict(x === undefined ? [] : entries(x))
    for (const k in given) d.put(k, given[k])
    return d
  }, 1),
  x => x instanceof Dict,
)
dict.fromkeys = (keys, value = null) => new Dict([...keys].map(k => [k, value]))
const set = builtin(
  "set",
  x => new PySet(x),
  x => x instanceof PySet && !(x instanceof Frozen),
)
const frozenset = builtin(
  "frozenset",
  x => new Frozen(x),
  x => x instanceof Frozen,
)
const range = (a, b, step = 1n) => (b === undefined ? new Range(0n, int(a), 1n) : new Range(int(a), int(b), int(step)))
const type = x => {
  switch (typeof x) {
    case "bigint":
      return int
    case "number":
      return float
    case "string":
      return str
    case "boolean":
      return bool
  }
  if (x === null) return NoneType
  if (x.$class) return x.$class
  return Array.isArray(x)
    ? list
    : x instanceof Dict
      ? dict
      : x instanceof Frozen
        ? frozenset
        : x instanceof PySet
          ? set
          : typeof x === "function"
            ? class$
            : object
}
const class$ = builtin("type", type, x => typeof x === "function" && (x.$isClass || x.$isBuiltin))
const NoneType = builtin(
  "NoneType",
  () => null,
  x => x == null,
)
const isinstance = (x, kind) => {
  if (Array.isArray(kind)) {
    for (let i = 0; i < kind.length; i++) if (isinstance(x, kind[i])) return true
    return false
  }
  if (kind instanceof Union) return kind.parts.some(k => isinstance(x, k))
  if (kind === null) return x == null
  if (kind.$check) return kind.$check(x)
  if (kind.$isClass) return x != null && (typeof x === "object" || typeof x === "function") && x instanceof kind
  throw new Error(`isinstance of ${String(kind)}`)
}
const len = x => {
  if (typeof x === "string" || Array.isArray(x)) return BigInt(x.length)
  if (x instanceof Dict || x instanceof PySet) return BigInt(x.map.size)
  if (x instanceof Range) return x.size
  if (x.$text !== undefined) return BigInt(x.$text.length)
  return x.__len__()
}
const sum = withKeywords((all, start, given) => {
  let total = start ?? given?.start ?? 0n
  for (const x of all) total = add(total, x)
  return total
}, 2)
const extreme = better => {
  /** @param {{ key?: any, default?: any }} given */
  const f = (args, given = {}) => {
    const { key: by, default: otherwise } = given
    const all = args.length === 1 ? [...args[0]] : args
    if (!all.length) {
      if (otherwise !== undefined) return otherwise
      throw ValueError("of nothing")
    }
    let best = all[0],
      value = by ? by(best) : best
    for (const x of all.slice(1)) {
      const v = by ? by(x) : x
      if (truth(better(v, value))) [best, value] = [x, v]
    }
    return best
  }
  const g = (...args) => f(args)
  g.$keywords = (_, args, given) => f(args, given)
  return g
}
const min = extreme((a, b) => (typeof a === "object" && Array.isArray(a) ? compare(a, b) < 0 : lt(a, b)))
const max = extreme((a, b) => (typeof a === "object" && Array.isArray(a) ? compare(a, b) > 0 : gt(a, b)))
/** @param {{ key?: any, reverse?: any }} given */
const sorted = withKeywords((all, given = {}) => {
  const { key: by, reverse } = given
  const items = [...all]
    .map(x => [by ? by(x) : x, x])
    .sort((a, b) => compare(a[0], b[0]))
    .map(([, x]) => x)
  return reverse ? items.reverse() : items
}, 1)
const any = all => {
  for (const x of all) if (truth(x)) return true
  return false
}
const all = items => {
  for (const x of items) if (!truth(x)) return false
  return true
}
const zip = (...lists) => {
  if (lists.length === 2) {
    const [a, b] = lists.map(x => (Array.isArray(x) ? x : [...x])),
      n = Math.min(a.length, b.length),
      rows = []
    for (let i = 0; i < n; i++) rows.push([a[i], b[i]])
    return rows
  }
  const columns = lists.map(x => [...x]),
    rows = []
  for (let i = 0; i < Math.min(...columns.map(c => c.length)); i++) rows.push(tuple(columns.map(c => c[i])))
  return rows
}
const enumerate = (items, start = 0n) => [...items].map((x, i) => [BigInt(i) + start, x])
const map = (f, ...lists) =>
  lists.length === 1
    ? (Array.isArray(lists[0]) ? lists[0] : [...lists[0]]).map(x => f(x))
    : zip(...lists).map(row => f(...row))
const filter = (f, items) => [...items].filter(x => (f === null ? truth(x) : truth(f(x))))
const reversed = items => [...items].reverse()
const iter = x => x[Symbol.iterator]()
const next = (iterator, otherwise) => {
  const it = iterator.next ? iterator : iter(iterator)
  const { value, done } = it.next()
  if (!done) return value
  if (otherwise === undefined) throw ValueError("nothing left")
  return otherwise
}
const abs = x => (x.__abs__ ? x.__abs__() : lt(x, 0n) ? neg(plain(x)) : plain(x))
const divmod = (a, b) => [floordiv(a, b), mod(a, b)]
const hash = x => {
  const k = key(x)
  return k
}
const getattr = (o, name, otherwise) => {
  if (otherwise !== undefined && (o == null || (o[name] === undefined && !methodsOf(o)))) return otherwise
  try {
    return get(o, name)
  } catch (e) {
    if (otherwise === undefined || !isinstance(e, AttributeError)) throw e
    return otherwise
  }
}
const hasattr = (o, name) => o != null && typeof o === "object" && name in o
const setattr = (o, name, value) => {
  define(o, name, value)
  return null
}
object.__setattr__ = (o, name, value) => {
  define(o, name, value)
}
const callable = x => typeof x === "function"
const ord = x => BigInt(plain(x).codePointAt(0))
const round = x => BigInt(Math.round(Number(x)))

// A character as Python writes one that it does not print.
const SHORT = { "\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\", "'": "\\'" }
const escaped = c => {
  const code = c.codePointAt(0) ?? 0,
    [letter, digits] = code < 0x100 ? ["x", 2] : code < 0x10000 ? ["u", 4] : ["U", 8]
  return SHORT[c] ?? `\\${letter}${code.toString(16).padStart(digits, "0")}`
}
const repr = x => {
  if (x == null) return "None"
  switch (typeof x) {
    case "string": {
      const quote = x.includes("'") && !x.includes('"') ? '"' : "'"
      const isSeen = c => c === " " || (c === "'" && quote === '"')
      return quote + x.replace(/[\\\p{C}\p{Z}]|'/gu, c => (isSeen(c) ? c : escaped(c))) + quote
    }
    case "bigint":
      return `${x}`
    case "boolean":
      return x ? "True" : "False"
    case "number": {
      if (!Number.isFinite(x)) return Number.isNaN(x) ? "nan" : x > 0 ? "inf" : "-inf"
      if (Number.isInteger(x) && Math.abs(x) < 1e16) return `${x}.0`
      const digits = Math.abs(x) < 1e-4 || Math.abs(x) >= 1e16 ? x.toExponential() : String(x)
      return digits.replace(/e([+-])(\d)$/, "e$10$2")
    }
    case "function":
      return x.__name__ ? `<class '${x.__name__}'>` : "<function>"
  }
  if (x.__repr__) return x.__repr__()
  if (Array.isArray(x)) return `[${x.map(repr).join(", ")}]`
  if (x instanceof Dict)
    return `{${entries(x)
      .map(([k, v]) => `${repr(k)}: ${repr(v)}`)
      .join(", ")}}`
  if (x instanceof PySet) return `{${[...x].map(repr).join(", ")}}`
  if (x.$int !== undefined) return `${x.$int}`
  if (x.$text !== undefined) return repr(x.$text)
  return `<${x.$class?.__name__ ?? "object"}>`
}
/** A number with so many significant digits, as Python's `.3g` writes it. @param {number} x @param {number} digits */
function general(x, digits) {
  if (!Number.isFinite(x)) return repr(x)
  const [first, power] = x.toExponential(digits - 1).split("e"),
    e = Number(power),
    short = (/** @type {string} */ text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text)
  if (e >= -4 && e < digits) return short(x.toFixed(digits - 1 - e))
  return `${short(first)}e${e < 0 ? "-" : "+"}${String(Math.abs(e)).padStart(2, "0")}`
}
const format = (x, spec = "") => {
  if (x != null && x.__format__) return x.__format__(spec)
  if (!spec) return str(x)
  const v = plain(x)
  if (spec === ",") return v < 0 ? `-${format(-v, ",")}` : String(v).replace(/\B(?=(\d{3})+(?!\d))/g, ",")
  const places = /^\.(\d)f$/.exec(spec)
  if (places) return float(x).toFixed(Number(places[1]))
  const significant = /^\.([1-9])g$/.exec(spec)
  if (significant) return general(float(x), Number(significant[1]))
  throw new Error(`format ${spec}`)
}

// Methods of built-in types, the object first

const TEXT = {
  __proto__: null,
  join: (s, parts) => [...parts].map(plain).join(s),
  split: (s, by) => (by == null ? s.split(/\s+/).filter(Boolean) : s.split(by)),
  strip: s => s.trim(),
  replace: (s, a, b) => s.replaceAll(a, b),
  startswith: (s, x) => (Array.isArray(x) ? x.some(p => s.startsWith(plain(p))) : s.startsWith(plain(x))),
  endswith: (s, x) => (Array.isArray(x) ? x.some(p => s.endsWith(plain(p))) : s.endsWith(plain(x))),
  partition: (s, by) => {
    const i = s.indexOf(by)
    return tuple(i < 0 ? [s, "", ""] : [s.slice(0, i), by, s.slice(i + by.length)])
  },
  rpartition: (s, by) => {
    const i = s.lastIndexOf(by)
    return tuple(i < 0 ? ["", "", s] : [s.slice(0, i), by, s.slice(i + by.length)])
  },
  removesuffix: (s, end) => (end && s.endsWith(end) ? s.slice(0, -end.length) : s),
  removeprefix: (s, start) => (s.startsWith(start) ? s.slice(start.length) : s),
  isascii: s => /^[\0-\x7f]*$/.test(s),
  isdigit: s => /^\p{Nd}+$/u.test(s),
  isdecimal: s => /^\p{Nd}+$/u.test(s),
  isalpha: s => /^\p{L}+$/u.test(s),
  isalnum: s => /^[\p{L}\p{N}]+$/u.test(s),
  isupper: s => s === s.toUpperCase() && s !== s.toLowerCase(),
  lower: s => s.toLowerCase(),
  upper: s => s.toUpperCase(),
  count: (s, x) => BigInt(s.split(x).length - 1),
  // Only ever asked for half a character, which no bytes are.
  encode: s => {
    const start = s.search(/\p{Cs}/u)
    if (start >= 0) throw Object.assign(UnicodeEncodeError("half a character"), { start: BigInt(start) })
    return s
  },
}
const INT = {
  __proto__: null,
  bit_length: n => BigInt(n ? n.toString(2).length : 0),
  __eq__: (a, b) => eq(a, b),
  __add__: add,
  __mul__: mul,
}
const LIST = {
  __proto__: null,
  append: (l, x) => {
    l.push(x)
    return null
  },
  extend: (l, items) => {
    for (const x of items) l.push(x)
    return null
  },
  insert: (l, i, x) => {
    const at = Number(int(i))
    l.splice(at < 0 ? Math.max(0, l.length + at) : at, 0, x)
    return null
  },
  pop: (l, i) => (i === undefined ? l.pop() : l.splice(place(l, i), 1)[0]),
  remove: (l, x) => {
    l.splice(Number(LIST.index(l, x)), 1)
    return null
  },
  index: (l, x) => {
    const i = l.findIndex(y => truth(eq(x, y)))
    if (i < 0) throw ValueError("not in list")
    return BigInt(i)
  },
  count: (l, x) => BigInt(l.filter(y => truth(eq(x, y))).length),
  reverse: l => {
    l.reverse()
    return null
  },
  sort: l => {
    l.sort(compare)
    return null
  },
}
const DICT = {
  __proto__: null,
  get: (d, k, otherwise = null) => {
    const pair = d.map.get(key(k))
    return pair ? pair[1] : otherwise
  },
  items: d => [...d.map.values()].map(tuple),
  keys: d => new PySet(d),
  values: d => [...d.map.values()].map(p => p[1]),
  pop: (d, k, otherwise) => {
    const at = key(k),
      pair = d.map.get(at)
    if (!pair && otherwise === undefined) throw KeyError(k)
    d.map.delete(at)
    return pair ? pair[1] : otherwise
  },
  setdefault: (d, k, value = null) => {
    if (!d.has(k)) d.put(k, value)
    return d.read(k)
  },
  update: (d, more) => {
    for (const [k, v] of entries(more)) d.put(k, v)
    return null
  },
  copy: d => new Dict(entries(d)),
}
const SET = {
  __proto__: null,
  add: (s, x) => {
    s.add(x)
    return null
  },
  update: (s, ...all) => {
    for (const items of all) for (const x of items) s.add(x)
    return null
  },
  pop: s => {
    const [[at, x]] = s.map
    s.map.delete(at)
    return x
  },
  union: (s, ...more) => setOf(s, [...s, ...more.flatMap(m => [...m])]),
  intersection: (s, m) =>
    setOf(
      s,
      [...m].filter(x => s.has(x)),
    ),
  isdisjoint: (s, m) => ![...m].some(x => s.has(x)),
  issubset: (s, m) => [...s].every(x => has(x, m)),
  issuperset: (s, m) => [...m].every(x => s.has(x)),
}

// Types as values: what the fields of a config are declared with

class Type {
  constructor(origin, args) {
    this.origin = origin
    this.args = args
  }
  toString() {
    return `${this.origin.__name__}[${this.args.map(String).join(", ")}]`
  }
}
class Union {
  constructor(parts) {
    this.parts = parts.flatMap(p => (p instanceof Union ? p.parts : [p]))
  }
}
class Alias {
  constructor(value) {
    this.value = value
  }
}
const alias = value => new Alias(value)
const marker = name => {
  const f = () => f
  define(f, "__name__", name)
  f.toString = () => name
  return f
}
const resolved = kind =>
  kind instanceof Alias ? resolved(kind.value()) : kind instanceof Union ? new Union(kind.parts.map(resolved)) : kind
const get_type_hints = withKeywords(c => {
  const hints = new Dict()
  for (const k of mro(c))
    for (const [name, kind] of k.$annotations) hints.put(name, isClassVar(kind) ? null : resolved(kind()))
  return hints
}, 1)
const get_args = kind =>
  kind instanceof Union
    ? tuple(kind.parts.map(p => (p === null ? NoneType : p)))
    : kind instanceof Type && kind.origin.__name__ !== "Annotated"
      ? tuple(kind.args)
      : tuple()
const Meta = withKeywords(given => ({ $meta: given }), 0)
const ValidationError = exception("ValidationError", Exception)
const typeName = kind => {
  if (kind === null || kind === NoneType) return "null"
  if (kind instanceof Union) return kind.parts.map(typeName).join(" | ")
  if (kind instanceof Type)
    return kind.origin.__name__ === "Annotated"
      ? typeName(kind.args[0])
      : kind.origin === dict
        ? "object"
        : kind.origin === list
          ? "array"
          : "str"
  return { dict: "object", list: "array", tuple: "array" }[kind.__name__] ?? kind.__name__
}
const valueName = x =>
  x == null
    ? "null"
    : isText(x)
      ? "str"
      : typeof x === "boolean"
        ? "bool"
        : isWhole(x)
          ? "int"
          : typeof x === "number"
            ? "float"
            : Array.isArray(x)
              ? "array"
              : "object"
const fits = (x, kind) => {
  if (kind === null || kind === NoneType) return x == null
  if (kind instanceof Type) {
    const name = kind.origin.__name__
    if (name === "Annotated") return fits(x, kind.args[0])
    if (name === "Literal") return kind.args.some(y => typeof y === typeof x)
    return kind.origin === dict ? x instanceof Dict : Array.isArray(x)
  }
  if (kind.__name__ === "Any") return true
  if (kind === int) return typeof x === "bigint" || (typeof x === "number" && Number.isInteger(x))
  if (kind === float) return typeof x === "number" || typeof x === "bigint"
  if (kind === list) return Array.isArray(x)
  return kind.$check(x)
}
// A value of JSON as the type that a field has; says what was expected in msgspec's words.
const convert = (x, kind, at = "") => {
  const parts = kind instanceof Union ? kind.parts : [kind]
  const chosen = parts.find(
    k =>
      (fits(x, k) &&
        (k === bool || typeof x !== "boolean" || (k instanceof Type && k.origin.__name__ === "Literal"))) ||
      (k !== null && k.__name__ === "Any"),
  )
  if (chosen === undefined)
    throw ValidationError(`Expected \`${typeName(kind)}\`, got \`${valueName(x)}\`${at && ` - at \`${at}\``}`)
  if (chosen instanceof Type) {
    const name = chosen.origin.__name__
    if (name === "Annotated") {
      const value = convert(x, chosen.args[0], at),
        { gt: more, ge: least, le: most, min_length: fewest, max_length: longest } = chosen.args[1].$meta
      if (fewest !== undefined && value.length < fewest)
        throw ValidationError(`Expected \`array\` of length >= ${str(fewest)}`)
      if (longest !== undefined && value.length > longest)
        throw ValidationError(`Expected \`array\` of length <= ${str(longest)}`)
      const word = chosen.args[0] === float ? "float" : "int"
      if (more !== undefined && !gt(value, more))
        throw ValidationError(
          `Expected \`${word}\` ${word === "int" ? `>= ${int(more) + 1n}` : `> ${repr(float(more))}`}`,
        )
      if (least !== undefined && !ge(value, least)) throw ValidationError(`Expected \`${word}\` >= ${str(least)}`)
      if (most !== undefined && !le(value, most)) throw ValidationError(`Expected \`${word}\` <= ${str(most)}`)
      return value
    }
    if (name === "Literal") {
      if (!chosen.args.includes(x)) throw ValidationError(`Invalid enum value ${repr(x)}`)
      return x
    }
    if (chosen.origin === list) return [...x].map((y, i) => convert(y, chosen.args[0], `$[${i}]`))
    return x
  }
  if (chosen === int) return int(x)
  if (chosen === float) return float(x)
  return x
}

// Modules

const gcd = (a, b) => {
  if (a < 0n) a = -a
  if (b < 0n) b = -b
  while (b) [a, b] = [b, a % b]
  return a
}
const Fraction = makeClass("Fraction", object)
const fraction = (n, d) => {
  if (d < 0n) return fraction(-n, -d)
  if (d === 0n) throw ZeroDivisionError("Fraction with denominator 0")
  const g = gcd(n, d),
    self = Object.create(Fraction.prototype)
  self.numerator = g > 1n ? n / g : n
  self.denominator = g > 1n ? d / g : d
  return self
}
const asFraction = x => (x instanceof Fraction ? x : isWhole(x) ? fraction(int(x), 1n) : null)
const ofFloat = x => {
  let d = 1n
  for (; !Number.isInteger(x); d *= 2n) x *= 2
  return fraction(BigInt(x), d)
}
// A number as it is written: 0.4, 1e-05.
const ofDecimal = text => {
  const [, whole, part = "", power = "0"] = /** @type {string[]} */ (/^(\d+)(?:\.(\d*))?(?:e([+-]?\d+))?$/.exec(text)),
    places = BigInt(power) - BigInt(part.length),
    n = BigInt(whole + part)
  return places < 0n ? fraction(n, 10n ** -places) : fraction(n * 10n ** places, 1n)
}
const withFraction = f =>
  function (other) {
    if (typeof other === "number") return f.real(Number(this.numerator) / Number(this.denominator), other)
    const o = asFraction(other)
    return o ? f(this, o) : NotImplemented
  }
const swapped = f => Object.assign((a, b) => f(b, a), { real: (a, b) => f.real(b, a) })
const fractionAdd = Object.assign(
  (a, b) => fraction(a.numerator * b.denominator + b.numerator * a.denominator, a.denominator * b.denominator),
  { real: (a, b) => a + b },
)
const fractionSub = Object.assign(
  (a, b) => fraction(a.numerator * b.denominator - b.numerator * a.denominator, a.denominator * b.denominator),
  { real: (a, b) => a - b },
)
const fractionMul = Object.assign((a, b) => fraction(a.numerator * b.numerator, a.denominator * b.denominator), {
  real: (a, b) => a * b,
})
const fractionDiv = Object.assign((a, b) => fraction(a.numerator * b.denominator, a.denominator * b.numerator), {
  real: (a, b) => a / b,
})
const order = decide =>
  Object.assign(
    (a, b) => {
      const x = a.numerator * b.denominator,
        y = b.numerator * a.denominator
      return decide(x < y ? -1 : x > y ? 1 : 0)
    },
    { real: (a, b) => decide(a < b ? -1 : a > b ? 1 : 0) },
  )
/** @type {Record<string, any>} */
const ofFractions = {
  /** @param {any} n */
  __new__(n = 0n, d = 1n) {
    if (isText(n)) return ofDecimal(plain(n))
    if (typeof n === "number") n = ofFloat(n)
    const above = asFraction(n),
      below = asFraction(d)
    return fractionDiv(above, below)
  },
  __add__: withFraction(fractionAdd),
  __radd__: withFraction(swapped(fractionAdd)),
  __sub__: withFraction(fractionSub),
  __rsub__: withFraction(swapped(fractionSub)),
  __mul__: withFraction(fractionMul),
  __rmul__: withFraction(swapped(fractionMul)),
  __truediv__: withFraction(fractionDiv),
  __rtruediv__: withFraction(swapped(fractionDiv)),
  __floordiv__: withFraction(
    Object.assign(
      (/** @type {Engine.Fraction} */ a, /** @type {Engine.Fraction} */ b) =>
        floored(a.numerator * b.denominator, a.denominator * b.numerator),
      { real: (a, b) => Math.floor(a / b) },
    ),
  ),
  // By a whole number from 0 on.
  __pow__(n) {
    return fraction(this.numerator ** n, this.denominator ** n)
  },
  __lt__: withFraction(order(c => c < 0)),
  __le__: withFraction(order(c => c <= 0)),
  __gt__: withFraction(order(c => c > 0)),
  __ge__: withFraction(order(c => c >= 0)),
  __eq__: withFraction(order(c => c === 0)),
  __hash__() {
    return this.denominator === 1n ? this.numerator : `\u0001f${this.numerator}/${this.denominator}`
  },
  __bool__() {
    return this.numerator !== 0n
  },
  __neg__() {
    return fraction(-this.numerator, this.denominator)
  },
  __abs__() {
    return fraction(this.numerator < 0n ? -this.numerator : this.numerator, this.denominator)
  },
  __int__() {
    return this.numerator / this.denominator
  },
  __float__() {
    return ratio(this.numerator, this.denominator)
  },
  __str__() {
    return this.denominator === 1n ? `${this.numerator}` : `${this.numerator}/${this.denominator}`
  },
  __repr__() {
    return `Fraction(${this.numerator}, ${this.denominator})`
  },
  // As in CPython: the last two of the continued fraction's convergents, whichever is nearer.
  limit_denominator(most = 1000000n) {
    if (this.denominator <= most) return this
    let [p0, q0, p1, q1] = [0n, 1n, 1n, 0n],
      [n, d] = [this.numerator, this.denominator]
    for (;;) {
      const a = floored(n, d),
        q2 = q0 + a * q1
      if (q2 > most) break
      ;[p0, q0, p1, q1] = [p1, q1, p0 + a * p1, q2]
      ;[n, d] = [d, n - a * d]
    }
    const k = (most - q0) / q1
    if (2n * d * (q0 + k * q1) <= this.denominator) return fraction(p1, q1)
    return fraction(p0 + k * p1, q0 + k * q1)
  },
}
for (const name in ofFractions) define(Fraction.prototype, name, ofFractions[name])
// n / d to the nearest number, as Python divides whole numbers.
const ratio = (n, d) => {
  const most = 2n ** 53n
  if (n < most && n > -most && d < most) return Number(n) / Number(d)
  const shift = BigInt(Math.max(0, 66 - (abs(n).toString(2).length - d.toString(2).length)))
  const scaled = (abs(n) << shift) / d,
    sticky = (abs(n) << shift) % d ? 1n : 0n
  const value = Number((scaled << 1n) | sticky) / 2 ** (Number(shift) + 1)
  return n < 0n ? -value : value
}

const math = {
  isqrt: x => {
    const n = int(x)
    let root = BigInt(Math.floor(Math.sqrt(Number(n))))
    while (root * root > n) root--
    while ((root + 1n) * (root + 1n) <= n) root++
    return root
  },
  prod: withKeywords((items, given) => {
    let product = given?.start ?? 1n
    for (const x of items) product = mul(product, x)
    return product
  }, 1),
  floor: x =>
    isWhole(x) ? int(x) : x instanceof Fraction ? floored(x.numerator, x.denominator) : BigInt(Math.floor(x)),
  ceil: x =>
    isWhole(x) ? int(x) : x instanceof Fraction ? -floored(0n - x.numerator, x.denominator) : BigInt(Math.ceil(x)),
  gcd: (...all) => all.map(int).reduce(gcd, 0n),
  lcm: (a, b) => (a * b) / gcd(a, b),
  exp: x => Math.exp(float(x)),
  log: x => Math.log(float(x)),
  sqrt: x => Math.sqrt(float(x)),
  isfinite: x => Number.isFinite(float(x)),
  pi: Math.PI,
  inf: Infinity,
}
// Results by the first argument, and by all others below it.
const cached = () => f => {
  const results = new Map()
  let size = 0
  const g = (...args) => {
    const first = key(args[0]),
      at = args.length < 3 ? key(args[1]) : args.slice(1).map(part).join()
    let below = results.get(first)
    if (below === undefined) results.set(first, (below = new Map()))
    let result = below.get(at)
    if (result === undefined && !below.has(at)) {
      if (size++ > 65536) {
        results.clear()
        results.set(first, (below = new Map()))
        size = 1
      }
      below.set(at, (result = f(...args)))
    }
    return result
  }
  if (f.$order) g.$keywords = (self, args, given) => g(...inOrder(f, args, given))
  g.cache_clear = () => results.clear()
  define(g, "__name__", f.__name__)
  return g
}
const functools = {
  cache: cached(),
  lru_cache: withKeywords(() => cached(), 0),
  cached_property: f => new Property(f, true),
  wraps: () => f => f,
  partial:
    (f, ...first) =>
    (...args) =>
      f(...first, ...args),
}
const itertools = {
  product: (...lists) =>
    lists.map(l => [...l]).reduce((rows, l) => rows.flatMap(r => l.map(x => [...r, x])), [tuple()]),
  groupby: (items, by) => {
    const groups = []
    for (const x of items) {
      const k = by(x)
      if (groups.length && eq(groups.at(-1)[0], k)) groups.at(-1)[1].push(x)
      else groups.push([k, [x]])
    }
    return groups
  },
}
const Counter = () => {
  const d = new Dict()
  return Object.assign(d, {
    map: Object.assign(d.map, {
      get: k =>
        Map.prototype.get.call(d.map, k) ??
        (Map.prototype.set.call(d.map, k, [k, 0n]), Map.prototype.get.call(d.map, k)),
    }),
  })
}

// NumPy's names: functions that hand a call to the array that it is made with, and the types of its elements.

class DType {
  constructor(name, kind, size) {
    this.name = name
    this.kind = kind
    this.size = size
  }
  __str__() {
    return this.name
  }
}
const DTYPES = Object.fromEntries(
  [
    ["bool", "b", 0],
    ["int64", "i", 1],
    ["float32", "f", 2],
    ["float64", "f", 3],
  ].map(([n, k, s]) => [n, new DType(n, k, s)]),
)
const wider = (...types) => {
  // whole numbers and float32 give float64, as in NumPy
  if (types.includes(DTYPES.int64) && types.includes(DTYPES.float32)) return DTYPES.float64
  return types.reduce((a, b) => (b.size > a.size ? b : a))
}
const dtype = x =>
  x instanceof DType ? x : (x.$dtype ?? { bool: DTYPES.bool, int: DTYPES.int64, float: DTYPES.float64 }[x.__name__])
const holder = args => {
  for (const a of args) {
    if (a != null && typeof a === "object") {
      if (a.__array_function__) return a
      if (Array.isArray(a)) {
        const inner = holder(a)
        if (inner) return inner
      }
    }
  }
  return null
}
/** @type {((name: string, args: any[], given: object) => any) | null} */
let ofNumbers = null // makes arrays with numbers, once numpy.mjs is there
const numpyFunction = name => {
  const f = (...args) => asked(args, NONE)
  const asked = (args, given) => {
    const array = holder(args) ?? given.like
    if (!array) {
      if (name === "array") return { shape: [len(args[0])], dtype: DTYPES.float64, items: args[0], $isConstant: true }
      if (ofNumbers) return ofNumbers(name, args, given)
      throw TypeError_(`np.${name} of no array`)
    }
    return array.__array_function__(f, null, args, new Dict(Object.entries(given).filter(([k]) => k !== "like")))
  }
  f.$keywords = (_, args, given) => asked(args, given)
  define(f, "__name__", name)
  return f
}
const ufunc = (name, result) => {
  const f = (...args) => {
    const array = args.find(a => a != null && a.__array_ufunc__)
    if (!array) throw TypeError_(`np.${name} of no array`)
    return array.__array_ufunc__(f, "__call__", ...args)
  }
  f.$isUfunc = true
  f.signature = null
  f.nout = 1n
  define(f, "__name__", name)
  f.resolve_dtypes = ([...types]) => {
    types.pop()
    const known = types.filter(t => t instanceof DType)
    const weak = types.filter(t => !(t instanceof DType)).map(t => (t === int ? DTYPES.int64 : DTYPES.float64))
    let common = known.length ? wider(...known) : wider(...weak)
    for (const w of weak) if (w.kind === "f" ? common.kind !== "f" : common.kind === "b") common = w
    return [result === "bool" ? DTYPES.bool : result === "float" && common.kind !== "f" ? DTYPES.float64 : common]
  }
  return f
}
const UFUNCS = Object.fromEntries([
  ...[
    "add",
    "subtract",
    "multiply",
    "floor_divide",
    "remainder",
    "power",
    "maximum",
    "minimum",
    "negative",
    "abs",
    "absolute",
    "sign",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "invert",
  ].map(n => [n, ufunc(n)]),
  ...["divide", "exp", "log", "log1p", "expm1", "sqrt", "tanh", "cos", "sin", "floor", "logaddexp", "ceil"].map(n => [
    n,
    ufunc(n, "float"),
  ]),
  ...[
    "greater",
    "greater_equal",
    "less",
    "less_equal",
    "equal",
    "not_equal",
    "logical_and",
    "logical_or",
    "logical_not",
    "isfinite",
  ].map(n => [n, ufunc(n, "bool")]),
])
UFUNCS.abs = UFUNCS.absolute
const NDArrayOperatorsMixin = makeClass("NDArrayOperatorsMixin", object)
define(NDArrayOperatorsMixin.prototype, "$isArray", true)
for (const [name, u] of Object.entries({
  add: "add",
  sub: "subtract",
  mul: "multiply",
  truediv: "divide",
  floordiv: "floor_divide",
  mod: "remainder",
  pow: "power",
  and: "bitwise_and",
  or: "bitwise_or",
  xor: "bitwise_xor",
})) {
  define(NDArrayOperatorsMixin.prototype, `__${name}__`, function (other) {
    return this.__array_ufunc__(UFUNCS[u], "__call__", this, other)
  })
  define(NDArrayOperatorsMixin.prototype, `__r${name}__`, function (other) {
    return this.__array_ufunc__(UFUNCS[u], "__call__", other, this)
  })
}
for (const [name, u] of Object.entries({
  lt: "less",
  le: "less_equal",
  gt: "greater",
  ge: "greater_equal",
  eq: "equal",
  ne: "not_equal",
}))
  define(NDArrayOperatorsMixin.prototype, `__${name}__`, function (other) {
    return this.__array_ufunc__(UFUNCS[u], "__call__", this, other)
  })
define(NDArrayOperatorsMixin.prototype, "__neg__", function () {
  return this.__array_ufunc__(UFUNCS.negative, "__call__", this)
})
const numpy = {
  ...UFUNCS,
  ...Object.fromEntries(
    (
      "einsum reshape transpose swapaxes moveaxis concatenate stack split repeat expand_dims take " +
      "take_along_axis arange zeros ones full zeros_like ones_like tril triu cumsum clip sort flip argsort " +
      "argpartition pad sum mean max min prod any all argmax broadcast_to where astype array empty unique " +
      "nonzero"
    )
      .split(" ")
      .map(n => [n, numpyFunction(n)]),
  ),
  dtype: Object.assign(dtype, { $check: x => x instanceof DType }),
  result_type: (...types) => wider(...types.map(t => t.dtype ?? t)),
  ofNumbers: f => (ofNumbers = f),
  inf: Infinity,
  lib: { mixins: { NDArrayOperatorsMixin } },
  ndarray: builtin(
    "ndarray",
    () => null,
    x => x != null && x.$isConstant === true,
  ),
  ufunc: marker("ufunc"),
}
for (const n of ["int64", "float32", "float64"]) numpy[n] = Object.assign(marker(n), { $dtype: DTYPES[n] })

const replace = withKeywords((one, changes) => {
  const fields = one.$class.$fields.map(({ name }) => [name, one[name]])
  return apply(one.$class, [], { ...Object.fromEntries(fields), ...changes })
}, 1)
const Struct = makeClass("Struct", object)
Struct.$made = c => dataclass(c)

const namesOf = {
  functools,
  itertools,
  math,
  numpy,
  fractions: { Fraction },
  enum: { Enum, StrEnum },
  operator: {
    getitem: item,
    index: x => {
      if (isWhole(x)) return int(x)
      throw TypeError_(`${repr(x)} is no whole number`)
    },
  },
  bisect: {
    bisect_left: withKeywords((items, x, { key: by }) => {
      let low = 0n,
        high = len(items)
      while (low < high) {
        const middle = (low + high) / 2n,
          there = item(items, middle)
        if (truth(lt(by ? by(there) : there, x))) low = middle + 1n
        else high = middle
      }
      return low
    }, 2),
  },
  collections: { Counter },
  dataclasses: {
    dataclass,
    MISSING,
    field: withKeywords(given => new Field(given), 0),
    fields: c => c.$fields,
    replace,
  },
  typing: {
    NamedTuple,
    get_type_hints,
    get_args,
    Any: marker("Any"),
    Annotated: marker("Annotated"),
    Literal: marker("Literal"),
    dataclass_transform: withKeywords(() => f => f, 0),
    TypeVar: withKeywords(name => marker(name), 1),
    Protocol: object,
  },
  msgspec: { Meta, convert, ValidationError, Struct },
  "msgspec.structs": { replace },
  weakref: {
    WeakKeyDictionary: () => {
      const kept = new WeakMap()
      return { setdefault: (key, value) => kept.get(key) ?? (kept.set(key, value), value) }
    },
  },
  // Only ever asked for a nearer word of a message.
  difflib: { get_close_matches: withKeywords(() => [], 2) },
  re: {
    sub: (pattern, replace, text) =>
      text.replaceAll(new RegExp(pattern, "g"), (...m) => replace({ __getitem__: i => m[Number(i)] })),
  },
  json: {
    loads: text => {
      try {
        return parse(text)
      } catch (error) {
        throw ValueError(error instanceof Error ? error.message : String(error))
      }
    },
  },
  types: { EllipsisType: Object.assign(marker("EllipsisType"), { $check: x => x === Ellipsis }) },
  "collections.abc": {
    Mapping: builtin(
      "Mapping",
      () => null,
      x => x instanceof Dict,
    ),
    Sequence: builtin(
      "Sequence",
      () => null,
      x => Array.isArray(x),
    ),
  },
}
const absent = name =>
  new Proxy(
    {},
    {
      get: (_, n) =>
        n in (namesOf[name] ?? {})
          ? namesOf[name][n]
          : typeof n === "symbol" || /^[$_]/.test(n)
            ? undefined
            : marker(n),
    },
  )
const modules = new Map()
const module = name => {
  if (!modules.has(name)) modules.set(name, absent(name))
  return modules.get(name)
}
// A module of ours, which runs when one of its names is asked for: what counts is large, and is not to run all at once.
const later = (M, name, body) =>
  Object.defineProperty(M, name, {
    configurable: true,
    enumerable: true,
    get() {
      const before = py.running
      py.running = name
      const own = body()
      py.running = before
      return (Object.defineProperty(M, name, { value: own }), own)
    },
  })
// The names of a module, which may be modules themselves.
const names = (M, base) =>
  new Proxy(
    {},
    {
      get: (_, /** @type {string} */ name) =>
        M[base ? `${base}.${name}` : name] ?? (M[base] && name in M[base] ? M[base][name] : marker(name)),
    },
  )

// JSON with whole numbers as whole numbers: 1 is no 1.0, and no digit is lost. `whole` reads their digits, `table` has
// the last word on an object, as Python's `parse_int` and `object_hook`.
const DEEP = 1000 // of what is read at all
const TOKENS = [
  /([{}[\],:])/,
  /("[^"\\]*(?:\\.[^"\\]*)*")/,
  /(-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)/,
  /(true|false|null|NaN|-?Infinity)/,
]
const TOKEN = `\\s*(?:${TOKENS.map(one => one.source).join("|")})`
const parse = (source, { whole = BigInt, table = d => d } = {}) => {
  const token = new RegExp(TOKEN, "y")
  let at = 0
  const broken = what => new SyntaxError(`broken JSON: line ${source.slice(0, at).split("\n").length}${what}`)
  const read = () => {
    token.lastIndex = at
    const m = token.exec(source)
    if (!m) throw broken("")
    at = token.lastIndex
    return m
  }
  const text = quoted => {
    try {
      return JSON.parse(quoted)
    } catch {
      throw broken(": a text that JSON does not have")
    }
  }
  const value = (m, depth) => {
    if (m[2]) return text(m[2])
    if (m[3]) return /[.eE]/.test(m[3]) ? Number(m[3]) : whole(m[3])
    if (m[4]) return { true: true, false: false, null: null, NaN, Infinity, "-Infinity": -Infinity }[m[4]]
    const isList = m[1] === "[",
      end = isList ? "]" : "}"
    const list = [],
      dict = new Dict(),
      items = () => (isList ? list : table(dict))
    if (!isList && m[1] !== "{") throw broken(`: ${m[1]} is no value`)
    if (depth > DEEP) throw new SyntaxError("broken JSON: nested too deeply")
    let t = read()
    if (t[1] === end) return items()
    for (;;) {
      if (isList) list.push(value(t, depth + 1))
      else {
        if (!t[2] || read()[1] !== ":") throw broken(": expected a key")
        dict.put(text(t[2]), value(read(), depth + 1))
      }
      const comma = read()[1]
      if (comma === end) return items()
      if (comma !== ",") throw broken(`: expected , or ${end}`)
      t = read()
    }
  }
  const result = value(read(), 0)
  if (source.slice(at).trim()) throw broken(": more after its end")
  return result
}

/** @satisfies {Engine.Python & Record<string, unknown>} */
export const py = {
  tuple: tuple_,
  Ellipsis,
  NotImplemented,
  def,
  apply,
  call,
  callKeywords,
  get,
  class: class_,
  super: super_,
  superGet,
  raised,
  catches,
  add,
  sub,
  mul,
  div,
  floordiv,
  mod,
  pow,
  matmul,
  bitand,
  bitor,
  bitxor,
  lshift,
  neg,
  iadd,
  ibitor,
  isub: sub,
  imul: mul,
  idiv: div,
  ifloordiv: floordiv,
  imod: mod,
  eq,
  ne,
  lt,
  le,
  gt,
  ge,
  has,
  chain,
  truth,
  and,
  or,
  item,
  setitem,
  unpack,
  slice: Object.assign((...args) => new Slice(...args), { $check: x => x instanceof Slice }),
  int,
  str,
  float,
  bool,
  list,
  dict,
  set,
  frozenset,
  range,
  type,
  object,
  isinstance,
  len,
  sum,
  min,
  max,
  sorted,
  any,
  all,
  zip,
  enumerate,
  map,
  filter,
  pairs,
  reversed,
  iter,
  next,
  abs,
  divmod,
  hash,
  getattr,
  hasattr,
  setattr,
  callable,
  ord,
  round,
  repr,
  id: x => BigInt(id(x)),
  format,
  formatRepr: x => repr(x),
  formatStr: (x, spec) => format(str(x), spec),
  entries,
  keywords: d => Object.fromEntries(entries(d)),
  dictOf: pairs => new Dict(pairs),
  Exception,
  ValueError,
  TypeError: TypeError$,
  KeyError,
  IndexError,
  AttributeError,
  OverflowError,
  UnicodeEncodeError,
  ZeroDivisionError,
  NotImplementedError,
  property: f => new Property(f),
  classmethod: f => {
    f.$isClassMethod = true
    return f
  },
  staticmethod: f => f,
  alias,
  module,
  later,
  names,
  parse,
  Dict,
  Fraction,
  running: "",
  // A function of a class as one that takes its object first, for a decorator, and back.
  unmethod: f => {
    const g = ofObject(f)
    return (define(g, "__name__", f.__name__), g)
  },
  method: g => {
    const f = function (...args) {
      return g(this, ...args)
    }
    f.$keywords = (self, args, given) => send(g, undefined, [self, ...args], given)
    return (define(f, "__name__", g.__name__), f)
  },
  cached_property: functools.cached_property,
  // As `engine/cached_method.py`.
  cached_method: f =>
    new Property(function () {
      return functools.cache(bound(f, this))
    }, true),
}
