// k6/experimental/streams: chunks that are read one by one, as the Streams standard has them.

const cores = new WeakMap();

const coreOf = (object, kind) => {
  const core = cores.get(object);
  if (core === undefined) throw new TypeError(`this is no ${kind}`);
  return core;
};

function count(value, fallback) {
  if (value === undefined) return fallback;
  const number = Number(value);
  if (Number.isNaN(number) || number < 0) throw new RangeError(`invalid highWaterMark '${value}'; write a number from 0`);
  return number;
}

function deferred() {
  const made = {};
  made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }));
  // Nothing may await it.
  made.promise.catch(() => {});
  return made;
}

// State of a stream, with what its source does.
class Core {
  state = 'readable';
  reader = null;
  error = undefined;
  queue = [];
  total = 0;
  started = false;
  pulling = false;
  pullsAgain = false;
  closes = false;
  constructor(source, mark, size) {
    Object.assign(this, { source, mark, size });
  }

  accepts() { return this.state === 'readable' && !this.closes; }

  desiredSize() {
    if (this.state === 'errored') return null;
    return this.state === 'closed' ? 0 : this.mark - this.total;
  }

  pull() {
    const isWanted = this.accepts() && this.started && (this.reader?.requests.length > 0 || this.desiredSize() > 0);
    if (!isWanted) return;
    if (this.pulling) {
      this.pullsAgain = true;
      return;
    }
    this.pulling = true;
    const pulled = new Promise((resolve) => { resolve(this.source?.pull?.(this.controller)); });
    pulled.then(() => {
      this.pulling = false;
      if (!this.pullsAgain) return;
      this.pullsAgain = false;
      this.pull();
    }, (error) => this.fail(error));
  }

  enqueue(chunk) {
    if (!this.accepts()) throw new TypeError('enqueue(): the stream is closed, or has failed');
    if (this.reader?.requests.length > 0) {
      this.reader.requests.shift().resolve({ done: false, value: chunk });
    } else {
      let size;
      try {
        size = Number(this.size(chunk));
        if (!(size >= 0 && size < Infinity)) throw new RangeError(`size() has returned ${size}`);
      } catch (error) {
        this.fail(error);
        throw error;
      }
      this.queue.push([chunk, size]);
      this.total += size;
    }
    this.pull();
  }

  close() {
    if (!this.accepts()) throw new TypeError('close(): the stream is closed, or has failed');
    this.closes = true;
    if (this.queue.length === 0) this.end();
  }

  end() {
    this.source = null;
    this.state = 'closed';
    const requests = this.reader?.requests.splice(0) ?? [];
    this.reader?.closed.resolve();
    for (const request of requests) request.resolve({ done: true, value: undefined });
  }

  fail(error) {
    if (this.state !== 'readable') return;
    Object.assign(this, { state: 'errored', error, source: null, queue: [], total: 0 });
    this.reader?.closed.reject(error);
    for (const request of this.reader?.requests.splice(0) ?? []) request.reject(error);
  }

  read() {
    const request = deferred();
    if (this.state === 'closed') {
      request.resolve({ done: true, value: undefined });
    } else if (this.state === 'errored') {
      request.reject(this.error);
    } else if (this.queue.length > 0) {
      const [value, size] = this.queue.shift();
      this.total = Math.max(0, this.total - size);
      if (this.closes && this.queue.length === 0) this.end();
      else this.pull();
      request.resolve({ done: false, value });
    } else {
      this.reader.requests.push(request);
      this.pull();
    }
    return request.promise;
  }

  async cancel(reason) {
    if (this.state === 'closed') return;
    if (this.state === 'errored') throw this.error;
    const { source } = this;
    Object.assign(this, { queue: [], total: 0 });
    this.end();
    await source?.cancel?.(reason);
  }
}

class ReadableStreamDefaultController {
  constructor(core) {
    if (!(core instanceof Core)) throw new TypeError('a controller is given to start() and pull()');
    cores.set(this, core);
  }
  get desiredSize() { return coreOf(this, 'controller').desiredSize(); }
  close() { coreOf(this, 'controller').close(); }
  enqueue(chunk) { coreOf(this, 'controller').enqueue(chunk); }
  error(reason) { coreOf(this, 'controller').fail(reason); }
}

export class CountQueuingStrategy {
  #mark;
  constructor({ highWaterMark = 1 } = {}) { this.#mark = highWaterMark; }
  get highWaterMark() { return this.#mark; }
  size() { return 1; }
}

export class ReadableStream {
  constructor(underlyingSource = {}, queuingStrategy = {}) {
    const source = underlyingSource ?? {};
    const { highWaterMark, size = () => 1 } = queuingStrategy ?? {};
    if (source.type !== undefined && source.type !== 'default') {
      throw new TypeError(`a stream of type '${source.type}' is not supported; leave the type out`);
    }
    for (const name of ['start', 'pull', 'cancel']) {
      if (source[name] !== undefined && typeof source[name] !== 'function') throw new TypeError(`${name} is not a function`);
    }
    if (typeof size !== 'function') throw new TypeError('size is not a function');
    const core = new Core(source, count(highWaterMark, 1), size);
    cores.set(this, core);
    core.controller = new ReadableStreamDefaultController(core);
    Promise.resolve(source.start?.(core.controller)).then(() => {
      core.started = true;
      core.pull();
    }, (error) => core.fail(error));
  }
  get locked() { return coreOf(this, 'stream').reader !== null; }
  async cancel(reason) {
    const core = coreOf(this, 'stream');
    if (core.reader !== null) throw new TypeError('cancel(): the stream has a reader; call its cancel()');
    await core.cancel(reason);
  }
  getReader() { return new ReadableStreamDefaultReader(this); }
}

const readers = new WeakMap();

export class ReadableStreamDefaultReader {
  constructor(stream) {
    const core = coreOf(stream, 'stream');
    if (core.reader !== null) throw new TypeError('the stream has a reader; release its lock');
    const reader = { core, requests: [], closed: deferred() };
    core.reader = reader;
    if (core.state === 'closed') reader.closed.resolve();
    if (core.state === 'errored') reader.closed.reject(core.error);
    readers.set(this, reader);
  }
  get closed() { return readers.get(this).closed.promise; }
  async read() { return locked(this, 'read').read(); }
  async cancel(reason) { await locked(this, 'cancel').cancel(reason); }
  releaseLock() {
    const reader = readers.get(this);
    const { core } = reader;
    if (core === null) return;
    const why = new TypeError('the lock of the reader is released');
    if (core.state !== 'readable') reader.closed = deferred();
    reader.closed.reject(why);
    for (const request of reader.requests.splice(0)) request.reject(why);
    [reader.core, core.reader] = [null, null];
  }
}

function locked(object, call) {
  const { core } = readers.get(object);
  if (core === null) throw new TypeError(`${call}(): the lock of the reader is released`);
  return core;
}

export default { ReadableStream, ReadableStreamDefaultReader, CountQueuingStrategy };
