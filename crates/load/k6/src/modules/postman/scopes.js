// Variables of a collection in their scopes, and texts with {{names}}.
import { dynamic } from 'weir:postman/dynamic';

const PATTERN = /\{\{([^{}]*?)\}\}/g;
// Replacements of replaced texts, as often as in Postman.
const MOST_ROUNDS = 19;

function found(name, scopes) {
  for (const scope of scopes) {
    if (scope.values.has(name)) return scope.values.get(name);
  }
  return dynamic(name);
}

const isPlain = (value) => ['string', 'number', 'boolean'].includes(typeof value);

// A text whose {{names}} are values; unknown ones stay as they are.
export function replaced(text, scopes) {
  let whole = String(text);
  for (let round = 0; round < MOST_ROUNDS && whole.includes('{{'); round += 1) {
    let count = 0;
    whole = whole.replace(PATTERN, (match, name) => {
      let value = found(name, scopes);
      if (value && !isPlain(value) && typeof value.toString === 'function') value = value.toString();
      if (!isPlain(value)) return match;
      count += 1;
      return String(value);
    });
    if (count === 0) break;
  }
  return whole;
}

// A value whose texts are replaced, however deep they are.
export function replacedDeep(value, scopes) {
  if (typeof value === 'string') return replaced(value, scopes);
  if (Array.isArray(value)) return value.map((one) => replacedDeep(one, scopes));
  if (typeof value !== 'object' || value === null) return value;
  const copy = {};
  for (const name of Object.keys(value)) copy[name] = replacedDeep(value[name], scopes);
  return copy;
}

// Variables with their values; `layers` are the scopes that are looked at after it.
export class VariableScope {
  #layers;
  constructor(name, list = [], layers = []) {
    this.name = name;
    this.values = new Map();
    this.#layers = layers;
    for (const variable of list) {
      if (variable === null || typeof variable !== 'object') continue;
      if (variable.disabled === true || variable.enabled === false) continue;
      const value = variable.value ?? variable.currentValue ?? '';
      this.values.set(String(variable.key ?? variable.id), typed(value, variable.type));
    }
  }
  #all() { return [this, ...this.#layers]; }
  has(name) { return this.#all().some((scope) => scope.values.has(String(name))); }
  get(name) { return this.#all().find((scope) => scope.values.has(String(name)))?.values.get(String(name)); }
  set(name, value) { this.values.set(String(name), value); }
  unset(name) { this.values.delete(String(name)); }
  clear() { this.values.clear(); }
  replaceIn(template) { return replacedDeep(template, this.#all()); }
  toObject() {
    const object = {};
    for (const scope of this.#all().reverse()) Object.assign(object, Object.fromEntries(scope.values));
    return object;
  }
  toJSON() { return { name: this.name, values: [...this.values].map(([key, value]) => ({ key, value })) }; }
}

// A value of a file: numbers and booleans if its type says so.
function typed(value, type) {
  if (type === 'number' && typeof value === 'string' && value.trim() !== '') return Number(value);
  if (type === 'boolean' && typeof value === 'string') return value === 'true';
  return value;
}
