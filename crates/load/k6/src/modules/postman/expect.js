// Expectations, as chai's expect has them.
import { addResponseWords } from 'weir:postman/expect_response';
import { equal, shown, typeOf } from 'weir:postman/compared';

export class AssertionError extends Error {
  constructor(message) {
    super(message);
    this.name = 'AssertionError';
  }
}

const CHAINS = ['to', 'be', 'been', 'is', 'and', 'has', 'have', 'with', 'that', 'which', 'at', 'of', 'same', 'but', 'does', 'still', 'also'];
// Names that the language or a promise looks for.
const SILENT = ['then', 'catch', 'inspect', 'toJSON', 'constructor', '$$typeof', 'asymmetricMatch', 'nodeType', 'length'];

export class Expectation {
  constructor(object, message, flags = {}) {
    this.object = object;
    this.message = message;
    this.flags = { ...flags };
  }
  // Throws unless the condition holds, or if it holds behind `not`.
  assert(holds, wanted, unwanted = wanted.replace(' to ', ' to not ')) {
    if (Boolean(holds) !== Boolean(this.flags.not)) return;
    const text = this.flags.not ? unwanted : wanted;
    throw new AssertionError(this.message === undefined ? text : `${this.message}: ${text}`);
  }
  fail(text) { throw new AssertionError(this.message === undefined ? text : `${this.message}: ${text}`); }
  get shown() { return shown(this.object); }
  same(left, right) { return this.flags.deep ? equal(left, right) : left === right; }
  number(name) {
    if (typeof this.object !== 'number' && !(this.object instanceof Date)) this.fail(`expected ${this.shown} to be a number or a date`);
    void name;
    return this.object;
  }
}

// Properties: they check something by themselves.
const properties = {
  not: (own) => { own.flags.not = true; },
  deep: (own) => { own.flags.deep = true; },
  nested: (own) => { own.flags.nested = true; },
  own: (own) => { own.flags.own = true; },
  ordered: (own) => { own.flags.ordered = true; },
  any: (own) => { own.flags.any = true; own.flags.all = false; },
  all: (own) => { own.flags.all = true; own.flags.any = false; },
  ok: (own) => own.assert(own.object, `expected ${own.shown} to be truthy`, `expected ${own.shown} to be falsy`),
  true: (own) => own.assert(own.object === true, `expected ${own.shown} to be true`),
  false: (own) => own.assert(own.object === false, `expected ${own.shown} to be false`),
  null: (own) => own.assert(own.object === null, `expected ${own.shown} to be null`),
  undefined: (own) => own.assert(own.object === undefined, `expected ${own.shown} to be undefined`),
  NaN: (own) => own.assert(Number.isNaN(own.object), `expected ${own.shown} to be NaN`),
  exist: (own) => own.assert(own.object !== null && own.object !== undefined, `expected ${own.shown} to exist`),
  finite: (own) => own.assert(Number.isFinite(own.object), `expected ${own.shown} to be a finite number`),
  arguments: (own) => own.assert(typeOf(own.object) === 'Arguments', `expected ${own.shown} to be arguments`),
  empty: (own) => own.assert(sizeOf(own) === 0, `expected ${own.shown} to be empty`),
};
properties.exists = properties.exist;

function sizeOf(own) {
  const { object } = own;
  if (typeof object === 'string' || Array.isArray(object)) return object.length;
  if (object instanceof Map || object instanceof Set) return object.size;
  if (typeof object !== 'object' || object === null) own.fail(`.empty was passed non-string primitive ${own.shown}`);
  return Object.keys(object).length;
}

const lengthOf = (own) => {
  const { object } = own;
  const length = object instanceof Map || object instanceof Set ? object.size : object?.length;
  if (length === undefined) own.fail(`expected ${own.shown} to have property 'length'`);
  return length;
};

function compared(name, holds, words) {
  return (own, wanted) => {
    const isLength = own.flags.length === true;
    const value = isLength ? lengthOf(own) : own.number(name);
    if (typeof wanted !== typeof value) own.fail(`the argument to ${name} must be a ${typeOf(value)}`);
    const subject = isLength ? `${own.shown} to have a length` : `${own.shown} to be`;
    own.assert(holds(value, wanted), `expected ${subject} ${words} ${shown(wanted)}`);
  };
}

const within = (own, from, to) => {
  const value = own.flags.length === true ? lengthOf(own) : own.number('within');
  own.assert(value >= from && value <= to, `expected ${own.shown} to be within ${shown(from)}..${shown(to)}`);
};

function included(own, wanted) {
  const { object } = own;
  if (typeof object === 'string') return object.includes(wanted);
  if (Array.isArray(object)) return object.some((one) => own.same(one, wanted) || (Number.isNaN(one) && Number.isNaN(wanted)));
  if (object instanceof Set) return [...object].some((one) => own.same(one, wanted));
  if (object instanceof Map) return [...object.values()].some((one) => own.same(one, wanted));
  if (typeof object !== 'object' || object === null) own.fail(`the given combination of arguments (${typeOf(object)} and ${typeOf(wanted)}) is invalid for this assertion`);
  if (typeof wanted !== 'object' || wanted === null) own.fail(`the given combination of arguments (object and ${typeOf(wanted)}) is invalid for this assertion`);
  return Object.keys(wanted).every((name) => {
    const [has, value] = valueAt(own, name);
    return has && own.same(value, wanted[name]);
  });
}

// Whether there is a property, and its value; a path of names behind `nested`.
function valueAt(own, name) {
  let value = own.object;
  const path = own.flags.nested ? String(name).replace(/\[(\w+)\]/g, '.$1').replace(/^\./, '').split('.') : [name];
  for (const part of path) {
    if (value === null || value === undefined) return [false, undefined];
    const has = own.flags.own ? Object.hasOwn(value, part) : part in Object(value);
    if (!has) return [false, undefined];
    value = value[part];
  }
  return [true, value];
}

function property(own, ...args) {
  const [name, wanted] = args;
  if (own.object === null || own.object === undefined) own.fail('Target cannot be null or undefined.');
  const [has, value] = valueAt(own, name);
  const words = `${own.flags.deep ? 'deep ' : ''}${own.flags.nested ? 'nested ' : ''}property ${shown(name)}`;
  if (args.length < 2) {
    own.assert(has, `expected ${own.shown} to have ${words}`);
  } else {
    if (!own.flags.not && !has) own.fail(`expected ${own.shown} to have ${words}`);
    own.assert(has && own.same(value, wanted), `expected ${own.shown} to have ${words} of ${shown(wanted)}, but got ${shown(value)}`);
  }
  own.object = value;
}

function keys(own, ...names) {
  const wanted = (names.length === 1 && typeof names[0] === 'object' ? (Array.isArray(names[0]) ? names[0] : Object.keys(names[0])) : names).map(String);
  if (wanted.length === 0) own.fail('keys required');
  const actual = (own.object instanceof Map || own.object instanceof Set ? [...own.object.keys()] : Object.keys(own.object ?? {})).map(String);
  const count = wanted.filter((name) => actual.includes(name)).length;
  const isSuper = own.flags.contains === true;
  const holds = own.flags.any ? count > 0 : count === wanted.length && (isSuper || actual.length === wanted.length);
  own.assert(holds, `expected ${own.shown} to ${isSuper ? 'contain' : 'have'} ${own.flags.any ? 'any of the ' : ''}keys ${wanted.map((name) => shown(name)).join(', ')}`);
}

function memberList(own, wanted) {
  if (!Array.isArray(own.object) || !Array.isArray(wanted)) own.fail(`expected ${own.shown} to be an array`);
  const rest = [...own.object];
  let holds = own.flags.contains || rest.length === wanted.length;
  if (own.flags.ordered) holds = holds && wanted.every((one, at) => own.same(rest[at], one));
  else {
    holds = holds && wanted.every((one) => {
      const at = rest.findIndex((known) => own.same(known, one));
      if (at >= 0 && !own.flags.contains) rest.splice(at, 1);
      return at >= 0;
    });
  }
  own.assert(holds, `expected ${own.shown} to ${own.flags.contains ? 'be a superset of' : 'have the same members as'} ${shown(wanted)}`);
}

function throws(own, kind, text) {
  if (typeof own.object !== 'function') own.fail(`expected ${own.shown} to be a function`);
  let thrown;
  let hasThrown = false;
  try {
    own.object();
  } catch (error) {
    [thrown, hasThrown] = [error, true];
  }
  const wanted = typeof kind === 'function' || kind instanceof Error ? kind : undefined;
  const message = wanted === undefined ? kind : text;
  let holds = hasThrown;
  if (typeof wanted === 'function') holds = holds && thrown instanceof wanted;
  else if (wanted !== undefined) holds = holds && thrown === wanted;
  const said = String(thrown?.message ?? thrown);
  if (message instanceof RegExp) holds = holds && message.test(said);
  else if (message !== undefined) holds = holds && said.includes(message);
  own.assert(holds, `expected ${own.shown} to throw ${kind === undefined ? 'an error' : shown(kind)}`);
  own.object = thrown;
}

const article = (type) => (/^[aeiou]/i.test(type) ? `an ${type}` : `a ${type}`);

const methods = {
  a(own, type) {
    const wanted = String(type).toLowerCase();
    own.assert(typeOf(own.object).toLowerCase() === wanted, `expected ${own.shown} to be ${article(wanted)}`);
  },
  equal(own, wanted) { own.assert(own.same(own.object, wanted), `expected ${own.shown} to ${own.flags.deep ? 'deeply ' : ''}equal ${shown(wanted)}`); },
  eql(own, wanted) { own.assert(equal(own.object, wanted), `expected ${own.shown} to deeply equal ${shown(wanted)}`); },
  above: compared('above', (value, wanted) => value > wanted, 'above'),
  least: compared('least', (value, wanted) => value >= wanted, 'at least'),
  below: compared('below', (value, wanted) => value < wanted, 'below'),
  most: compared('most', (value, wanted) => value <= wanted, 'at most'),
  within,
  include(own, wanted) { own.assert(included(own, wanted), `expected ${own.shown} to include ${shown(wanted)}`); },
  property,
  keys,
  members: memberList,
  throw: throws,
  ownProperty(own, ...args) { own.flags.own = true; property(own, ...args); },
  lengthOf(own, wanted) { own.assert(lengthOf(own) === wanted, `expected ${own.shown} to have a length of ${shown(wanted)} but got ${lengthOf(own)}`); },
  match(own, pattern) { own.assert(pattern.test(own.object), `expected ${own.shown} to match ${pattern}`); },
  string(own, part) {
    if (typeof own.object !== 'string') own.fail(`expected ${own.shown} to be a string`);
    own.assert(own.object.includes(part), `expected ${own.shown} to contain ${shown(part)}`);
  },
  oneOf(own, list) {
    if (!Array.isArray(list)) own.fail('the argument of oneOf is not an array');
    const holds = own.flags.contains ? list.some((one) => included(own, one)) : list.some((one) => own.same(own.object, one));
    own.assert(holds, `expected ${own.shown} to be one of ${shown(list)}`);
  },
  instanceof(own, kind) { own.assert(own.object instanceof kind, `expected ${own.shown} to be an instance of ${kind.name}`); },
  respondTo(own, name) { own.assert(typeof own.object?.[name] === 'function', `expected ${own.shown} to respond to '${name}'`); },
  satisfy(own, holds) { own.assert(holds(own.object), `expected ${own.shown} to satisfy ${shown(holds)}`); },
  closeTo(own, wanted, delta) { own.assert(Math.abs(own.number('closeTo') - wanted) <= delta, `expected ${own.shown} to be close to ${wanted} +/- ${delta}`); },
};
Object.assign(methods, {
  an: methods.a, equals: methods.equal, eq: methods.equal, eqls: methods.eql, gt: methods.above, greaterThan: methods.above,
  gte: methods.least, greaterThanOrEqual: methods.least, lt: methods.below, lessThan: methods.below, lte: methods.most,
  lessThanOrEqual: methods.most, includes: methods.include, contain: methods.include, contains: methods.include, key: methods.keys,
  throws: methods.throw, Throw: methods.throw, haveOwnProperty: methods.ownProperty, length: methods.lengthOf, matches: methods.match,
  instanceOf: methods.instanceof, respondsTo: methods.respondTo, satisfies: methods.satisfy, approximately: methods.closeTo,
});
// Words that are links of a chain as well.
const links = {
  a: () => {}, an: () => {},
  include: (own) => { own.flags.contains = true; },
  length: (own) => { own.flags.length = true; },
};
Object.assign(links, { includes: links.include, contain: links.include, contains: links.include, lengthOf: links.length });
addResponseWords(properties, methods);

function chained(own) {
  return new Proxy(own, { get: (target, name) => step(target, name) });
}

function step(own, name) {
  if (typeof name !== 'string') return undefined;
  const next = new Expectation(own.object, own.message, own.flags);
  if (CHAINS.includes(name)) return chained(next);
  if (Object.hasOwn(properties, name)) {
    properties[name](next);
    return chained(next);
  }
  if (!Object.hasOwn(methods, name)) {
    if (SILENT.includes(name)) return undefined;
    throw new Error(`Invalid Chai property: ${name}`);
  }
  const call = (...args) => {
    const called = new Expectation(own.object, own.message, own.flags);
    methods[name](called, ...args);
    return chained(called);
  };
  if (!Object.hasOwn(links, name)) return call;
  return new Proxy(call, {
    get(target, inner) {
      links[name](next);
      return step(next, inner);
    },
  });
}

export const expect = (object, message) => chained(new Expectation(object, message));
expect.fail = (...args) => { throw new AssertionError(String((args.length > 1 ? args[2] : args[0]) ?? 'expect.fail()')); };
export const expectResponse = (response) => expect(response);
