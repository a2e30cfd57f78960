// A number of iterations for each user. Sends: GET /headers x6
import http from 'k6/http';

export const options = { scenarios: { each: { executor: 'per-vu-iterations', vus: 3, iterations: 2, maxDuration: '30s' } } };

export default function () {
  http.get(`${__ENV.HOST}/headers`, { headers: { 'X-User': String(__VU), 'X-Round': String(__ITER) } });
}
