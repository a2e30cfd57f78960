// k6: check, group, sleep, fail, randomSeed.
import * as native from 'weir:native';
import { flat } from 'weir:values';

export function check(value, sets, tags) {
  const pairs = flat(tags);
  let all = true;
  for (const name of Object.keys(sets)) {
    const test = sets[name];
    let passed = false;
    try {
      const result = typeof test === 'function' ? test(value) : test;
      if (result !== null && typeof result === 'object' && typeof result.then === 'function') {
        throw new TypeError(`the check '${name}' returns a promise; await the value before check()`);
      }
      passed = Boolean(result);
    } catch (error) {
      native.check(name, false, pairs);
      throw error;
    }
    native.check(name, passed, pairs);
    all = all && passed;
  }
  return all;
}

export function group(name, call) {
  if (typeof call !== 'function') throw new TypeError('group() needs a function');
  if (call.constructor.name === 'AsyncFunction') throw new TypeError('group() does not take async functions');
  const outer = native.groupEnter(String(name));
  const begun = native.now();
  try {
    return call();
  } finally {
    native.groupLeave(outer, native.now() - begun);
  }
}

export function sleep(seconds) {
  native.sleep(Number(seconds) || 0);
}

export function fail(reason) {
  throw new Error(reason === undefined ? 'fail() was called' : String(reason));
}

export function randomSeed(number) {
  native.seed(Number(number));
}

export default { check, group, sleep, fail, randomSeed };
