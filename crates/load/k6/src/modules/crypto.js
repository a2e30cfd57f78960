// k6/crypto.
import * as native from 'weir:native';

function encoded(bytes, encoding) {
  switch (encoding) {
    case 'hex': return native.hex(bytes);
    case 'base64': return native.base64Encode(bytes, 'std');
    case 'base64url': return native.base64Encode(bytes, 'url');
    case 'base64rawurl': return native.base64Encode(bytes, 'rawurl');
    case 'binary': return bytes;
    default:
      throw new TypeError(
        `invalid output encoding '${String(encoding)}'; choose hex, base64, base64url, base64rawurl or binary`,
      );
  }
}

const viewed = (input) => {
  if (typeof input === 'string') return new Uint8Array(native.utf8Encode(input));
  if (input instanceof ArrayBuffer) return new Uint8Array(input);
  if (ArrayBuffer.isView(input)) return new Uint8Array(input.buffer, input.byteOffset, input.byteLength);
  throw new TypeError('the input is neither a text nor bytes');
};

class Hasher {
  #algorithm;
  #key;
  #parts = [];
  constructor(algorithm, key) {
    this.#algorithm = String(algorithm);
    this.#key = key;
    native.digest(this.#algorithm, '', key);
  }
  update(input) {
    // The caller may change its bytes.
    this.#parts.push(typeof input === 'string' ? viewed(input) : viewed(input).slice());
  }
  digest(encoding) {
    const whole = new Uint8Array(this.#parts.reduce((sum, part) => sum + part.length, 0));
    let at = 0;
    for (const part of this.#parts) {
      whole.set(part, at);
      at += part.length;
    }
    this.#parts = [whole];
    return encoded(native.digest(this.#algorithm, whole, this.#key), encoding);
  }
}

const hash = (algorithm) => (input, encoding) => encoded(native.digest(algorithm, viewed(input)), encoding);

export const md4 = hash('md4');
export const md5 = hash('md5');
export const sha1 = hash('sha1');
export const sha256 = hash('sha256');
export const sha384 = hash('sha384');
export const sha512 = hash('sha512');
export const sha512_224 = hash('sha512_224');
export const sha512_256 = hash('sha512_256');
export const ripemd160 = hash('ripemd160');
export const createHash = (algorithm) => new Hasher(algorithm);
export const createHMAC = (algorithm, secret) => new Hasher(algorithm, viewed(secret));
export const hmac = (algorithm, secret, input, encoding) =>
  encoded(native.digest(String(algorithm), viewed(input), viewed(secret)), encoding);
export const hexEncode = (input) => native.hex(viewed(input));
export function randomBytes(size) {
  if (!(Number(size) >= 1)) throw new TypeError(`invalid size '${String(size)}'; write a number of bytes above 0`);
  return native.randomBytes(Math.floor(Number(size)));
}

export default {
  md4, md5, sha1, sha256, sha384, sha512, sha512_224, sha512_256, ripemd160, createHash, createHMAC, hmac, hexEncode,
  randomBytes,
};
