// A request with a signature, as services of clouds want it.
import http from 'k6/http';
import { check } from 'k6';
import { createHash, hmac } from 'k6/crypto';
import encoding from 'k6/encoding';

export const options = { vus: 1, iterations: 2 };

export default function () {
  const hash = createHash('sha256');
  hash.update(JSON.stringify({ order: __ITER }));
  const digest = hash.digest('hex');
  const sign = hmac('sha256', 'secret', `GET\n/\n${digest}`, 'base64');
  const page = http.get(`${__ENV.HOST}/`, { headers: { 'X-Sign': sign, 'X-Digest': digest } });
  check(page, {
    'status is 200': (r) => r.status === 200,
    'signature is 32 bytes': () => encoding.b64decode(sign).byteLength === 32,
  });
}
