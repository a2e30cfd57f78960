// Authentication of requests.
import * as native from 'weir:native';

const KINDS = ['noauth', 'basic', 'bearer', 'apikey', 'oauth2'];

// Attributes of an authentication: a list in collections of version 2.1, an object in those of 2.0.
function attributes(auth) {
  const own = auth[auth.type];
  if (Array.isArray(own)) return Object.fromEntries(own.map((item) => [item.key, item.value]));
  return own ?? {};
}

// Kind that weir does not have; undefined if it has it.
export function missingAuth(auth) {
  const type = auth?.type;
  return type === undefined || type === null || KINDS.includes(type) ? undefined : String(type);
}

const base64 = (text) => native.base64Encode(text, 'std');

function put(request, key, value) {
  request.headers.remove(key);
  request.headers.add({ key, value });
}

// Adds credentials to a request.
export function authorize(request, auth) {
  if (!auth || auth.type === 'noauth') return;
  const own = attributes(auth);
  if (auth.type === 'basic') {
    put(request, 'Authorization', `Basic ${base64(`${own.username ?? ''}:${own.password ?? ''}`)}`);
  } else if (auth.type === 'bearer') {
    if (own.token) put(request, 'Authorization', `Bearer ${own.token}`);
  } else if (auth.type === 'apikey') {
    if (!own.key && !own.value) return;
    if (own.in === 'query') {
      request.url.query.remove((item) => item.key === own.key);
      request.url.query.add({ key: own.key, value: own.value });
    } else {
      put(request, String(own.key), own.value);
    }
  } else if (auth.type === 'oauth2') {
    if (!own.accessToken) return;
    if (own.addTokenTo === 'queryParams') {
      request.url.query.remove((item) => item.key === 'access_token');
      request.url.query.add({ key: 'access_token', value: own.accessToken });
    } else {
      const prefix = String(own.headerPrefix ?? 'Bearer').trim();
      put(request, 'Authorization', prefix === '' ? String(own.accessToken) : `${prefix} ${own.accessToken}`);
    }
  }
}
