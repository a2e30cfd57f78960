// A smoke test: one user, a few rounds, strict thresholds. Sends: GET /status/200 x3
import http from 'k6/http';
import { check } from 'k6';

export const options = { vus: 1, iterations: 3, thresholds: { checks: ['rate==1'], http_req_failed: ['rate==0'] } };

export default function () {
  check(http.get(`${__ENV.HOST}/status/200`), { 'is up': (r) => r.status === 200 });
}
