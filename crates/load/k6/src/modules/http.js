// k6/http.
import * as native from 'weir:native';
import { CookieJar } from 'weir:cookies';
import { encoded, FileData } from 'weir:forms';
import { late } from 'weir:late';
import { Response } from 'weir:response';
import { awaitResult, flat } from 'weir:values';

const userJar = new CookieJar(0);
let defaultExpected;
let options;
const scriptOptions = () => (options ??= JSON.parse(native.options()));

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

// Statuses of successes, as pairs of the first and the last; an empty list: all.
class Expected {
  constructor(ranges) { this.ranges = ranges; }
}

export function expectedStatuses(...statuses) {
  const ranges = [];
  for (const status of statuses) {
    if (typeof status === 'number') ranges.push(status, status);
    else if (status && typeof status === 'object') ranges.push(status.min, status.max);
    else throw new TypeError('expectedStatuses() takes numbers and { min, max }');
  }
  if (ranges.length === 0) throw new TypeError('expectedStatuses() needs a status');
  return new Expected(ranges);
}

function rangesOf(callback) {
  if (callback === null) return [];
  if (callback instanceof Expected) return callback.ranges;
  throw new TypeError('a response callback is made by http.expectedStatuses(), or null');
}

export function setResponseCallback(callback) {
  defaultExpected = rangesOf(callback);
}

const isName = (headers, name) => headers.some((known, at) => at % 2 === 0 && known.toLowerCase() === name);

function cookieHeader(cookies, target, jar) {
  const texts = [];
  for (const name of Object.keys(cookies)) {
    const cookie = cookies[name];
    const isObject = typeof cookie === 'object' && cookie !== null;
    // Those of the jar are sent beside them.
    if (isObject && cookie.replace === false && name in jar.cookiesForURL(target)) continue;
    texts.push(`${name}=${isObject ? cookie.value : cookie}`);
  }
  return texts.join('; ');
}

const milliseconds = (value) => {
  if (typeof value === 'number' && value >= 0) return value;
  if (!/^([0-9.]+(ms|us|s|m|h|d)?)+$/.test(String(value))) {
    throw new TypeError(`invalid timeout '${String(value)}'; write milliseconds, or e.g. '10s'`);
  }
  let sum = 0;
  const parts = String(value).matchAll(/([0-9.]+)(ms|us|s|m|h|d)?/g);
  for (const [, number, unit] of parts) {
    sum += Number(number) * { ms: 1, us: 0.001, s: 1000, m: 60000, h: 3600000, d: 86400000 }[unit ?? 'ms'];
  }
  return sum;
};

// Arguments of the host's send().
function prepared(method, target, body, params) {
  const [content, type] = encoded(body);
  const name = target instanceof NamedUrl ? target.name : undefined;
  const address = String(target?.url ?? target);
  const headers = [];
  const request = { method, url: address, headers: params?.headers, body: content, cookies: undefined };
  if (params === undefined || params === null) {
    if (type !== undefined) headers.push('Content-Type', type);
    const own = name === undefined && defaultExpected === undefined ? undefined : { name, expected: defaultExpected };
    return [[method, address, content, headers.length > 0 ? headers : undefined, own], request];
  }
  for (const header of Object.keys(params.headers ?? {})) {
    const value = params.headers[header];
    if (value !== undefined && value !== null) headers.push(header, String(value));
  }
  if (type !== undefined && !isName(headers, 'content-type')) headers.push('Content-Type', type);
  const jar = params.jar ?? userJar;
  if (params.cookies) {
    const cookies = cookieHeader(params.cookies, address, jar);
    if (cookies !== '') headers.push('Cookie', cookies);
    request.cookies = params.cookies;
  }
  if (params.auth !== undefined && params.auth !== 'basic') {
    throw new TypeError(`auth: '${params.auth}' is not supported; write 'basic', or the header yourself`);
  }
  if (params.compression) {
    throw new TypeError(`compression: '${params.compression}' is not supported; leave it out`);
  }
  const callback = params.responseCallback;
  const own = {
    name: params.tags?.name ?? name,
    timeout: params.timeout === undefined || params.timeout === null ? undefined : milliseconds(params.timeout),
    redirects: params.redirects,
    jar: jar === userJar ? undefined : jar.number,
    expected: callback === undefined ? defaultExpected : rangesOf(callback),
    tags: flat(params.tags),
    responseType: params.responseType,
  };
  return [[method, address, content, headers.length > 0 ? headers : undefined, own], request];
}

function checked(response, params) {
  if (response.error_code > 0 && response.status === 0 && (params?.throw ?? scriptOptions().throw)) {
    throw new Error(`${response.request.method} ${response.url}: ${response.error}`);
  }
  return response;
}

export function request(method, target, body, params) {
  const [args, sent] = prepared(String(method).toUpperCase(), target, body, params);
  return checked(new Response(native.send(...args), sent), params);
}

// For forms and links of responses.
late.request = request;
late.formText = (fields) => encoded(fields)[0] ?? '';

export const get = (target, params) => request('GET', target, undefined, params);
export const head = (target, params) => request('HEAD', target, undefined, params);
export const post = (target, body, params) => request('POST', target, body, params);
export const put = (target, body, params) => request('PUT', target, body, params);
export const patch = (target, body, params) => request('PATCH', target, body, params);
export const del = (target, body, params) => request('DELETE', target, body, params);
export { del as delete };
const options_ = (target, body, params) => request('OPTIONS', target, body, params);
export { options_ as options };

export async function asyncRequest(method, target, body, params) {
  const [args, sent] = prepared(String(method).toUpperCase(), target, body, params);
  const key = native.sendLater(...args);
  const raw = await new Promise((resolve) => {
    awaitResult(key, resolve);
  });
  return checked(new Response(raw, sent), params);
}

function one(entry) {
  if (typeof entry === 'string' || entry instanceof NamedUrl) return ['GET', entry];
  if (Array.isArray(entry)) return entry;
  if (entry && typeof entry === 'object') return [entry.method ?? 'GET', entry.url, entry.body, entry.params];
  throw new TypeError('batch() takes URLs, arrays and objects');
}

const hostOf = (address) => address.split('/')[2] ?? '';

// Several requests at a time, within the options batch and batchPerHost.
export function batch(requests) {
  const names = Object.keys(requests);
  const { batch: most = 20, batchPerHost: mostOfHost = 6 } = scriptOptions();
  const waiting = names.map((name) => {
    const [method, target, body, params] = one(requests[name]);
    const [args, sent] = prepared(String(method).toUpperCase(), target, body, params);
    return { name, args, sent, params, host: hostOf(args[1]) };
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
      open.set(native.sendLater(...entry.args), entry);
    }
    native.awaitRequest();
    for (const key of native.finished()) {
      const entry = open.get(key);
      if (entry === undefined) continue;
      open.delete(key);
      ofHost.set(entry.host, ofHost.get(entry.host) - 1);
      responses[entry.name] = checked(new Response(native.result(key), entry.sent), entry.params);
    }
  }
  return responses;
}

export const file = (data, filename, contentType) => new FileData(data, filename, contentType);
export const cookieJar = () => userJar;
export { CookieJar, Response };

// Constants of TLS and OCSP, as scripts compare them.
export const SSL_3_0 = 'ssl3.0';
export const TLS_1_0 = 'tls1.0';
export const TLS_1_1 = 'tls1.1';
export const TLS_1_2 = 'tls1.2';
export const TLS_1_3 = 'tls1.3';
export const OCSP_STATUS_GOOD = 'good';
export const OCSP_STATUS_REVOKED = 'revoked';
export const OCSP_STATUS_SERVER_FAILED = 'server_failed';
export const OCSP_STATUS_UNKNOWN = 'unknown';
export const OCSP_REASON_AA_COMPROMISE = 'aa_compromise';
export const OCSP_REASON_AFFILIATION_CHANGED = 'affiliation_changed';
export const OCSP_REASON_CA_COMPROMISE = 'ca_compromise';
export const OCSP_REASON_CERTIFICATE_HOLD = 'certificate_hold';
export const OCSP_REASON_CESSATION_OF_OPERATION = 'cessation_of_operation';
export const OCSP_REASON_KEY_COMPROMISE = 'key_compromise';
export const OCSP_REASON_PRIVILEGE_WITHDRAWN = 'privilege_withdrawn';
export const OCSP_REASON_REMOVE_FROM_CRL = 'remove_from_crl';
export const OCSP_REASON_SUPERSEDED = 'superseded';
export const OCSP_REASON_UNSPECIFIED = 'unspecified';

export default {
  get, head, post, put, patch, del, delete: del, options: options_, request, asyncRequest, batch, file, cookieJar,
  url, expectedStatuses, setResponseCallback, CookieJar, Response,
  SSL_3_0, TLS_1_0, TLS_1_1, TLS_1_2, TLS_1_3, OCSP_STATUS_GOOD, OCSP_STATUS_REVOKED, OCSP_STATUS_SERVER_FAILED,
  OCSP_STATUS_UNKNOWN, OCSP_REASON_AA_COMPROMISE, OCSP_REASON_AFFILIATION_CHANGED, OCSP_REASON_CA_COMPROMISE,
  OCSP_REASON_CERTIFICATE_HOLD, OCSP_REASON_CESSATION_OF_OPERATION, OCSP_REASON_KEY_COMPROMISE,
  OCSP_REASON_PRIVILEGE_WITHDRAWN, OCSP_REASON_REMOVE_FROM_CRL, OCSP_REASON_SUPERSEDED, OCSP_REASON_UNSPECIFIED,
};
