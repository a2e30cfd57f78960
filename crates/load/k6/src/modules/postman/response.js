// Responses as scripts of a collection see them.
import * as native from 'weir:native';
import { PropertyList } from 'weir:postman/lists';
import { expectResponse } from 'weir:postman/expect';

const REASONS = {
  100: 'Continue', 101: 'Switching Protocols', 200: 'OK', 201: 'Created', 202: 'Accepted', 203: 'Non-Authoritative Information',
  204: 'No Content', 205: 'Reset Content', 206: 'Partial Content', 300: 'Multiple Choices', 301: 'Moved Permanently',
  302: 'Found', 303: 'See Other', 304: 'Not Modified', 307: 'Temporary Redirect', 308: 'Permanent Redirect',
  400: 'Bad Request', 401: 'Unauthorized', 402: 'Payment Required', 403: 'Forbidden', 404: 'Not Found',
  405: 'Method Not Allowed', 406: 'Not Acceptable', 408: 'Request Timeout', 409: 'Conflict', 410: 'Gone',
  411: 'Length Required', 412: 'Precondition Failed', 413: 'Payload Too Large', 415: 'Unsupported Media Type',
  418: "I'm a teapot", 422: 'Unprocessable Entity', 423: 'Locked', 425: 'Too Early', 426: 'Upgrade Required',
  428: 'Precondition Required', 429: 'Too Many Requests', 431: 'Request Header Fields Too Large', 500: 'Internal Server Error',
  501: 'Not Implemented', 502: 'Bad Gateway', 503: 'Service Unavailable', 504: 'Gateway Timeout',
};

export class PostmanResponse {
  #bytes;
  // Without an argument that of a request that has failed.
  constructor(made = { headers: {} }) {
    this.code = made.status;
    this.status = (made.status_text ?? '').replace(/^\d+ ?/, '') || REASONS[made.status];
    this.headers = new PropertyList(Object.keys(made.headers).map((key) => ({ key, value: made.headers[key] })), true);
    this.responseTime = made.timings === undefined ? undefined : Math.round(made.timings.duration);
    this.#bytes = made.body;
    Object.defineProperty(this, 'to', { get: () => expectResponse(this).to });
  }
  get stream() { return typeof this.#bytes === 'string' ? native.utf8Encode(this.#bytes) : this.#bytes ?? new ArrayBuffer(0); }
  get responseSize() { return this.stream.byteLength; }
  text() { return typeof this.#bytes === 'string' ? this.#bytes : native.utf8Decode(this.#bytes ?? new ArrayBuffer(0)); }
  get body() { return this.text(); }
  json(reviver) {
    const text = this.text();
    return JSON.parse(text.startsWith('\ufeff') ? text.slice(1) : text, typeof reviver === 'function' ? reviver : undefined);
  }
  jsonp(reviver) { return JSON.parse(this.text().replace(/^[^({[]*\(([\s\S]*)\)[;\s]*$/, '$1'), reviver); }
  reason() { return this.status; }
  details() { return { name: this.status ?? '', detail: '', code: this.code, standardName: REASONS[this.code] ?? this.status }; }
  size() {
    const body = this.responseSize;
    const header = this.headers.reduce((sum, { key, value }) => sum + `${key}: ${value}\r\n`.length, 19);
    return { body, header, total: body + header };
  }
  contentInfo() {
    const [type = '', ...rest] = (this.headers.get('Content-Type') ?? '').split(';').map((part) => part.trim());
    const charset = rest.find((part) => part.toLowerCase().startsWith('charset='))?.slice(8) ?? 'utf8';
    return { contentType: type, mimeType: type.split('/')[0], mimeFormat: type.split('/')[1] ?? '', charset };
  }
  toJSON() { return { code: this.code, status: this.status, header: this.headers.all(), responseTime: this.responseTime, body: this.text() }; }
  get [Symbol.toStringTag]() { return 'Response'; }
}
