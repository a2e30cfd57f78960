// k6/data: an array that is kept once for all users.
import { arrayGet, arrayMake } from 'weir:core';

function frozen(value) {
  if (typeof value === 'object' && value !== null) {
    for (const name of Object.keys(value)) frozen(value[name]);
    Object.freeze(value);
  }
  return value;
}

const isIndex = (name) => typeof name === 'string' && /^(0|[1-9][0-9]*)$/.test(name);
const rejected = () => {
  throw new TypeError('a SharedArray cannot be changed');
};

export class SharedArray {
  constructor(name, make) {
    if (typeof name !== 'string' || name === '') throw new TypeError('new SharedArray() needs a name');
    if (typeof make !== 'function') throw new TypeError('new SharedArray() needs a function that returns an array');
    const [number, length] = arrayMake(name, () => {
      const made = make();
      if (!Array.isArray(made)) throw new TypeError(`the function of the SharedArray '${name}' does not return an array`);
      return made.map((element) => JSON.stringify(element === undefined ? null : element));
    });
    const at = (index) => {
      const json = arrayGet(number, index);
      return json === undefined ? undefined : frozen(JSON.parse(json));
    };
    // An array, for Array.isArray(); its methods read `length` and elements alone.
    return new Proxy([], {
      get(_, name) {
        if (name === 'length') return length;
        if (isIndex(name)) return Number(name) < length ? at(Number(name)) : undefined;
        return Array.prototype[name];
      },
      has: (_, name) => (isIndex(name) ? Number(name) < length : name === 'length' || name in Array.prototype),
      ownKeys: () => [...Array(length).keys()].map(String).concat('length'),
      getOwnPropertyDescriptor: (_, name) => {
        if (name === 'length') return { value: length, enumerable: false, configurable: false, writable: true };
        return isIndex(name) && Number(name) < length
          ? { value: at(Number(name)), enumerable: true, configurable: true, writable: false }
          : undefined;
      },
      set: rejected,
      deleteProperty: rejected,
      defineProperty: rejected,
    });
  }
}

export default { SharedArray };
