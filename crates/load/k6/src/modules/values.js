// Tags, and what is done after the function of an iteration: timers, and promises of requests.
import { dropResult, finished, hasLateWork, now } from 'weir:core';

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

function addTimer(call, wait, args, interval) {
  if (typeof call !== 'function') throw new TypeError('a timer needs a function');
  const due = now() + Math.max(0, Number(wait) || 0);
  const number = ++lastNumber;
  insert([due, number, call, args, interval]);
  return number;
}

function insert(timer) {
  hasLateWork();
  let at = timers.length;
  while (at > 0 && timers[at - 1][0] > timer[0]) at -= 1;
  timers.splice(at, 0, timer);
}

// What the global functions of these names do.
export const setTimeout = (call, wait, ...args) => addTimer(call, wait, args);
export const setInterval = (call, wait, ...args) => addTimer(call, wait, args, Number(wait) || 0);
export function clearTimeout(number) {
  timers = timers.filter((timer) => timer[1] !== number);
}
export { clearTimeout as clearInterval };

// Milliseconds until the first timer is due; -1 without one.
export const deadline = () => (timers.length > 0 ? Math.max(0, timers[0][0] - now()) : -1);

// What is done when requests have ended, by their keys.
const awaited = new Map();

export function awaitResult(key, settle) {
  hasLateWork();
  awaited.set(key, settle);
}

export function forgetResult(key) {
  awaited.delete(key);
}

// What modules do beside these, and how they forget it: events of sockets.
const others = [];

export function whenDue(run, clear) {
  hasLateWork();
  others.push([run, clear]);
}

// Settles the promises of requests that have ended, and calls the first timer that is due; whether there was one.
export function runDue() {
  for (const [run] of others) run();
  for (const key of finished()) {
    const settle = awaited.get(key);
    awaited.delete(key);
    if (settle === undefined) dropResult(key);
    else settle(key);
  }
  if (timers.length === 0 || timers[0][0] > now()) return false;
  const timer = timers.shift();
  if (timer[4] !== undefined) insert([now() + Math.max(1, timer[4]), timer[1], timer[2], timer[3], timer[4]]);
  timer[2](...timer[3]);
  return true;
}

export function clearDue() {
  for (const [, clear] of others) clear();
  awaited.clear();
  timers = [];
}
