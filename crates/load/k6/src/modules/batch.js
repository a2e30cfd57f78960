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

// The host with the first request that waits, among those that have room.
function nextHost(hosts, mostOfHost) {
  let first;
  for (const host of hosts) {
    const isNext = host.open < mostOfHost && host.next < host.entries.length;
    if (isNext && (first === undefined || host.entries[host.next].at < first.entries[first.next].at)) first = host;
  }
  return first;
}

export function batch(requests) {
  if (typeof requests !== 'object' || requests === null) throw new TypeError('batch() takes an array or an object of requests');
  const names = Object.keys(requests);
  const { batch: most = 20, batchPerHost: mostOfHost = 6 } = (limits ??= JSON.parse(options()));
  const hosts = new Map();
  names.forEach((name, at) => {
    const args = one(requests[name]);
    if (args.length < 2) throw new TypeError(`batch(): the request '${name}' has no URL; write a method, a URL, a body and params`);
    const named = hostOf(args[1]);
    if (!hosts.has(named)) hosts.set(named, { entries: [], next: 0, open: 0 });
    const host = hosts.get(named);
    host.entries.push({ name, at, args, host });
  });
  const all = [...hosts.values()];
  // Names keep their order, whichever response comes first.
  const responses = Array.isArray(requests) ? new Array(names.length) : Object.fromEntries(names.map((name) => [name, undefined]));
  const open = new Map();
  for (;;) {
    for (let host; open.size < most && (host = nextHost(all, mostOfHost)) !== undefined; ) {
      const entry = host.entries[host.next++];
      host.open += 1;
      open.set(later(...entry.args), entry);
    }
    if (open.size === 0) return responses;
    // Some may have ended while the script was at others.
    const ended = finished().filter((key) => open.has(key));
    if (ended.length === 0) awaitRequest();
    for (const key of ended) {
      const entry = open.get(key);
      open.delete(key);
      entry.host.open -= 1;
      responses[entry.name] = taken(key);
    }
  }
}
