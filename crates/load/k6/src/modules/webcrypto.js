// The global `crypto`: random values, digests, HMAC and AES.
import * as native from 'weir:native';
import { late } from 'weir:late';

const HASHES = { 'SHA-1': ['sha1', 64], 'SHA-256': ['sha256', 64], 'SHA-384': ['sha384', 128], 'SHA-512': ['sha512', 128] };
const MODES = { 'AES-CBC': 'CBC', 'AES-CTR': 'CTR', 'AES-GCM': 'GCM' };

const failure = (name, message) => Object.assign(new Error(message), { name });
const unsupported = (what) => failure('NotSupportedError', `${what} is not supported; weir has SHA, HMAC and AES`);

function bytesOf(data) {
  if (data instanceof ArrayBuffer) return new Uint8Array(data);
  if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  throw new TypeError('the data is neither an ArrayBuffer nor a view of one');
}

const nameOf = (algorithm) => String(typeof algorithm === 'string' ? algorithm : algorithm?.name).toUpperCase();

function hashOf(algorithm) {
  const hash = HASHES[nameOf(algorithm)];
  if (!hash) throw unsupported(`the hash '${nameOf(algorithm)}'`);
  return hash;
}

class CryptoKey {
  #bytes;
  constructor(bytes, algorithm, extractable, usages) {
    this.#bytes = bytes;
    this.type = 'secret';
    this.algorithm = algorithm;
    this.extractable = Boolean(extractable);
    this.usages = usages;
  }
  static bytes(key, usage, name) {
    if (!(key instanceof CryptoKey)) throw new TypeError('not a CryptoKey');
    if (name !== undefined && key.algorithm.name !== name) {
      throw failure('InvalidAccessError', `the key is for ${key.algorithm.name}, and not for ${name}`);
    }
    if (usage !== undefined && !key.usages.includes(usage)) {
      throw failure('InvalidAccessError', `the key is not for '${usage}'`);
    }
    return key.#bytes;
  }
}

function made(bytes, algorithm, extractable, usages) {
  const name = nameOf(algorithm);
  const allowed = name === 'HMAC' ? ['sign', 'verify'] : ['encrypt', 'decrypt', 'wrapKey', 'unwrapKey'];
  if (usages.length === 0) throw failure('SyntaxError', 'a key needs usages');
  const wrong = usages.find((usage) => !allowed.includes(usage));
  if (wrong !== undefined) throw failure('SyntaxError', `a key of ${name} is not for '${wrong}'`);
  const length = bytes.length * 8;
  if (name === 'HMAC') {
    hashOf(algorithm.hash);
    return new CryptoKey(bytes, { name, hash: { name: nameOf(algorithm.hash) }, length }, extractable, usages);
  }
  if (!MODES[name]) throw unsupported(`the algorithm '${name}'`);
  if (![128, 192, 256].includes(length)) throw failure('DataError', `a key of AES has 128, 192 or 256 bits, and not ${length}`);
  return new CryptoKey(bytes, { name, length }, extractable, usages);
}

function cipher(decrypts, algorithm, key, data) {
  const name = nameOf(algorithm);
  if (!MODES[name]) throw unsupported(`the algorithm '${name}'`);
  const bytes = CryptoKey.bytes(key, decrypts ? 'decrypt' : 'encrypt', name);
  if (name === 'AES-GCM' && (algorithm.tagLength ?? 128) !== 128) throw unsupported('AES-GCM with a short tag');
  const extra = algorithm.additionalData === undefined ? undefined : bytesOf(algorithm.additionalData);
  const iv = bytesOf(name === 'AES-CTR' ? algorithm.counter : algorithm.iv);
  try {
    return native.aes(decrypts, MODES[name], bytes, iv, bytesOf(data), { extra, counterBits: algorithm.length });
  } catch (error) {
    throw failure('OperationError', error.message);
  }
}

const unavailable = (name) => async () => {
  throw unsupported(`crypto.subtle.${name}()`);
};

const subtle = {
  async digest(algorithm, data) { return native.digest(hashOf(algorithm)[0], bytesOf(data)); },
  async encrypt(algorithm, key, data) { return cipher(false, algorithm, key, data); },
  async decrypt(algorithm, key, data) { return cipher(true, algorithm, key, data); },
  async sign(algorithm, key, data) {
    if (nameOf(algorithm) !== 'HMAC') throw unsupported(`the algorithm '${nameOf(algorithm)}'`);
    const bytes = CryptoKey.bytes(key, 'sign', 'HMAC');
    return native.digest(hashOf(key.algorithm.hash)[0], bytesOf(data), bytes);
  },
  async verify(algorithm, key, signature, data) {
    if (nameOf(algorithm) !== 'HMAC') throw unsupported(`the algorithm '${nameOf(algorithm)}'`);
    const bytes = CryptoKey.bytes(key, 'verify', 'HMAC');
    return native.hex(native.digest(hashOf(key.algorithm.hash)[0], bytesOf(data), bytes)) === native.hex(bytesOf(signature));
  },
  async generateKey(algorithm, extractable, usages) {
    const name = nameOf(algorithm);
    const bits = name === 'HMAC' ? (algorithm.length ?? hashOf(algorithm.hash)[1] * 8) : algorithm.length;
    if (name !== 'HMAC' && !MODES[name]) throw unsupported(`the algorithm '${name}'`);
    if (!(bits > 0 && bits % 8 === 0)) throw failure('OperationError', `invalid length '${bits}'; write a number of bits`);
    return made(new Uint8Array(native.randomBytes(bits / 8)), algorithm, extractable, [...usages]);
  },
  async importKey(format, data, algorithm, extractable, usages) {
    const name = nameOf(algorithm);
    if (name !== 'HMAC' && !MODES[name]) throw unsupported(`the algorithm '${name}'`);
    if (format === 'raw') return made(bytesOf(data).slice(), algorithm, extractable, [...usages]);
    if (format !== 'jwk') throw unsupported(`the format '${format}'`);
    if (data?.kty !== 'oct') throw unsupported(`the key type '${data?.kty}'`);
    return made(new Uint8Array(native.base64Decode(String(data.k), 'rawurl')), algorithm, extractable, [...usages]);
  },
  async exportKey(format, key) {
    const bytes = CryptoKey.bytes(key);
    if (!key.extractable) throw failure('InvalidAccessError', 'the key is not extractable');
    if (format === 'raw') return bytes.slice().buffer;
    if (format !== 'jwk') throw unsupported(`the format '${format}'`);
    const { name, hash, length } = key.algorithm;
    const alg = name === 'HMAC' ? hash.name.replace('SHA-', 'HS') : `A${length}${MODES[name]}`;
    return { kty: 'oct', k: native.base64Encode(bytes, 'rawurl'), alg, ext: true, key_ops: key.usages };
  },
  deriveBits: unavailable('deriveBits'),
  deriveKey: unavailable('deriveKey'),
  wrapKey: unavailable('wrapKey'),
  unwrapKey: unavailable('unwrapKey'),
};

export const crypto = {
  subtle,
  getRandomValues(view) {
    if (!ArrayBuffer.isView(view) || view instanceof Float32Array || view instanceof Float64Array || view instanceof DataView) {
      throw failure('TypeMismatchError', 'getRandomValues() needs an array of integers');
    }
    if (view.byteLength > 65536) throw failure('QuotaExceededError', 'getRandomValues() fills 65,536 bytes at most');
    new Uint8Array(view.buffer, view.byteOffset, view.byteLength).set(new Uint8Array(native.randomBytes(view.byteLength)));
    return view;
  },
  randomUUID() {
    const bytes = new Uint8Array(native.randomBytes(16));
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    return native.hex(bytes).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
  },
};

late.crypto = crypto;
export default { crypto };
