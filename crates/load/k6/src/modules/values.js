// Texts of values, tags, and the timers of a user.
import * as native from 'weir:native';

// A value as the log shows it.
export function shown(value) {
  if (typeof value === 'string') return value.toWellFormed();
  if (value instanceof Error) return value.stack ? `${value}\n${value.stack}` : String(value);
  if (typeof value === 'object' && value !== null) {
    try {
      return JSON.stringify(value) ?? String(value);
    } catch {
      return String(value);
    }
  }
  return String(value);
}

export const stringify = (value) => JSON.stringify(value) ?? 'null';

// Names and values in turn, or undefined without any.
export function flat(object) {
  if (object === undefined || object === null) return undefined;
  const pairs = [];
  for (const name of Object.keys(object)) {
    const value = object[name];
    if (value !== undefined && value !== null) pairs.push(name, String(value));
  }
  return pairs.length > 0 ? pairs : undefined;
}

// Timers of the user, the earliest first: [due, number, function, arguments, interval].
let timers = [];
let lastNumber = 0;

export function addTimer(call, wait, args, interval) {
  if (typeof call !== 'function') throw new TypeError('a timer needs a function');
  const due = native.now() + Math.max(0, Number(wait) || 0);
  const number = ++lastNumber;
  insert([due, number, call, args, interval]);
  return number;
}

function insert(timer) {
  let at = timers.length;
  while (at > 0 && timers[at - 1][0] > timer[0]) at -= 1;
  timers.splice(at, 0, timer);
}

export function removeTimer(number) {
  timers = timers.filter((timer) => timer[1] !== number);
}

// Milliseconds until the first timer is due; -1 without one.
export const deadline = () => (timers.length > 0 ? Math.max(0, timers[0][0] - native.now()) : -1);

// What is done with the results of requests, by the keys of these.
const awaited = new Map();

export function awaitResult(key, settle) {
  awaited.set(key, settle);
}

// What modules do beside these, and how they forget it: events of sockets.
const others = [];

export function whenDue(run, clear) {
  others.push([run, clear]);
}

// Settles the promises of requests that have ended, and calls the first timer that is due; whether there was one.
export function runDue() {
  for (const [run] of others) run();
  for (const key of native.finished()) {
    const settle = awaited.get(key);
    awaited.delete(key);
    const raw = native.result(key);
    if (settle !== undefined) settle(raw);
  }
  if (timers.length === 0 || timers[0][0] > native.now()) return false;
  const timer = timers.shift();
  if (timer[4] !== undefined) insert([native.now() + Math.max(1, timer[4]), timer[1], timer[2], timer[3], timer[4]]);
  timer[2](...timer[3]);
  return true;
}

export function clearDue() {
  for (const [, clear] of others) clear();
  awaited.clear();
  timers = [];
}
