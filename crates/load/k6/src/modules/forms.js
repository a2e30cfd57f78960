// Bodies of requests: forms and files.
import { utf8Encode } from 'weir:native';

// Content of a file in a form.
export class FileData {
  constructor(data, filename, contentType) {
    this.data = data;
    this.filename = filename || String(Date.now() * 1e6);
    this.content_type = contentType || 'application/octet-stream';
  }
}

const bytesOf = (value) => {
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  return new Uint8Array(utf8Encode(String(value)));
};

const quoted = (text) => String(text).replace(/\\/g, '\\\\').replace(/"/g, '\\"').replace(/[\r\n]/g, ' ');

// As Go's url.QueryEscape.
const escaped = (text) =>
  encodeURIComponent(String(text))
    .replace(/%20/g, '+')
    .replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);

function multipart(fields) {
  const boundary = Array.from({ length: 30 }, () => Math.floor(Math.random() * 16).toString(16)).join('');
  const parts = [];
  const text = (line) => parts.push(bytesOf(line));
  for (const [name, value] of fields) {
    text(`--${boundary}\r\n`);
    if (value instanceof FileData) {
      text(`Content-Disposition: form-data; name="${quoted(name)}"; filename="${quoted(value.filename)}"\r\n`);
      text(`Content-Type: ${value.content_type}\r\n\r\n`);
      parts.push(bytesOf(value.data));
    } else {
      text(`Content-Disposition: form-data; name="${quoted(name)}"\r\n\r\n`);
      parts.push(bytesOf(value));
    }
    text('\r\n');
  }
  text(`--${boundary}--\r\n`);
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return [whole.buffer, `multipart/form-data; boundary=${boundary}`];
}

// Body as text or bytes, and its Content-Type if it has one by itself.
export function encoded(body) {
  if (body === undefined || body === null) return [undefined, undefined];
  if (typeof body === 'string') return [body.toWellFormed(), undefined];
  if (body instanceof ArrayBuffer || ArrayBuffer.isView(body)) return [body, undefined];
  if (typeof body !== 'object') return [String(body), undefined];
  if (typeof body.toBytes === 'function') return [body.toBytes(), undefined];
  const fields = [];
  for (const name of Object.keys(body)) {
    const value = body[name];
    for (const one of Array.isArray(value) ? value : [value]) fields.push([name, one]);
  }
  if (fields.some(([, value]) => value instanceof FileData)) return multipart(fields);
  const text = fields.map(([name, value]) => `${escaped(name)}=${escaped(value === null ? 'null' : value)}`).join('&');
  return [text, 'application/x-www-form-urlencoded'];
}

// Text of the fields of a form.
export const formText = (fields) => encoded(fields)[0] ?? '';
export const file = (data, filename, contentType) => new FileData(data, filename, contentType);
