// What few scripts use of k6/http: loaded when it is used.
import { later, taken } from 'weir:http';
import { awaitResult } from 'weir:values';

// A URL of several with one name: http.url`http://x/${id}`.
class NamedUrl {
  constructor(name, url) {
    this.name = name;
    this.url = url;
  }
  toString() { return this.url; }
}

export function url(strings, ...values) {
  let name = strings[0];
  let whole = strings[0];
  values.forEach((value, at) => {
    name += `\${}${strings[at + 1]}`;
    whole += `${value}${strings[at + 1]}`;
  });
  return new NamedUrl(name, whole);
}

// Statuses of successes, as pairs of the first and the last.
export function expectedStatuses(...statuses) {
  const ranges = [];
  for (const status of statuses) {
    if (typeof status === 'number') ranges.push(status, status);
    else if (status && typeof status === 'object') ranges.push(status.min, status.max);
    else throw new TypeError('expectedStatuses() takes numbers and { min, max }');
  }
  if (ranges.length === 0) throw new TypeError('expectedStatuses() needs a status');
  return { ranges };
}

export async function asyncRequest(method, target, body, params) {
  const key = later(method, target, body, params);
  return taken(await new Promise((resolve) => {
    awaitResult(key, resolve);
  }));
}

// Date of a cookie's end, as its field has it.
export const dateText = (date) => new Date(date).toUTCString();
