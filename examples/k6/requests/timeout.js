// A timeout: the response has an error in place of a status. Exit code 3: none succeeds. Sends: GET /delay/5000 x1
import http from 'k6/http';
import { check } from 'k6';

export const options = { vus: 1, iterations: 1 };

export default function () {
  const response = http.get(`${__ENV.HOST}/delay/5000`, { timeout: '100ms' });
  check(response, { 'has no status': (r) => r.status === 0, 'has its code': (r) => r.error_code === 1050 });
}
