// What every script finds: console, __ENV, open, require, timers, Math.random.
import * as native from 'weir:native';
import { loaded } from 'weir:late';
import { setTimeout, setInterval, clearTimeout, clearInterval } from 'k6/timers';
import { shown, deadline, runDue, clearDue } from 'weir:values';

const log = (level) => (...values) => native.log(level, values.map(shown).join(' '));
globalThis.console = {
  log: log('info'), info: log('info'), debug: log('debug'), warn: log('warning'), error: log('error'),
};
globalThis.global = globalThis;
globalThis.__ENV = native.environment();
globalThis.__VU = 0;
globalThis.__ITER = 0;
globalThis.require = (name) => native.require(String(name));
globalThis.open = (path, mode) => native.open(String(path), mode);
Object.assign(globalThis, { setTimeout, setInterval, clearTimeout, clearInterval });
Math.random = native.random;
Object.defineProperty(globalThis, 'crypto', {
  configurable: true,
  get: () => loaded('k6/experimental/webcrypto', 'crypto'),
  set: (value) => Object.defineProperty(globalThis, 'crypto', { configurable: true, writable: true, value }),
});

// For the host: what it calls around an iteration.
export const due = deadline;
export const run = runDue;
export const clear = clearDue;
export function begin(user, iteration) {
  globalThis.__VU = user;
  globalThis.__ITER = iteration;
}
export { stringify } from 'weir:values';
