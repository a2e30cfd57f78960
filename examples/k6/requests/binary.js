// A response as bytes. Sends: GET /static?bytes=1000 x1
import http from 'k6/http';
import { check } from 'k6';

export const options = { vus: 1, iterations: 1 };

export default function () {
  const response = http.get(`${__ENV.HOST}/static?bytes=1000`, { responseType: 'binary' });
  check(response, { 'has 1000 bytes': (r) => new Uint8Array(r.body).length === 1000 });
}
