// http.batch(): several requests at a time, within the options batch and batchPerHost.
import { awaitRequest, finished, later, taken } from 'weir:http';
import { options } from 'weir:native';

let limits;

function one(entry) {
  if (typeof entry === 'string') return ['GET', entry];
  if (Array.isArray(entry)) return entry;
  if (entry && typeof entry === 'object') {
    // A URL with a name has no method.
    return 'name' in entry && !('method' in entry) ? ['GET', entry] : [entry.method ?? 'GET', entry.url, entry.body, entry.params];
  }
  throw new TypeError('batch() takes URLs, arrays and objects');
}

const hostOf = (target) => String(target?.url ?? target).split('/')[2] ?? '';

export function batch(requests) {
  const names = Object.keys(requests);
  const { batch: most = 20, batchPerHost: mostOfHost = 6 } = (limits ??= JSON.parse(options()));
  const waiting = names.map((name) => {
    const args = one(requests[name]);
    return { name, args, host: hostOf(args[1]) };
  });
  const responses = Array.isArray(requests) ? new Array(names.length) : {};
  const open = new Map();
  const ofHost = new Map();
  while (waiting.length > 0 || open.size > 0) {
    for (let at = 0; at < waiting.length && open.size < most; ) {
      const entry = waiting[at];
      const count = ofHost.get(entry.host) ?? 0;
      if (count >= mostOfHost) {
        at += 1;
        continue;
      }
      waiting.splice(at, 1);
      ofHost.set(entry.host, count + 1);
      open.set(later(...entry.args), entry);
    }
    awaitRequest();
    for (const key of finished()) {
      const entry = open.get(key);
      if (entry === undefined) continue;
      open.delete(key);
      ofHost.set(entry.host, ofHost.get(entry.host) - 1);
      responses[entry.name] = taken(key);
    }
  }
  return responses;
}
