// Scripts of a collection: what they find, and how one runs to its end.
import * as native from 'weir:native';
import { clearInterval, clearTimeout, setInterval, setTimeout } from 'k6/timers';
import { atob, btoa, CryptoJS } from 'weir:postman/crypto_js';
import { uuid } from 'weir:postman/dynamic';
import { expect } from 'weir:postman/expect';
import { LEGACY, legacyNames } from 'weir:postman/legacy';
import { makePm } from 'weir:postman/pm';
import { SKIPPED, textOf } from 'weir:postman/thrown';

// Modules that scripts may ask for.
const MODULES = {
  'crypto-js': () => CryptoJS,
  chai: () => ({ expect }),
  uuid: () => Object.assign(uuid, { v4: uuid }),
  atob: () => atob,
  btoa: () => btoa,
};
// Names of Postman's sandbox that weir does not have, and what to write instead.
const REJECTED = {
  _: 'use the methods of arrays and objects',
  moment: 'use Date',
  cheerio: 'use String.match()',
  tv4: 'use pm.response.to.have.jsonSchema()',
  xml2Json: 'use String.match()',
  Ajv: 'use pm.response.to.have.jsonSchema()',
  Backbone: 'use plain objects',
};

const moduleNamed = (name) => {
  if (Object.hasOwn(MODULES, name)) return MODULES[name]();
  throw new Error(`require('${name}') is not supported; crypto-js, chai, uuid, atob and btoa are`);
};

// Names of modules that a script asks for and weir does not have.
export const missingModules = (code) => [...code.matchAll(/\brequire\(\s*(['"`])([^'"`]+)\1\s*\)/g)]
  .map((found) => found[2])
  .filter((name) => !Object.hasOwn(MODULES, name));

function rejection(name, remedy) {
  const fail = () => { throw new Error(`${name} is not supported in scripts; ${remedy}`); };
  return new Proxy(fail, { get: (_, inner) => (typeof inner === 'symbol' ? undefined : fail()), apply: fail, construct: fail });
}
const rejected = Object.fromEntries(Object.keys(REJECTED).map((name) => [name, rejection(name === '_' ? 'lodash (_)' : name, REJECTED[name])]));

// Counts what a script waits for: timers and requests.
class Pending {
  #count = 0;
  #ended = () => {};
  #timers = new Set();
  isSealed = false;
  add() { this.#count += 1; }
  done() {
    this.#count -= 1;
    if (this.#count === 0) this.#ended();
  }
  async idle() {
    while (this.#count > 0) await new Promise((resolve) => { this.#ended = resolve; });
  }
  seal() {
    for (const number of this.#timers) clearTimeout(number);
    this.isSealed = true;
  }
  timers(failed) {
    const guarded = (call, args) => {
      try {
        call(...args);
      } catch (error) {
        failed(error);
      }
    };
    const forget = (number) => { if (this.#timers.delete(number)) this.done(); };
    return {
      setTimeout: (call, wait, ...args) => {
        this.add();
        const number = setTimeout(() => {
          guarded(call, args);
          forget(number);
        }, wait);
        this.#timers.add(number);
        return number;
      },
      setInterval: (call, wait, ...args) => {
        this.add();
        const number = setInterval(() => guarded(call, args), wait ?? 0);
        this.#timers.add(number);
        return number;
      },
      setImmediate: (call, ...args) => this.timers(failed).setTimeout(call, 0, ...args),
      clearTimeout: (number) => { clearTimeout(number); forget(number); },
      clearInterval: (number) => { clearInterval(number); forget(number); },
      clearImmediate: (number) => { clearTimeout(number); forget(number); },
    };
  }
}

const compiled = new Map();

const OWN = ['pm', 'console', 'CryptoJS', 'atob', 'btoa', 'expect', 'require', 'exports', 'module'];
const TIMERS = ['setTimeout', 'setInterval', 'setImmediate', 'clearTimeout', 'clearInterval', 'clearImmediate'];
const NAMES = [...OWN, ...TIMERS, ...Object.keys(REJECTED), ...LEGACY];

// A name that is not a member: behind no dot but the three of a spread.
const occurs = (name) => new RegExp(`(?<![\\w$]|(?<!\\.\\.)\\.)${name}(?![\\w$])`);

// Function of a script, whose place in errors is `name`, with the names that it has: all, if it makes code itself.
function functionOf(code, name) {
  const key = `${name}\n${code}`;
  const known = compiled.get(key);
  if (known !== undefined) return known;
  // A function within, so that scripts may declare the names that they find.
  const names = /\beval\b|\bFunction\b/.test(code) ? NAMES : NAMES.filter((own) => occurs(own).test(code));
  const call = native.compile(`(async function (${names.join(', ')}) { return (async () => {${code}\n})(); })`, name);
  const made = { call, names, isOld: names.some((own) => LEGACY.includes(own)) };
  compiled.set(key, made);
  return made;
}

// Place of an error within a script: ', line 3'.
function lineOf(error, name) {
  const stack = String(error?.stack ?? '');
  const at = stack.indexOf(`${name}:`);
  const digits = at < 0 ? null : stack.slice(at + name.length + 1).match(/^\d+/);
  return digits === null ? '' : `, line ${digits[0]}`;
}

// Runs a script of a request: `run` has its event, request, response and the state of the user.
export async function runScript(code, name, run) {
  const pending = new Pending();
  const failed = (error) => { if (error !== SKIPPED) run.failures.push({ kind: 'script', text: `${run.event}${lineOf(error, name)}: ${textOf(error)}` }); };
  const { pm, finish } = makePm(run, pending);
  let legacy;
  try {
    const script = functionOf(code, name);
    if (script.isOld) legacy = legacyNames({ pm, state: run.state, isTest: run.event === 'test', cookies: run.cookies });
    const values = { pm, console, CryptoJS, atob, btoa, expect, require: moduleNamed, ...rejected, ...pending.timers(failed), ...legacy };
    await script.call(...script.names.map((own) => values[own]));
  } catch (error) {
    failed(error);
    if (error === SKIPPED) pending.seal();
  }
  if (!pending.isSealed) await pending.idle();
  pending.seal();
  await finish(legacy?.tests ?? {});
}
