// Responses: nothing is parsed before it is looked at.
import { setCookies } from 'weir:cookies';
import { late, loaded } from 'weir:late';
import * as native from 'weir:native';

const canonical = (name) => name.toLowerCase().replace(/(^|-)[a-z]/g, (sign) => sign.toUpperCase());

function parsedHead(head) {
  const headers = {};
  const cookies = [];
  const lines = head.split('\r\n');
  for (let at = 1; at < lines.length; at += 1) {
    const colon = lines[at].indexOf(':');
    if (colon < 1) continue;
    const name = canonical(lines[at].slice(0, colon));
    const value = lines[at].slice(colon + 1).trim();
    if (name === 'Set-Cookie') cookies.push(value);
    headers[name] = name in headers ? `${headers[name]}, ${value}` : value;
  }
  return [headers, cookies];
}

// A value of JSON by a path as gjson has it: names and numbers with dots, `#` for all or the length.
function picked(value, path) {
  const parts = path.split(/(?<!\\)\./).map((part) => part.replace(/\\(.)/g, '$1'));
  return parts.length > 0 ? walk(value, parts, 0) : value;
}

function walk(value, parts, at) {
  if (at === parts.length) return value;
  if (value === undefined || value === null) return undefined;
  const part = parts[at];
  if (Array.isArray(value) && part === '#') {
    if (at === parts.length - 1) return value.length;
    return value.map((one) => walk(one, parts, at + 1)).filter((one) => one !== undefined);
  }
  const query = Array.isArray(value) ? part.match(/^#\((.+?)(==|!=|<=|>=|<|>|%)(.*)\)(#?)$/) : null;
  if (query) {
    const [, name, sign, text, all] = query;
    let wanted = text;
    try {
      wanted = JSON.parse(text);
    } catch {
      // A word without quotes.
    }
    const holds = (one) => compared(walk(one, name.split('.'), 0), sign, wanted);
    if (all) return value.filter(holds).map((one) => walk(one, parts, at + 1)).filter((one) => one !== undefined);
    return walk(value.find(holds), parts, at + 1);
  }
  if (typeof value !== 'object') return undefined;
  return walk(Object.hasOwn(value, part) ? value[part] : undefined, parts, at + 1);
}

function compared(value, sign, wanted) {
  switch (sign) {
    case '==': return value === wanted;
    case '!=': return value !== wanted;
    case '<': return value < wanted;
    case '<=': return value <= wanted;
    case '>': return value > wanted;
    case '>=': return value >= wanted;
    default: return new RegExp(`^${String(wanted).replace(/[.+^${}()|[\]\\]/g, '\\$&').replace(/\*/g, '.*').replace(/\?/g, '.')}$`).test(String(value));
  }
}

export class Response {
  #raw;
  #parsed;
  #json;
  #request;
  #timings;
  constructor(raw, request) {
    this.#raw = raw;
    this.#request = request;
    this.status = raw[0];
    this.url = raw[1];
    this.body = raw[3];
    this.error = raw[4];
    this.error_code = raw[5];
  }
  get #head() { return (this.#parsed ??= parsedHead(this.#raw[2])); }
  get status_text() {
    const line = this.#raw[2].split('\r\n', 1)[0];
    return this.status === 0 ? '' : line.slice(line.indexOf(' ') + 1);
  }
  get proto() { return this.status === 0 ? '' : this.#raw[2].slice(0, this.#raw[2].indexOf(' ')).replace(/^HTTP\/2$/, 'HTTP/2.0'); }
  get headers() { return this.#head[0]; }
  get cookies() { return (this.#head[2] ??= setCookies(this.#head[1])); }
  get remote_ip() { return ''; }
  get remote_port() { return 0; }
  get tls_version() { return ''; }
  get tls_cipher_suite() { return ''; }
  get ocsp() { return { produced_at: 0, this_update: 0, next_update: 0, revoked_at: 0, revocation_reason: '', status: 'unknown' }; }
  get request() {
    const { method, url, headers, body, cookies } = this.#request;
    return { method: this.#raw[6] || method, url: this.url || url, headers: headers ?? {}, body: body ?? '', cookies: cookies ?? {} };
  }
  get timings() {
    if (this.#timings === undefined) {
      const [, , , , , , , duration, waiting, connecting] = this.#raw;
      this.#timings = {
        blocked: 0, looking_up: 0, connecting, tls_handshaking: 0, sending: 0, waiting,
        receiving: Math.max(0, duration - waiting), duration,
      };
    }
    return this.#timings;
  }
  json(path) {
    if (this.#json === undefined) {
      if (typeof this.body !== 'string') {
        if (this.body === null || this.body === undefined) throw new TypeError('the body is null so we can\'t transform it to JSON');
        throw new TypeError('json() needs a body that is text; leave out responseType');
      }
      this.#json = [JSON.parse(this.body)];
    }
    return path === undefined ? this.#json[0] : picked(this.#json[0], String(path));
  }
  html(selector) {
    if (typeof this.body !== 'string') throw new TypeError('html() needs a body that is text');
    const page = loaded('k6/html', 'parseHTML')(this.body);
    return selector === undefined ? page : page.find(selector);
  }
  submitForm({ formSelector = 'form', fields = {}, submitSelector = '[type="submit"]', params } = {}) {
    const form = this.html(formSelector).first();
    if (form.size() === 0) throw new Error(`no form '${formSelector}' in the response of '${this.url}'`);
    const method = (form.attr('method') || 'GET').toUpperCase();
    const target = native.resolveUrl(this.url, form.attr('action') ?? this.url);
    const values = form.serializeObject();
    // The button counts as pressed, if there is one.
    const button = form.find(submitSelector).first();
    const name = button.attr('name');
    if (name) values[name] = button.attr('value') ?? '';
    Object.assign(values, fields);
    if (method !== 'GET') return late.request(method, target, values, params);
    const query = late.formText(values);
    const [page] = target.split(/[?#]/, 1);
    return late.request('GET', query === '' ? page : `${page}?${query}`, undefined, params);
  }
  clickLink({ selector = 'a[href]', params } = {}) {
    const link = this.html(selector).first();
    const href = link.attr('href');
    if (href === undefined) throw new Error(`no link '${selector}' in the response of '${this.url}'`);
    return late.request('GET', native.resolveUrl(this.url, href), undefined, params);
  }
}
