// k6/net/grpc: calls with one message each way.
import * as native from 'weir:native';
import { awaitResult, flat } from 'weir:values';

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
const CONNECT_PARAMS = ['plaintext', 'reflect', 'timeout', 'maxReceiveSize', 'maxSendSize'];
const CALL_PARAMS = ['metadata', 'tags', 'timeout', 'discardResponseMessage'];

function milliseconds(value) {
  if (value === undefined || value === null) return DEFAULT_TIMEOUT_MS;
  if (typeof value === 'number') return value;
  const parts = [...String(value).matchAll(/([0-9.]+)(ms|us|s|m|h)/g)];
  if (parts.length === 0) throw new TypeError(`invalid timeout '${value}'; write e.g. 5s`);
  return parts.reduce((sum, [, number, unit]) => sum + Number(number) * UNITS[unit], 0);
}

function checkParams(params, known, call) {
  for (const name of Object.keys(params ?? {})) {
    if (name === 'tls') throw new TypeError(`${call}: 'tls' is not supported; give --cacert, --cert and --cert-key to weir`);
    if (!known.includes(name)) throw new TypeError(`${call}: '${name}' is not supported; leave it out`);
  }
}

// Header lines of a call. Values of names with -bin are bytes.
function fieldsOf(metadata, timeoutMs) {
  const fields = [
    'Content-Type', 'application/grpc', 'TE', 'trailers', 'grpc-accept-encoding', 'gzip',
    'grpc-timeout', `${Math.min(99999999, Math.max(1, Math.round(timeoutMs)))}m`,
  ];
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

export class Client {
  #folders = [];
  #files = [];
  #set;
  #target;
  #schemas;
  #limits = {};

  load(importPaths, ...files) {
    this.#needsInit('load');
    if (files.length === 0) throw new TypeError('client.load() needs the name of a .proto file');
    this.#folders.push(...(importPaths ?? []).map(String));
    this.#files.push(...files.map(String));
    this.#schemas = native.grpcSchemas('', this.#files, this.#folders, undefined);
    return [];
  }
  loadProtoset(path) {
    this.#needsInit('loadProtoset');
    this.#set = String(path);
    this.#schemas = native.grpcSchemas('', [], [], this.#set);
    return [];
  }
  connect(address, params) {
    if (native.facts()[9]) throw new TypeError('client.connect() is not available in the init context');
    checkParams(params, CONNECT_PARAMS, 'client.connect()');
    const host = String(address);
    if (host.includes('/')) throw new TypeError(`invalid address '${host}'; write host:port`);
    const isPlain = params?.plaintext === true;
    this.#target = `${isPlain ? 'http' : 'https'}://${host}`;
    this.#limits = { received: params?.maxReceiveSize, sent: params?.maxSendSize };
    if (this.#schemas === undefined || params?.reflect === true) {
      if (params?.reflect !== true) throw new TypeError('client.connect(): no description of services; call load() first, or set reflect: true');
      this.#schemas = native.grpcSchemas(`${isPlain ? 'grpc' : 'grpcs'}://${host}`, [], [], undefined);
    }
    return true;
  }
  close() { this.#target = undefined; }
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
  healthCheck() {
    throw new TypeError('client.healthCheck() is not supported; load health.proto, and invoke grpc.health.v1.Health/Check');
  }

  #needsInit(call) {
    if (!native.facts()[9]) throw new TypeError(`client.${call}() is for the init context: call it outside of functions`);
  }
  #prepared(method, request, params) {
    if (this.#target === undefined) throw new Error('no connection of gRPC; call client.connect() first');
    checkParams(params, CALL_PARAMS, 'client.invoke()');
    const name = String(method).replace(/^\//, '');
    const body = native.grpcEncode(this.#schemas, name, JSON.stringify(request ?? {}));
    if (body.byteLength - 5 > (this.#limits.sent ?? Infinity)) {
      throw new Error(`${name}: the message has ${body.byteLength - 5} bytes, more than maxSendSize`);
    }
    const timeout = milliseconds(params?.timeout);
    const tags = flat({ method: `/${name}`, service: name.split('/')[0], ...params?.tags });
    const own = { name: params?.tags?.name ?? name, timeout, redirects: 0, tags, responseType: 'binary', isCall: true };
    return [['POST', `${this.#target}/${name}`, body, fieldsOf(params?.metadata, timeout), own], name];
  }
  #response(raw, name, params) {
    const [status, , head, body, text, errorCode] = raw;
    if (body === null) {
      const code = errorCode === 1050 ? CODES.DeadlineExceeded : CODES.Unavailable;
      return { status: code, message: null, headers: {}, trailers: {}, error: failure(code, text) };
    }
    const fields = fieldLists(head);
    const response = { status, message: null, headers: fields, trailers: fields, error: null };
    if (status !== CODES.OK) {
      // A status of HTTP is what a proxy has sent.
      response.status = status <= CODES.Unauthenticated ? status : CODES.Unavailable;
      const message = status <= CODES.Unauthenticated ? messageOf(fields) : `HTTP status ${status}`;
      response.error = failure(response.status, message);
      return response;
    }
    if (body.byteLength - 5 > (this.#limits.received ?? Infinity)) {
      response.status = CODES.ResourceExhausted;
      response.error = failure(response.status, `the message has ${body.byteLength - 5} bytes, more than maxReceiveSize`);
      return response;
    }
    if (params?.discardResponseMessage !== true) {
      try {
        const json = native.grpcDecode(this.#schemas, name, body, fields['grpc-encoding']?.[0] ?? '');
        response.message = json === '' ? null : JSON.parse(json.split('\n', 1)[0]);
      } catch (error) {
        response.status = CODES.Internal;
        response.error = failure(response.status, error.message);
      }
    }
    return response;
  }
}

export class Stream {
  constructor() {
    throw new TypeError('Stream of k6/net/grpc is not supported; measure streams by weir load grpc://HOST/SERVICE/METHOD');
  }
}

export default {
  Client, Stream, StatusOK, StatusCanceled, StatusUnknown, StatusInvalidArgument, StatusDeadlineExceeded, StatusNotFound,
  StatusAlreadyExists, StatusPermissionDenied, StatusResourceExhausted, StatusFailedPrecondition, StatusAborted,
  StatusOutOfRange, StatusUnimplemented, StatusInternal, StatusUnavailable, StatusDataLoss, StatusUnauthenticated,
  HealthCheckServing, HealthCheckNotServing, HealthCheckUnknown, HealthCheckServiceUnkown,
};
