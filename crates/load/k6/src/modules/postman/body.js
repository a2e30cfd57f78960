// Bodies of requests: texts, forms, files, GraphQL.
import * as native from 'weir:native';
import { PropertyList, members } from 'weir:postman/lists';

const TYPES = {
  json: 'application/json', xml: 'application/xml', html: 'text/html', javascript: 'application/javascript', text: 'text/plain',
};
const FILE_TYPES = {
  txt: 'text/plain', csv: 'text/csv', html: 'text/html', css: 'text/css', js: 'application/javascript', json: 'application/json',
  xml: 'application/xml', pdf: 'application/pdf', zip: 'application/zip', png: 'image/png', jpg: 'image/jpeg',
  jpeg: 'image/jpeg', gif: 'image/gif', svg: 'image/svg+xml', webp: 'image/webp',
};
const typeOf = (name) => FILE_TYPES[name.split('.').at(-1).toLowerCase()] ?? 'application/octet-stream';
// Methods with which Postman sends no body.
const WITHOUT_BODY = ['COPY', 'GET', 'HEAD', 'PURGE', 'UNLOCK'];

export class RequestBody {
  constructor(given) { this.update(given); }
  update(given) {
    const own = typeof given === 'string' ? { mode: 'raw', raw: given } : given ?? {};
    this.mode = own.mode;
    this.raw = own.raw;
    this.urlencoded = own.urlencoded === undefined ? undefined : new PropertyList(fields(own.urlencoded));
    this.formdata = own.formdata === undefined ? undefined : new PropertyList(own.formdata);
    this.graphql = own.graphql;
    this.file = typeof own.file === 'string' ? { src: own.file } : own.file;
    this.options = own.options;
    this.disabled = own.disabled;
  }
  isEmpty() {
    const own = this.mode === undefined ? undefined : this[this.mode];
    if (own === undefined || own === null || own === '') return true;
    if (own instanceof PropertyList) return own.count() === 0;
    return this.mode === 'file' && !own.src && !own.content;
  }
  toString() {
    if (this.isEmpty()) return '';
    if (this.mode === 'raw') return String(this.raw);
    if (this.mode === 'urlencoded') return this.urlencoded.filter((item) => !item.disabled).map((item) => `${item.key}=${item.value}`).join('&');
    return '';
  }
  toJSON() {
    return { mode: this.mode, raw: this.raw, urlencoded: this.urlencoded, formdata: this.formdata, graphql: this.graphql, options: this.options };
  }
}

// Fields of a form; one that is a text has pairs.
const fields = (given) => (typeof given === 'string'
  ? given.split('&').map((pair) => {
    const [key, ...value] = pair.split('=');
    return { key, value: value.join('=') };
  })
  : given);

// A field of a form, in which all but letters, digits and -._~ are encoded.
const encoded = (value) => encodeURIComponent(String(value ?? '').toWellFormed())
  .replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);

// JSON without comments.
function withoutComments(text) {
  if (!text.includes('//') && !text.includes('/*')) return text;
  return text.replace(/"(?:[^"\\]|\\.)*"|\/\/[^\r\n]*|\/\*[\s\S]*?\*\//g, (part) => (part.startsWith('"') ? part : ''));
}

function form(list) {
  // Fields of one name stand together, as newman sends them.
  const groups = new Map();
  for (const item of list.filter((field) => !field.disabled)) {
    groups.set(item.key, [...(groups.get(item.key) ?? []), item.value]);
  }
  const pairs = [];
  for (const [key, values] of groups) values.forEach((value) => pairs.push(`${encoded(key)}=${encoded(value)}`));
  return pairs.join('&');
}

const bytesOf = (part) => (typeof part === 'string' ? new Uint8Array(native.utf8Encode(part.toWellFormed())) : new Uint8Array(part));

function multipart(list, file) {
  const boundary = `--------------------------${Array.from({ length: 24 }, () => Math.floor(Math.random() * 10)).join('')}`;
  const parts = [];
  for (const item of list.filter((field) => !field.disabled)) {
    const sources = item.type === 'file' ? [item.src ?? []].flat() : [undefined];
    for (const source of sources) {
      const content = source === undefined ? String(typeof item.value === 'string' ? item.value : JSON.stringify(item.value) ?? '') : file(source);
      if (content === undefined) continue;
      const name = item.fileName ?? (source === undefined ? undefined : source.split('/').at(-1));
      const type = item.contentType || (source === undefined ? undefined : typeOf(name));
      parts.push(`--${boundary}\r\nContent-Disposition: form-data; name="${item.key}"`);
      if (name !== undefined) parts.push(`; filename="${name}"`);
      if (type) parts.push(`\r\nContent-Type: ${type}`);
      parts.push('\r\n\r\n', content, '\r\n');
    }
  }
  if (parts.length === 0) return [undefined, undefined];
  parts.push(`--${boundary}--\r\n`);
  const all = parts.map(bytesOf);
  const whole = new Uint8Array(all.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of all) {
    whole.set(part, at);
    at += part.length;
  }
  return [whole.buffer, `multipart/form-data; boundary=${boundary}`];
}

function graphql(own) {
  const parts = [];
  if (typeof own?.query === 'string') parts.push(`"query":${JSON.stringify(own.query)}`);
  if (typeof own?.operationName === 'string') parts.push(`"operationName":${JSON.stringify(own.operationName)}`);
  if (typeof own?.variables === 'string' && own.variables !== '') parts.push(`"variables":${own.variables}`);
  else if (typeof own?.variables === 'object' && own.variables !== null) parts.push(`"variables":${JSON.stringify(own.variables)}`);
  return `{${parts.join(',')}}`;
}

// Content of a body and its Content-Type; `type` is that of the headers, `file(path)` the bytes of a file.
export function content(body, method, type, keepsBody, file) {
  if (!body || body.disabled || body.isEmpty()) return [undefined, undefined];
  if (!keepsBody && WITHOUT_BODY.includes(method)) return [undefined, undefined];
  switch (body.mode) {
    case 'raw': {
      const language = body.options?.raw?.language;
      const isJson = language === 'json' || (!language && /^application\/(\S+\+)?json/.test(type ?? ''));
      const text = typeof body.raw === 'string' ? body.raw : JSON.stringify(body.raw);
      return [isJson ? withoutComments(text) : text, type ?? TYPES[language] ?? TYPES.text];
    }
    case 'urlencoded': {
      const isForm = (type ?? '').startsWith('application/x-www-form-urlencoded');
      return [form(body.urlencoded), isForm ? type : 'application/x-www-form-urlencoded'];
    }
    case 'formdata': {
      const [whole, own] = multipart(body.formdata, file);
      return [whole, own ?? type];
    }
    case 'file': {
      const bytes = body.file?.content === undefined ? file(body.file?.src) : String(body.file.content);
      return [bytes, type ?? typeOf(String(body.file?.src ?? ''))];
    }
    case 'graphql': return [graphql(body.graphql), type ?? TYPES.json];
    default: return [undefined, type];
  }
}

// Paths of the files that a body names.
export function filesOf(body) {
  if (body?.mode === 'file') return [body.file?.src ?? body.file].filter((path) => typeof path === 'string');
  if (body?.mode !== 'formdata') return [];
  return members(body.formdata).filter((item) => item.type === 'file' && !item.disabled).flatMap((item) => item.src ?? []);
}
