// k6/secrets: secrets of the sources that K6_SECRET_SOURCE names.
import { secret, secretSource } from 'weir:native';

class SecretSource {
  #name;
  constructor(name) { this.#name = name; }
  async get(key) { return secret(String(key), this.#name); }
}

export async function get(key) { return secret(String(key)); }

export function source(name) {
  secretSource(String(name));
  return new SecretSource(String(name));
}

export default { get, source };
