// Headers of a request, and those of its response. Sends: GET /headers x1
import http from 'k6/http';
import { check } from 'k6';

export const options = { vus: 1, iterations: 1, userAgent: 'shop-test/1' };

export default function () {
  const response = http.get(`${__ENV.HOST}/headers`, { headers: { 'X-Request-Id': 'r-1', Accept: 'application/json' } });
  check(response, {
    'came back': (r) => JSON.stringify(r.json()).includes('r-1'),
    'agent is ours': (r) => JSON.stringify(r.json()).includes('shop-test/1'),
    'has a type': (r) => r.headers['Content-Type'].startsWith('application/json'),
  });
}
