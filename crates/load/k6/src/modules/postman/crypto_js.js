// The common part of CryptoJS: digests, HMAC and encodings.
import * as native from 'weir:native';

// Bytes, as CryptoJS passes them around.
class WordArray {
  constructor(bytes) { this.bytes = bytes; }
  get sigBytes() { return this.bytes.length; }
  get words() {
    const words = [];
    this.bytes.forEach((byte, at) => { words[at >> 2] = (words[at >> 2] ?? 0) | (byte << (24 - (at % 4) * 8)); });
    return words;
  }
  toString(encoder = Hex) { return encoder.stringify(this); }
  concat(other) {
    this.bytes = Uint8Array.of(...this.bytes, ...bytesOf(other));
    return this;
  }
  clone() { return new WordArray(this.bytes.slice()); }
}

const fromWords = (words, count = words.length * 4) => new WordArray(Uint8Array.from({ length: count }, (_, at) => (words[at >> 2] >>> (24 - (at % 4) * 8)) & 255));
const utf8 = (text) => new Uint8Array(native.utf8Encode(String(text).toWellFormed()));
const bytesOf = (value) => {
  if (value instanceof WordArray) return value.bytes;
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  return utf8(value);
};

const Hex = {
  parse: (text) => new WordArray(Uint8Array.from(String(text).match(/../g) ?? [], (pair) => Number.parseInt(pair, 16))),
  stringify: (words) => native.hex(words.bytes),
};
const plain = (text) => String(text).replace(/[\r\n]/g, '').replace(/=+$/, '');
const Base64 = {
  parse: (text) => new WordArray(new Uint8Array(native.base64Decode(plain(text), 'rawstd'))),
  stringify: (words) => native.base64Encode(words.bytes, 'std'),
};
const Base64url = {
  parse: (text) => new WordArray(new Uint8Array(native.base64Decode(plain(text), 'rawurl'))),
  stringify: (words, isPlain = true) => native.base64Encode(words.bytes, isPlain ? 'rawurl' : 'std'),
};
const Utf8 = {
  parse: (text) => new WordArray(utf8(text)),
  stringify(words) {
    const text = native.utf8Decode(words.bytes);
    if (text.includes('\ufffd')) throw new Error('Malformed UTF-8 data');
    return text;
  },
};
const Latin1 = {
  parse: (text) => new WordArray(Uint8Array.from(String(text), (sign) => sign.charCodeAt(0) & 255)),
  stringify: (words) => Array.from(words.bytes, (byte) => String.fromCharCode(byte)).join(''),
};

const digest = (name, value, key) => new WordArray(new Uint8Array(native.digest(name, bytesOf(value), key === undefined ? undefined : bytesOf(key))));

const own = {
  enc: { Hex, Base64, Base64url, Utf8, Latin1 },
  lib: { WordArray: { create: fromWords, random: (count) => new WordArray(new Uint8Array(native.randomBytes(count))) } },
};
const ALGORITHMS = { MD5: 'md5', SHA1: 'sha1', SHA256: 'sha256', SHA384: 'sha384', SHA512: 'sha512' };
for (const [name, algorithm] of Object.entries(ALGORITHMS)) {
  own[name] = (message) => digest(algorithm, message);
  own[`Hmac${name}`] = (message, key) => digest(algorithm, message, key);
}

// What is missing is rejected by its name.
export const CryptoJS = new Proxy(own, {
  get(target, name) {
    if (name in target || typeof name !== 'string' || ['then', 'toJSON', 'default', '__esModule'].includes(name)) return target[name];
    throw new Error(`CryptoJS.${name} is not supported; MD5, SHA1, SHA256, SHA384, SHA512, their HMAC and enc are`);
  },
});

// As browsers have them.
export function btoa(text) {
  const bytes = Uint8Array.from(String(text), (sign) => {
    if (sign.charCodeAt(0) > 255) throw new Error('Invalid character in btoa()');
    return sign.charCodeAt(0);
  });
  return native.base64Encode(bytes, 'std');
}
export function atob(text) {
  const bytes = new Uint8Array(native.base64Decode(plain(text).replace(/\s/g, ''), 'rawstd'));
  return Latin1.stringify(new WordArray(bytes));
}
