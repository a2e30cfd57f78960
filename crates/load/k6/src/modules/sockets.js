// WebSockets of both modules: their opening and their headers.
import * as native from 'weir:native';
import { flat } from 'weir:values';

// Opens a socket as soon as the script waits; its number.
export function openSocket(url, protocols, params) {
  const address = String(url?.url ?? url);
  if (!/^wss?:\/\//i.test(address)) {
    throw new TypeError(`invalid URL '${address}' of a WebSocket; write ws://host:port/path`);
  }
  if (params?.compression) {
    throw new TypeError(`compression: '${params.compression}' is not supported; leave it out`);
  }
  const offered = protocols === undefined || protocols === null ? [] : [protocols].flat().map(String);
  const tags = flat(params?.tags) ?? [];
  const own = { name: params?.tags?.name, jar: params?.jar?.number };
  const facts = ['url', address, 'status', '101', 'proto', '', 'subproto', offered[0] ?? ''];
  return native.socketOpen(address.replace(/^ws/i, 'http'), flat(params?.headers), own, offered, [...tags, ...facts]);
}

// Headers of the head of a response.
export function headersOf(head) {
  const headers = {};
  for (const line of head.split('\r\n').slice(1)) {
    const colon = line.indexOf(':');
    if (colon < 1) continue;
    const name = line.slice(0, colon).toLowerCase().replace(/(^|-)[a-z]/g, (sign) => sign.toUpperCase());
    const value = line.slice(colon + 1).trim();
    headers[name] = name in headers ? `${headers[name]}, ${value}` : value;
  }
  return headers;
}

// Bytes of a view, as a buffer; others as they are.
export function sendable(data) {
  if (!ArrayBuffer.isView(data)) return data;
  return data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength);
}
