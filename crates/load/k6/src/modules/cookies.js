// Cookies of requests and responses.
import * as native from 'weir:native';

// A jar by its number; that of the user is 0.
export class CookieJar {
  #number;
  constructor(number) {
    this.#number = number ?? native.cookieJar();
  }
  get number() { return this.#number; }
  set(url, name, value, options = {}) {
    const parts = [`${name}=${value}`];
    if (options.domain) parts.push(`Domain=${options.domain}`);
    parts.push(`Path=${options.path || '/'}`);
    if (options.expires) parts.push(`Expires=${new Date(options.expires).toUTCString()}`);
    if (options.max_age) parts.push(`Max-Age=${options.max_age}`);
    if (options.secure) parts.push('Secure');
    if (options.http_only) parts.push('HttpOnly');
    return native.cookieSet(this.#number, String(url), parts.join('; '));
  }
  cookiesForURL(url) {
    const found = {};
    const pairs = native.cookieGet(this.#number, String(url));
    for (let at = 0; at < pairs.length; at += 2) (found[pairs[at]] ??= []).push(pairs[at + 1]);
    return found;
  }
  delete(url, name) {
    native.cookieSet(this.#number, String(url), `${name}=; Path=/; Max-Age=0`);
  }
  clear(url) {
    for (const name of Object.keys(this.cookiesForURL(url))) this.delete(url, name);
  }
}

// Cookies of the fields Set-Cookie, by their names.
export function setCookies(fields) {
  const cookies = {};
  for (const field of fields) {
    const [first, ...rest] = field.split(';');
    const at = first.indexOf('=');
    if (at < 0) continue;
    const cookie = {
      name: first.slice(0, at).trim(), value: first.slice(at + 1).trim(),
      domain: '', path: '', expires: 0, max_age: 0, secure: false, http_only: false,
    };
    for (const part of rest) {
      const equals = part.indexOf('=');
      const name = (equals < 0 ? part : part.slice(0, equals)).trim().toLowerCase();
      const value = equals < 0 ? '' : part.slice(equals + 1).trim();
      if (name === 'domain') cookie.domain = value;
      else if (name === 'path') cookie.path = value;
      else if (name === 'expires') cookie.expires = Date.parse(value) || 0;
      else if (name === 'max-age') cookie.max_age = Number(value) || 0;
      else if (name === 'secure') cookie.secure = true;
      else if (name === 'httponly') cookie.http_only = true;
    }
    (cookies[cookie.name] ??= []).push(cookie);
  }
  return cookies;
}
