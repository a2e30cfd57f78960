// Lists of names and values, as headers, parameters and fields are.

// A member of a list, `disabled` or not.
const member = (item) => (typeof item === 'string' ? split(item) : { ...item, key: item?.key ?? '', value: item?.value });

function split(line) {
  const at = line.search(/[:=]/);
  return at < 0 ? { key: line, value: '' } : { key: line.slice(0, at).trim(), value: line.slice(at + 1).trim() };
}

// Members of anything that a collection or a script writes for a list.
export function members(list) {
  if (list === undefined || list === null) return [];
  if (list instanceof PropertyList) return list.all().map((item) => ({ ...item }));
  if (Array.isArray(list)) return list.filter((item) => item !== null && item !== undefined).map(member);
  if (typeof list === 'string') return list.split(/\r?\n/).filter((line) => line.trim() !== '').map(member);
  return Object.keys(list).map((key) => ({ key, value: list[key] }));
}

export class PropertyList {
  #items;
  #ignoresCase;
  constructor(list, ignoresCase = false) {
    this.#items = members(list);
    this.#ignoresCase = ignoresCase;
  }
  #same(name) {
    const wanted = this.#ignoresCase ? String(name).toLowerCase() : String(name);
    return (item) => (this.#ignoresCase ? String(item.key).toLowerCase() : item.key) === wanted;
  }
  #named(item, value) {
    if (typeof item !== 'string') return member(item);
    return value === undefined ? member(item) : { key: item, value };
  }
  all() { return this.#items; }
  get members() { return this.#items; }
  count() { return this.#items.length; }
  each(call) { this.#items.forEach((item) => call(item)); }
  map(call) { return this.#items.map((item) => call(item)); }
  filter(call) { return this.#items.filter((item) => call(item)); }
  find(call) { return this.#items.find((item) => call(item)); }
  reduce(call, start) { return this.#items.reduce(call, start); }
  idx(at) { return this.#items[at]; }
  indexOf(item) { return this.#items.findIndex(typeof item === 'string' ? this.#same(item) : (known) => known === item); }
  one(name) { return this.#items.findLast(this.#same(name)); }
  get(name) { return this.one(name)?.value; }
  has(name, value) {
    return this.#items.some((item) => this.#same(name)(item) && (value === undefined || item.value === value));
  }
  add(item) { this.#items.push(this.#named(item)); }
  append(item) { this.add(item); }
  prepend(item) { this.#items.unshift(this.#named(item)); }
  upsert(item) {
    const own = member(item);
    const at = this.#items.findLastIndex(this.#same(own.key));
    if (at < 0) this.#items.push(own);
    else this.#items[at] = { ...this.#items[at], ...own };
  }
  remove(which) {
    const goes = typeof which === 'function' ? which : this.#same(typeof which === 'string' ? which : which?.key);
    this.#items = this.#items.filter((item) => !goes(item));
  }
  clear() { this.#items = []; }
  assimilate(list) { for (const item of members(list)) this.upsert(item); }
  repopulate(list) { this.#items = members(list); }
  toObject(skipsDisabled = false) {
    const object = {};
    for (const item of this.#items) if (!(skipsDisabled && item.disabled)) object[item.key] = item.value;
    return object;
  }
  toString() { return this.#items.map((item) => `${item.key}: ${item.value}`).join('\n'); }
  toJSON() { return this.#items; }
  [Symbol.iterator]() { return this.#items[Symbol.iterator](); }
}
