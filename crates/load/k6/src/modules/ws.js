// k6/ws: a socket whose function waits for its end.
import * as native from 'weir:native';
import { headersOf, openSocket, sendable } from 'weir:sockets';

const EVENTS = ['open', 'message', 'binaryMessage', 'ping', 'pong', 'close', 'error'];
const GOING_AWAY = 1001;

class WebSocketError extends Error {
  error() { return this.message; }
}

class Socket {
  #id;
  #handlers = new Map();
  // Functions with their times, the earliest first: [due, function, interval].
  #timers = [];
  #closed = false;
  constructor(id) { this.#id = id; }

  on(event, handler) {
    if (!EVENTS.includes(event)) throw new TypeError(`a socket has no event '${event}'; choose ${EVENTS.join(', ')}`);
    if (typeof handler !== 'function') throw new TypeError(`on('${event}') needs a function`);
    this.#handlers.set(event, [...(this.#handlers.get(event) ?? []), handler]);
  }
  send(data) { this.#sent(native.socketSend(this.#id, String(data))); }
  sendBinary(data) {
    if (typeof data === 'string') throw new TypeError('sendBinary() takes an ArrayBuffer; a text is sent by send()');
    this.#sent(native.socketSend(this.#id, sendable(data)));
  }
  ping() { this.#sent(native.socketPing(this.#id)); }
  close(code = GOING_AWAY) {
    if (this.#closed) return;
    native.socketClose(this.#id, code);
    this.#end(code);
  }
  setTimeout(handler, wait) { this.#add(handler, wait); }
  setInterval(handler, wait) { this.#add(handler, wait, Math.max(1, Number(wait) || 0)); }
  setLoop(handler) { this.#add(handler, 0, 1); }

  #sent(isOpen) {
    if (!isOpen && !this.#closed) this.#emit('error', new WebSocketError('the WebSocket is not open'));
  }
  #add(handler, wait, interval) {
    if (typeof handler !== 'function') throw new TypeError('a timer needs a function');
    const due = native.now() + Math.max(0, Number(wait) || 0);
    this.#timers.push([due, handler, interval]);
    this.#timers.sort((one, other) => one[0] - other[0]);
  }
  #emit(event, ...args) {
    for (const handler of this.#handlers.get(event) ?? []) handler(...args);
  }
  #end(code) {
    this.#closed = true;
    this.#emit('close', code);
  }
  #take([, kind, first, , , error]) {
    switch (kind) {
      case 'open': return this.#emit('open');
      case 'text': return this.#emit('message', first);
      case 'bytes': return this.#emit('binaryMessage', first);
      case 'ping': return this.#emit('ping');
      case 'pong': return this.#emit('pong');
      default:
        if (error !== '') this.#emit('error', new WebSocketError(error));
        if (!this.#closed) this.#end(first);
        return undefined;
    }
  }
  #runTimer() {
    if (this.#timers.length === 0 || this.#timers[0][0] > native.now()) return false;
    const [, handler, interval] = this.#timers.shift();
    if (interval !== undefined) this.#add(handler, interval, interval);
    handler();
    return true;
  }
  // Runs it from its first event to its end.
  run(callback, first) {
    callback(this);
    if (first[1] === 'end') {
      this.#emit('error', new WebSocketError(first[5]));
      return;
    }
    if (!this.#closed) this.#take(first);
    while (!this.#closed) {
      if (this.#runTimer()) continue;
      const event = native.socketEvent(this.#id);
      if (event !== undefined) this.#take(event);
      else native.socketWait(this.#timers.length > 0 ? Math.max(0, this.#timers[0][0] - native.now()) : -1);
    }
  }
}

export function connect(url, second, third) {
  const [params, callback] = typeof second === 'function' ? [undefined, second] : [second, third];
  if (typeof callback !== 'function') throw new TypeError('ws.connect() needs a function that takes the socket');
  const id = openSocket(url, undefined, params);
  try {
    let first = native.socketEvent(id);
    for (; first === undefined; first = native.socketEvent(id)) native.socketWait(-1);
    new Socket(id).run(callback, first);
    const [, kind, , head, status, error] = first;
    const isOpen = kind === 'open';
    return {
      url: String(url), status: isOpen ? 101 : status, headers: isOpen ? headersOf(head) : {}, body: '', error: isOpen ? '' : error,
    };
  } finally {
    native.socketClose(id, GOING_AWAY);
    native.socketForget(id);
  }
}

export default { connect };
