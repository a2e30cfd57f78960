// Sockets of the events of a user: WebSocket and Blob.
import * as native from 'weir:native';
import { openSocket, sendable } from 'weir:sockets';
import { whenDue } from 'weir:values';

const NAMES = ['open', 'message', 'close', 'error', 'ping', 'pong'];
const STATES = { CONNECTING: 0, OPEN: 1, CLOSING: 2, CLOSED: 3 };

function bytesOf(part) {
  if (part instanceof Blob) return part.content;
  if (part instanceof ArrayBuffer) return new Uint8Array(part);
  if (ArrayBuffer.isView(part)) return new Uint8Array(part.buffer, part.byteOffset, part.byteLength);
  return new Uint8Array(native.utf8Encode(String(part)));
}

export class Blob {
  #bytes;
  constructor(parts = [], options = {}) {
    const all = [...parts].map(bytesOf);
    this.#bytes = new Uint8Array(all.reduce((sum, part) => sum + part.length, 0));
    let at = 0;
    for (const part of all) {
      this.#bytes.set(part, at);
      at += part.length;
    }
    this.type = String(options.type ?? '').toLowerCase();
  }
  get content() { return this.#bytes; }
  get size() { return this.#bytes.length; }
  async arrayBuffer() { return this.#bytes.slice().buffer; }
  async bytes() { return this.#bytes.slice(); }
  async text() { return native.utf8Decode(this.#bytes); }
  slice(start, end, type) { return new Blob([this.#bytes.slice(start, end)], { type }); }
  stream() { throw new TypeError('Blob.stream() is not supported; write await blob.bytes()'); }
}

// Those that have not ended, by their numbers.
const sockets = new Map();

function failed(name, message) {
  const error = new Error(message);
  error.name = name;
  return error;
}

export class WebSocket {
  #id;
  #state = STATES.CONNECTING;
  #listeners = new Map();
  #handlers = new Map();
  #binaryType = 'blob';
  constructor(url, protocols, params) {
    this.url = String(url?.url ?? url);
    this.protocol = '';
    this.extensions = '';
    this.#id = openSocket(url, protocols, params);
    sockets.set(this.#id, this);
  }
  get readyState() { return this.#state; }
  get bufferedAmount() { return native.socketBuffered(this.#id); }
  get binaryType() { return this.#binaryType; }
  set binaryType(type) {
    if (type !== 'blob' && type !== 'arraybuffer') throw new TypeError(`unknown binaryType '${type}'; choose blob or arraybuffer`);
    this.#binaryType = type;
  }
  addEventListener(name, listener) {
    if (!NAMES.includes(name)) throw new TypeError(`a WebSocket has no event '${name}'; choose ${NAMES.join(', ')}`);
    if (typeof listener !== 'function') throw new TypeError(`addEventListener('${name}') needs a function`);
    this.#listeners.set(name, [...(this.#listeners.get(name) ?? []), listener]);
  }
  handler(name) { return this.#handlers.get(name) ?? null; }
  setHandler(name, handler) { this.#handlers.set(name, typeof handler === 'function' ? handler : null); }
  send(data) {
    if (this.#state !== STATES.OPEN) throw failed('InvalidStateError', 'send() needs a WebSocket that is open');
    native.socketSend(this.#id, data instanceof Blob ? data.content : typeof data === 'object' ? sendable(data) : String(data));
  }
  ping() {
    if (this.#state !== STATES.OPEN) throw failed('InvalidStateError', 'ping() needs a WebSocket that is open');
    native.socketPing(this.#id);
  }
  close(code = 1000, reason = '') {
    if (this.#state >= STATES.CLOSING) return;
    native.socketClose(this.#id, code, reason);
    if (this.#state === STATES.OPEN) {
      this.#state = STATES.CLOSING;
      return;
    }
    // Nothing is agreed on that could be closed.
    native.socketForget(this.#id);
    this.take([this.#id, 'end', 1006, '', 0, 'the WebSocket was closed before it was open']);
  }
  #emit(type, facts) {
    const event = { type, timestamp: Date.now(), target: this, ...facts };
    this.#handlers.get(type)?.call(this, event);
    for (const listener of this.#listeners.get(type) ?? []) listener.call(this, event);
  }
  take([, kind, first, second, , error]) {
    switch (kind) {
      case 'open':
        this.#state = STATES.OPEN;
        this.protocol = first;
        return this.#emit('open');
      case 'text': return this.#emit('message', { data: first });
      case 'bytes': return this.#emit('message', { data: this.#binaryType === 'blob' ? new Blob([first]) : first });
      case 'ping':
      case 'pong': return this.#emit(kind);
      default:
        this.#state = STATES.CLOSED;
        sockets.delete(this.#id);
        if (error !== '') this.#emit('error', { error });
        return this.#emit('close', { code: first, reason: second, wasClean: error === '' });
    }
  }
}

for (const name of NAMES) {
  Object.defineProperty(WebSocket.prototype, `on${name}`, {
    get() { return this.handler(name); },
    set(handler) { this.setHandler(name, handler); },
  });
}
for (const name of Object.keys(STATES)) {
  Object.defineProperty(WebSocket, name, { value: STATES[name], enumerable: true });
  Object.defineProperty(WebSocket.prototype, name, { value: STATES[name], enumerable: true });
}

whenDue(() => {
  const event = native.socketEvent();
  if (event !== undefined) sockets.get(event[0])?.take(event);
}, () => sockets.clear());
