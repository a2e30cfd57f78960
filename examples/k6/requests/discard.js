// Bodies that are not kept, but for one. Sends: GET /static?bytes=100000 x2
import http from 'k6/http';
import { check } from 'k6';

export const options = { vus: 1, iterations: 1, discardResponseBodies: true };

export default function () {
  const url = `${__ENV.HOST}/static?bytes=100000`;
  check(http.get(url), { 'is empty': (r) => !r.body });
  check(http.get(url, { responseType: 'text' }), { 'is kept': (r) => String(r.body).length === 100000 });
}
