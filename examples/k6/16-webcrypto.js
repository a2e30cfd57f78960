// The global `crypto`: a payload that is encrypted and signed.
import http from 'k6/http';
import { check } from 'k6';

export const options = { vus: 1, iterations: 2 };

export default async function () {
  const text = new Uint8Array([104, 101, 108, 108, 111]);
  const key = await crypto.subtle.generateKey({ name: 'AES-GCM', length: 256 }, true, ['encrypt', 'decrypt']);
  const iv = crypto.getRandomValues(new Uint8Array(12));
  const sealed = await crypto.subtle.encrypt({ name: 'AES-GCM', iv }, key, text);
  const opened = await crypto.subtle.decrypt({ name: 'AES-GCM', iv }, key, sealed);
  const page = http.get(`${__ENV.HOST}/`, { headers: { 'X-Request-Id': crypto.randomUUID() } });
  check(page, { 'same text': (r) => r.status === 200 && new Uint8Array(opened).length === text.length });
}
