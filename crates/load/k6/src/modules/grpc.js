// k6/net/grpc: calls with one message each way, and streams.
import * as native from 'weir:native';
import { awaitResult, flat, forgetResult, whenDue } from 'weir:values';

const CODES = {
  OK: 0, Canceled: 1, Unknown: 2, InvalidArgument: 3, DeadlineExceeded: 4, NotFound: 5, AlreadyExists: 6, PermissionDenied: 7,
  ResourceExhausted: 8, FailedPrecondition: 9, Aborted: 10, OutOfRange: 11, Unimplemented: 12, Internal: 13, Unavailable: 14,
  DataLoss: 15, Unauthenticated: 16,
};
export const StatusOK = CODES.OK;
export const StatusCanceled = CODES.Canceled;
export const StatusUnknown = CODES.Unknown;
export const StatusInvalidArgument = CODES.InvalidArgument;
export const StatusDeadlineExceeded = CODES.DeadlineExceeded;
export const StatusNotFound = CODES.NotFound;
export const StatusAlreadyExists = CODES.AlreadyExists;
export const StatusPermissionDenied = CODES.PermissionDenied;
export const StatusResourceExhausted = CODES.ResourceExhausted;
export const StatusFailedPrecondition = CODES.FailedPrecondition;
export const StatusAborted = CODES.Aborted;
export const StatusOutOfRange = CODES.OutOfRange;
export const StatusUnimplemented = CODES.Unimplemented;
export const StatusInternal = CODES.Internal;
export const StatusUnavailable = CODES.Unavailable;
export const StatusDataLoss = CODES.DataLoss;
export const StatusUnauthenticated = CODES.Unauthenticated;
export const HealthCheckServing = 'SERVING';
export const HealthCheckNotServing = 'NOT_SERVING';
export const HealthCheckUnknown = 'UNKNOWN';
export const HealthCheckServiceUnkown = 'SERVICE_UNKNOWN';

const DEFAULT_TIMEOUT_MS = 120000;
const UNITS = { ms: 1, us: 0.001, s: 1000, m: 60000, h: 3600000 };
const CONNECT_PARAMS = ['plaintext', 'reflect', 'reflectMetadata', 'timeout', 'maxReceiveSize', 'maxSendSize', 'tls', 'authority'];
const CALL_PARAMS = ['metadata', 'tags', 'timeout', 'discardResponseMessage', 'authority'];
const TLS_PARAMS = ['cert', 'key', 'cacerts', 'password'];
const EVENTS = ['data', 'error', 'end'];
const HEALTH_CHECK = 'grpc.health.v1.Health/Check';
const HEALTH = ['UNKNOWN', 'SERVING', 'NOT_SERVING', 'SERVICE_UNKNOWN'];
const PREFIX_BYTES = 5;

function milliseconds(value, otherwise) {
  if (value === undefined || value === null) return otherwise;
  if (typeof value === 'number') return value;
  const parts = [...String(value).matchAll(/([0-9.]+)(ms|us|s|m|h)/g)];
  if (parts.length === 0) throw new TypeError(`invalid timeout '${value}'; write e.g. 5s`);
  return parts.reduce((sum, [, number, unit]) => sum + Number(number) * UNITS[unit], 0);
}

function checkParams(params, known, call) {
  for (const name of Object.keys(params ?? {})) {
    if (!known.includes(name)) throw new TypeError(`${call}: '${name}' is not supported; leave it out`);
  }
}

// Header lines of a call. Values of names with -bin are bytes.
function fieldsOf(metadata, timeoutMs, authority) {
  const fields = ['Content-Type', 'application/grpc', 'TE', 'trailers', 'grpc-accept-encoding', 'gzip'];
  if (timeoutMs !== undefined) fields.push('grpc-timeout', `${Math.min(99999999, Math.max(1, Math.round(timeoutMs)))}m`);
  if (authority !== undefined) fields.push('Host', String(authority));
  for (const name of Object.keys(metadata ?? {})) {
    const lower = name.toLowerCase();
    if (lower.startsWith('grpc-') || ['content-type', 'te', 'content-length'].includes(lower)) {
      throw new TypeError(`metadata: '${name}' is set by gRPC itself; leave it out`);
    }
    for (const value of [metadata[name]].flat()) {
      fields.push(lower, lower.endsWith('-bin') ? native.base64Encode(value, 'rawstd') : String(value));
    }
  }
  return fields;
}

// Number of the certificates of a connection; 0 for those of the load.
function channelOf(tls) {
  if (tls === undefined || tls === null) return 0;
  checkParams(tls, TLS_PARAMS, 'client.connect(): tls');
  if (tls.password) throw new TypeError("client.connect(): tls: 'password' is not supported; give the key without one");
  return native.grpcChannel([tls.cacerts ?? []].flat().map(String), String(tls.cert ?? ''), String(tls.key ?? ''));
}

// Fields of metadata as header lines.
const linesOf = (metadata) => Object.keys(metadata ?? {}).map((name) => `${name}: ${[metadata[name]].flat().join(', ')}`);

// A message of the health check, framed: field 1 has the name of the service.
function healthRequest(service) {
  const name = new Uint8Array(native.utf8Encode(service));
  const length = [];
  for (let left = name.length; left > 0 || length.length === 0; left >>>= 7) length.push((left & 127) | (left > 127 ? 128 : 0));
  const message = name.length === 0 ? [] : [0x0a, ...length, ...name];
  return new Uint8Array([0, 0, 0, message.length >> 8, message.length & 255, ...message]).buffer;
}

// Status of a response of the health check: field 1, an enumeration.
function healthStatus(framed) {
  const message = new Uint8Array(framed, PREFIX_BYTES);
  return HEALTH[message[0] === 0x08 ? message[1] : 0] ?? 'UNKNOWN';
}

// Fields of a response, each with its values.
function fieldLists(head) {
  const lists = {};
  for (const line of head.split('\r\n').slice(1)) {
    const colon = line.indexOf(':');
    if (colon < 1) continue;
    (lists[line.slice(0, colon).toLowerCase()] ??= []).push(line.slice(colon + 1).trim());
  }
  return lists;
}

// Text of a status, which is percent-encoded; what is none stays as it is.
function messageOf(fields) {
  const text = (fields['grpc-message'] ?? []).join(', ');
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function failure(code, message) {
  return { code, message, details: [] };
}

// What a stream asks of its client.
let opened;

export class Client {
  #folders = [];
  #files = [];
  #set;
  #target;
  #channel = 0;
  #authority;
  #schemas;
  #limits = {};
  #streams = new Set();

  static {
    opened = (client, stream, method, params) => client.#open(stream, method, params);
  }

  load(importPaths, ...files) {
    this.#needsInit('load');
    if (files.length === 0) throw new TypeError('client.load() needs the name of a .proto file');
    this.#folders.push(...(importPaths ?? []).map(String));
    this.#files.push(...files.map(String));
    this.#schemas = native.grpcSchemas('', this.#files, this.#folders);
    return [];
  }
  loadProtoset(path) {
    this.#needsInit('loadProtoset');
    this.#set = String(path);
    this.#schemas = native.grpcSchemas('', [], [], { set: this.#set });
    return [];
  }
  connect(address, params) {
    if (native.facts()[9]) throw new TypeError('client.connect() is not available in the init context');
    checkParams(params, CONNECT_PARAMS, 'client.connect()');
    const host = String(address);
    if (host.includes('/')) throw new TypeError(`invalid address '${host}'; write host:port`);
    const isPlain = params?.plaintext === true;
    this.#channel = isPlain ? 0 : channelOf(params?.tls);
    this.#authority = params?.authority;
    this.#target = `${isPlain ? 'http' : 'https'}://${host}`;
    this.#limits = { received: params?.maxReceiveSize, sent: params?.maxSendSize };
    if (params?.reflect === true) {
      const asked = { channel: this.#channel, headers: linesOf(params.reflectMetadata) };
      this.#schemas = native.grpcSchemas(`${isPlain ? 'grpc' : 'grpcs'}://${host}`, [], [], asked);
    }
    return true;
  }
  close() {
    this.#target = undefined;
    for (const stream of [...this.#streams]) stream.cancel();
  }
  invoke(method, request, params) {
    const [args, name] = this.#prepared(method, request, params);
    return this.#response(native.send(...args), name, params);
  }
  async asyncInvoke(method, request, params) {
    const [args, name] = this.#prepared(method, request, params);
    const key = native.sendLater(...args);
    await new Promise((resolve) => {
      awaitResult(key, resolve);
    });
    return this.#response(native.result(key), name, params);
  }
  healthCheck(service) {
    const body = healthRequest(service === undefined || service === null ? '' : String(service));
    const args = this.#request(HEALTH_CHECK, body, undefined, DEFAULT_TIMEOUT_MS, {});
    const raw = native.send(...args);
    const response = this.#response(raw, HEALTH_CHECK, { discardResponseMessage: true });
    if (response.error === null && raw[3]?.byteLength >= PREFIX_BYTES) response.message = { status: healthStatus(raw[3]) };
    return response;
  }

  #needsInit(call) {
    if (!native.facts()[9]) throw new TypeError(`client.${call}() is for the init context: call it outside of functions`);
  }
  #connected() {
    if (this.#target === undefined) throw new Error('no connection of gRPC; call client.connect() first');
  }
  #encoded(name, message) {
    if (this.#schemas === undefined) throw new TypeError('no description of services; call client.load() first, or connect with reflect: true');
    const body = native.grpcEncode(this.#schemas, name, JSON.stringify(message ?? {}));
    const length = body.byteLength - PREFIX_BYTES;
    if (length > (this.#limits.sent ?? Infinity)) throw new Error(`${name}: the message has ${length} bytes, more than maxSendSize`);
    return body;
  }
  // Arguments of a request of a call, by the name of its method.
  #request(name, body, params, timeout, kind) {
    this.#connected();
    const tags = flat({ method: `/${name}`, service: name.split('/')[0], ...params?.tags });
    const own = { name: params?.tags?.name ?? name, timeout, redirects: 0, tags, responseType: 'binary', channel: this.#channel, ...kind };
    const fields = fieldsOf(params?.metadata, timeout, params?.authority ?? this.#authority);
    return ['POST', `${this.#target}/${name}`, body, fields, own];
  }
  #prepared(method, request, params) {
    this.#connected();
    checkParams(params, CALL_PARAMS, 'client.invoke()');
    const name = String(method).replace(/^\//, '');
    const timeout = milliseconds(params?.timeout, DEFAULT_TIMEOUT_MS);
    return [this.#request(name, this.#encoded(name, request), params, timeout, {}), name];
  }
  // Opens a call as a stream; what it is sent and read by.
  #open(stream, method, params) {
    checkParams(params, CALL_PARAMS, 'new Stream()');
    const name = String(method).replace(/^\//, '');
    const timeout = milliseconds(params?.timeout, undefined);
    const args = this.#request(name, undefined, params, timeout, { isStream: true, responseType: 'none' });
    // A method that is not there is an error here, and not that of the first message.
    this.#encoded(name, {});
    // The length of its body is not known.
    args[3].push('Content-Length', '');
    const tags = args[4].tags;
    const key = native.sendLater(...args);
    native.callOpened(tags);
    this.#streams.add(stream);
    return {
      key,
      write: (message) => native.callWrite(key, this.#encoded(name, message), tags),
      read: (framed, encoding) => this.#message(name, framed, encoding),
      status: (raw) => this.#failed(raw),
      forget: () => this.#streams.delete(stream),
    };
  }
  // Message of a response, decoded.
  #message(name, framed, encoding) {
    const length = framed.byteLength - PREFIX_BYTES;
    if (length > (this.#limits.received ?? Infinity)) {
      throw failure(CODES.ResourceExhausted, `the message has ${length} bytes, more than maxReceiveSize`);
    }
    try {
      const json = native.grpcDecode(this.#schemas, name, framed, encoding);
      return json === '' ? null : JSON.parse(json.split('\n', 1)[0]);
    } catch (error) {
      throw failure(CODES.Internal, error.message);
    }
  }
  // Error of a result without the status OK; undefined with it.
  #failed([status, , head, , text, errorCode]) {
    if (head === '') return failure(errorCode === 1050 ? CODES.DeadlineExceeded : CODES.Unavailable, text);
    if (status === CODES.OK) return undefined;
    // A status of HTTP is what a proxy has sent.
    if (status > CODES.Unauthenticated) return failure(CODES.Unavailable, `HTTP status ${status}`);
    return failure(status, messageOf(fieldLists(head)));
  }
  #response(raw, name, params) {
    const [, , head, body] = raw;
    const error = this.#failed(raw);
    const fields = fieldLists(head);
    const response = { status: error?.code ?? CODES.OK, message: null, headers: fields, trailers: fields, error: error ?? null };
    if (error !== undefined || body === null || body.byteLength === 0) return response;
    try {
      const length = body.byteLength - PREFIX_BYTES;
      const isRead = params?.discardResponseMessage !== true || length > (this.#limits.received ?? Infinity);
      if (isRead) response.message = this.#message(name, body, fields['grpc-encoding']?.[0] ?? '');
    } catch (why) {
      response.status = why.code;
      response.error = why;
    }
    return response;
  }
}

// Those that have not ended, by the keys of their calls.
const streams = new Map();
let areWatched = false;

function watch() {
  if (areWatched) return;
  areWatched = true;
  whenDue(() => {
    const arrived = native.callMessage();
    if (arrived !== undefined) streams.get(arrived[0])?.take(arrived);
  }, () => streams.clear());
}

export class Stream {
  #call;
  #handlers = new Map();
  #isWritten = false;
  #isOver = false;

  constructor(client, method, params) {
    if (!(client instanceof Client)) throw new TypeError('new Stream() takes a client, a method and parameters');
    this.#call = opened(client, this, method, params);
    const { key } = this.#call;
    streams.set(key, this);
    watch();
    awaitResult(key, () => this.#ended(key));
  }
  on(event, handler) {
    if (!EVENTS.includes(event)) throw new TypeError(`a stream has no event '${event}'; choose ${EVENTS.join(', ')}`);
    if (typeof handler !== 'function') throw new TypeError(`on('${event}') needs a function`);
    this.#handlers.set(event, [...(this.#handlers.get(event) ?? []), handler]);
  }
  write(message) {
    if (this.#isWritten) throw new Error('write() behind end(): the stream takes no further message');
    // What comes too late is none of the script's faults.
    if (!this.#isOver) this.#call.write(message);
  }
  end() {
    if (!this.#isWritten && !this.#isOver) native.callEnd(this.#call.key, false);
    this.#isWritten = true;
  }
  // Gives it up, since its client closes.
  cancel() {
    if (this.#isOver) return;
    this.#given();
    this.#over(undefined);
  }
  take([, framed, ts]) {
    let message;
    try {
      // The flag of compression names gzip, the one coding that a call accepts.
      const isCompressed = new Uint8Array(framed, 0, 1)[0] === 1;
      message = this.#call.read(framed, isCompressed ? 'gzip' : '');
    } catch (error) {
      this.#given();
      return this.#over(error);
    }
    return this.#emit('data', message, { ts });
  }
  #ended(key) {
    // Messages that have come before the end are first.
    for (let arrived = native.callMessage(key); arrived !== undefined && !this.#isOver; arrived = native.callMessage(key)) {
      this.take(arrived);
    }
    const raw = native.result(key);
    if (!this.#isOver) this.#over(this.#call.status(raw));
  }
  #given() {
    forgetResult(this.#call.key);
    native.callEnd(this.#call.key, true);
  }
  #over(error) {
    this.#isOver = true;
    streams.delete(this.#call.key);
    this.#call.forget();
    const metadata = { ts: Date.now() };
    if (error !== undefined) this.#emit('error', error, metadata);
    this.#emit('end', undefined, metadata);
  }
  #emit(event, ...args) {
    for (const handler of this.#handlers.get(event) ?? []) handler(...args);
  }
}

export default {
  Client, Stream, StatusOK, StatusCanceled, StatusUnknown, StatusInvalidArgument, StatusDeadlineExceeded, StatusNotFound,
  StatusAlreadyExists, StatusPermissionDenied, StatusResourceExhausted, StatusFailedPrecondition, StatusAborted,
  StatusOutOfRange, StatusUnimplemented, StatusInternal, StatusUnavailable, StatusDataLoss, StatusUnauthenticated,
  HealthCheckServing, HealthCheckNotServing, HealthCheckUnknown, HealthCheckServiceUnkown,
};
