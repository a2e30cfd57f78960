// Deep comparison of values, and their texts in messages.
export function typeOf(value) {
  if (value === null) return 'null';
  if (typeof value !== 'object') return typeof value;
  const name = Object.prototype.toString.call(value).slice(8, -1);
  return name === 'Array' || name === 'Object' ? name.toLowerCase() : name;
}

// Whether two values are deeply equal.
export function equal(left, right, pairs = []) {
  if (Object.is(left, right) || left === right) return true;
  if (typeof left !== 'object' || typeof right !== 'object' || left === null || right === null) return false;
  if (Object.prototype.toString.call(left) !== Object.prototype.toString.call(right)) return false;
  if (pairs.some(([one, other]) => one === left && other === right)) return true;
  const deeper = [...pairs, [left, right]];
  if (left instanceof Date) return left.getTime() === right.getTime();
  if (left instanceof RegExp) return String(left) === String(right);
  if (left instanceof Error) return false;
  if (left instanceof Number || left instanceof String || left instanceof Boolean) return left.valueOf() === right.valueOf();
  if (left instanceof Map || left instanceof Set) {
    if (left.size !== right.size) return false;
    const [own, others] = [[...left], [...right]];
    return own.every((one) => others.some((other) => equal(one, other, deeper)));
  }
  if (Array.isArray(left) && left.length !== right.length) return false;
  const names = Object.keys(left);
  return names.length === Object.keys(right).length
    && names.every((name) => Object.hasOwn(right, name) && equal(left[name], right[name], deeper));
}

// Longest text of a value in a message, in characters.
const MOST = 200;

export function shown(value, depth = 0) {
  const text = whole(value, depth);
  return text.length > MOST ? `${text.slice(0, MOST)}...` : text;
}

function whole(value, depth) {
  if (typeof value === 'string') return `'${value}'`;
  if (typeof value === 'function') return `[Function${value.name ? `: ${value.name}` : ''}]`;
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value !== 'object' || value === null) return String(value);
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'Invalid Date' : value.toISOString();
  if (value instanceof RegExp) return String(value);
  if (value instanceof Error) return `[${value.name}: ${value.message}]`;
  if (depth > 2) return Array.isArray(value) ? `[ Array(${value.length}) ]` : '{ ... }';
  if (Array.isArray(value)) return value.length === 0 ? '[]' : `[ ${value.slice(0, 20).map((one) => shown(one, depth + 1)).join(', ')} ]`;
  const names = Object.keys(value);
  return names.length === 0 ? '{}' : `{ ${names.slice(0, 20).map((name) => `${name}: ${shown(value[name], depth + 1)}`).join(', ')} }`;
}
