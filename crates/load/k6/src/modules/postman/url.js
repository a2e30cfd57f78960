// URLs of requests in their parts.
import { PropertyList } from 'weir:postman/lists';

const QUERY_SET = new Set([' ', '"', '#', "'", '<', '>']);
const PATH_SET = new Set([' ', '"', '<', '>', '`', '#', '?', '{', '}']);

// A text whose signs of a set, controls and all beyond ASCII are percent-encoded; what is encoded stays.
function percentEncoded(text, set) {
  let whole = '';
  for (const sign of text) {
    const code = sign.codePointAt(0);
    whole += code <= 0x20 || code >= 0x7f || set.has(sign) ? encodedSign(sign) : sign;
  }
  return whole;
}

function encodedSign(sign) {
  try {
    const made = encodeURIComponent(sign);
    return made === sign ? `%${sign.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}` : made;
  } catch {
    return '%EF%BF%BD';
  }
}

function parsed(text) {
  let rest = text.trim();
  const parts = { protocol: undefined, auth: undefined, host: [], port: undefined, path: undefined, query: [], hash: undefined };
  const hash = rest.indexOf('#');
  if (hash >= 0) [parts.hash, rest] = [rest.slice(hash + 1), rest.slice(0, hash)];
  const mark = rest.indexOf('?');
  if (mark >= 0) {
    parts.query = rest.slice(mark + 1).split('&').map((pair) => {
      const at = pair.indexOf('=');
      return at < 0 ? { key: pair, value: null } : { key: pair.slice(0, at), value: pair.slice(at + 1) };
    });
    rest = rest.slice(0, mark);
  }
  rest = rest.replaceAll('\\', '/');
  const scheme = rest.indexOf('://');
  if (scheme >= 0) [parts.protocol, rest] = [rest.slice(0, scheme), rest.slice(scheme + 3)];
  const slash = rest.indexOf('/');
  if (slash >= 0) [parts.path, rest] = [rest.slice(slash + 1).split('/'), rest.slice(0, slash)];
  const at = rest.lastIndexOf('@');
  if (at >= 0) {
    const [user, ...password] = rest.slice(0, at).split(':');
    parts.auth = { user, password: password.length > 0 ? password.join(':') : undefined };
    rest = rest.slice(at + 1);
  }
  const port = rest.match(/:([^:\]]*)$/);
  if (port) [parts.port, rest] = [port[1], rest.slice(0, port.index)];
  parts.host = rest === '' ? [] : rest.startsWith('[') ? [rest] : rest.split('.');
  return parts;
}

const list = (value, sign) => (value === undefined || value === null ? undefined : Array.isArray(value) ? value : String(value).split(sign));
const segment = (part) => (typeof part === 'object' && part !== null ? String(part.value ?? '') : String(part));

export class Url {
  constructor(given) { this.update(given); }
  update(given) {
    const isObject = typeof given === 'object' && given !== null;
    const hasParts = isObject && (given.host !== undefined || given.path !== undefined);
    const parts = hasParts ? { ...given } : parsed(String((isObject ? given.raw : given) ?? ''));
    if (given instanceof Url) Object.assign(parts, { query: given.query.all(), variable: given.variables.all() });
    this.protocol = parts.protocol;
    this.auth = parts.auth;
    this.host = list(parts.host, '.') ?? [];
    this.port = parts.port;
    // A path that is a text begins with a slash.
    this.path = list(typeof parts.path === 'string' ? parts.path.replace(/^\//, '') : parts.path, '/')?.map(segment);
    this.hash = parts.hash;
    this.query = new PropertyList(parts.query);
    this.variables = new PropertyList(parts.variable ?? (isObject ? given.variable : undefined));
  }
  getHost() { return this.host.join('.'); }
  getPath({ unresolved = false } = {}) {
    const parts = (this.path ?? []).map((part) => {
      if (unresolved || !part.startsWith(':') || part.length < 2) return part;
      const own = this.variables.one(part.slice(1));
      return own === undefined || own.disabled || own.value === undefined || own.value === null ? part : String(own.value);
    });
    return `/${parts.join('/')}`;
  }
  getQueryString() {
    const shown = this.query.filter((item) => !item.disabled);
    return shown.map((item) => (item.value === null || item.value === undefined ? item.key : `${item.key}=${item.value}`)).join('&');
  }
  getRemote() { return this.port ? `${this.getHost()}:${this.port}` : this.getHost(); }
  getPathWithQuery() { const query = this.getQueryString(); return query === '' ? this.getPath() : `${this.getPath()}?${query}`; }
  addQueryParams(params) { for (const item of new PropertyList(typeof params === 'string' ? params.split('&') : params)) this.query.add(item); }
  removeQueryParams(params) {
    const names = (Array.isArray(params) ? params : [params]).map((item) => (typeof item === 'string' ? item : item.key));
    this.query.remove((item) => names.includes(item.key));
  }
  toString(forcesProtocol = false) {
    let text = this.protocol ? `${this.protocol}://` : forcesProtocol ? 'http://' : '';
    if (this.auth?.user !== undefined) text += `${this.auth.user}${this.auth.password === undefined ? '' : `:${this.auth.password}`}@`;
    text += this.getRemote();
    if (this.path !== undefined) text += this.getPath();
    if (this.query.filter((item) => !item.disabled).length > 0) text += `?${this.getQueryString()}`;
    if (this.hash) text += `#${this.hash}`;
    return text;
  }
  toJSON() { return this.toString(); }
  // As it is sent: without user and fragment.
  sent(isEncoded = true) {
    const scheme = (this.protocol || 'http').toLowerCase();
    const path = isEncoded ? percentEncoded(this.getPath(), PATH_SET) : this.getPath();
    const hasQuery = this.query.filter((item) => !item.disabled).length > 0;
    const query = hasQuery ? `?${isEncoded ? percentEncoded(this.getQueryString(), QUERY_SET) : this.getQueryString()}` : '';
    return `${scheme}://${this.getRemote().toLowerCase()}${path}${query}`;
  }
}
