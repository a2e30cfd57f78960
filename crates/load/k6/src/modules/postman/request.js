// Requests of a collection, as scripts see and change them.
import { authorize } from 'weir:postman/auth';
import { content, RequestBody } from 'weir:postman/body';
import { PropertyList } from 'weir:postman/lists';
import { replacedDeep, replaced } from 'weir:postman/scopes';
import { Url } from 'weir:postman/url';

// Most redirects that are followed, as in Postman.
const MAX_REDIRECTS = 10;

export class PostmanRequest {
  #url;
  #headers;
  #body;
  constructor(given) {
    const own = typeof given === 'string' ? { url: given } : given ?? {};
    this.method = String(own.method ?? 'GET').toUpperCase();
    this.url = own.url;
    this.headers = own.header ?? own.headers;
    if (own.body !== undefined && own.body !== null) this.body = own.body;
    this.auth = own.auth;
    this.description = own.description;
    if (own.name !== undefined) this.name = own.name;
  }
  get url() { return this.#url; }
  set url(given) { this.#url = new Url(given); }
  get headers() { return this.#headers; }
  set headers(given) { this.#headers = new PropertyList(given, true); }
  get body() { return this.#body; }
  set body(given) { this.#body = given === undefined || given === null ? undefined : new RequestBody(given); }
  addHeader(header) { this.#headers.add(header); }
  upsertHeader(header) { this.#headers.upsert(header); }
  removeHeader(which) { this.#headers.remove(typeof which === 'string' ? which : (item) => item === which); }
  getHeaders() { return this.#headers.toObject(true); }
  addQueryParams(params) { this.#url.addQueryParams(params); }
  removeQueryParams(params) { this.#url.removeQueryParams(params); }
  update(given) { Object.assign(this, given.header === undefined ? given : { ...given, headers: given.header }); }
  clone() { return new PostmanRequest(this.#plain()); }
  // Sent with its variables replaced: a new request.
  resolved(scopes) {
    const plain = this.#plain();
    const address = replaced(this.#url.toString(), scopes);
    const made = new PostmanRequest({ ...replacedDeep({ ...plain, url: undefined }, scopes), url: address });
    return made;
  }
  #plain() {
    return JSON.parse(JSON.stringify({
      method: this.method,
      url: this.#url.toString(),
      header: this.#headers.all(),
      body: this.#body === undefined ? undefined : { ...this.#body },
      auth: this.auth,
      name: this.name,
      description: this.description,
    }));
  }
  toJSON() { return this.#plain(); }
  get [Symbol.toStringTag]() { return 'Request'; }
}

// Headers as an object: names that come again differ by the case of their letters, which means nothing.
function headerObject(list) {
  const object = {};
  for (const { key, value, disabled } of list) {
    if (disabled || key === '' || key === null || key === undefined) continue;
    let name = String(key);
    for (let at = 0; Object.hasOwn(object, name) && at < name.length; at += 1) name = turned(name, at);
    object[name] = String(value ?? '');
  }
  return object;
}

function turned(name, at) {
  const sign = name[at];
  return `${name.slice(0, at)}${sign === sign.toLowerCase() ? sign.toUpperCase() : sign.toLowerCase()}${name.slice(at + 1)}`;
}

// Arguments of http.request() for a request whose variables are replaced.
export function wire(request, auth, behavior, file) {
  authorize(request, auth);
  const type = request.headers.filter((item) => !item.disabled && String(item.key).toLowerCase() === 'content-type').at(-1)?.value;
  const [body, own] = content(request.body, request.method, type, behavior.disableBodyPruning === true, file);
  if (own !== undefined && own !== type) {
    request.headers.remove('Content-Type');
    request.headers.add({ key: 'Content-Type', value: own });
  }
  if (!request.headers.has('Accept')) request.headers.add({ key: 'Accept', value: '*/*' });
  const redirects = behavior.followRedirects === false ? 0 : behavior.maxRedirects ?? MAX_REDIRECTS;
  return [request.method, request.url.sent(behavior.disableUrlEncoding !== true), body, { headers: headerObject(request.headers), redirects }];
}
