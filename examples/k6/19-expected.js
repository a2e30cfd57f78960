// Expected statuses, and a multipart form.
import http from 'k6/http';
import { check } from 'k6';

export const options = { vus: 1, iterations: 2, thresholds: { http_req_failed: ['rate==0'] } };

export default function () {
  const missing = http.get(`${__ENV.HOST}/missing`, { responseCallback: http.expectedStatuses(404, { min: 200, max: 299 }) });
  check(missing, { 'is 404': (r) => r.status === 404 });
  const upload = http.file('a,b\n1,2\n', 'table.csv', 'text/csv');
  const sent = http.post(`${__ENV.HOST}/login`, { table: upload }, { responseCallback: http.expectedStatuses(400) });
  check(sent, { 'a file does not log in': (r) => r.status === 400 });
}
