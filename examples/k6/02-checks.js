// Checks and thresholds: the run fails if too few checks pass.
import http from 'k6/http';
import { check, sleep } from 'k6';

export const options = {
  vus: 2,
  duration: '1s',
  thresholds: { checks: ['rate>0.99'], http_req_failed: ['rate<0.01'], http_req_duration: ['p(95)<5000'] },
};

export default function () {
  const page = http.get(`${__ENV.HOST}/`);
  check(page, {
    'status is 200': (r) => r.status === 200,
    'has a body': (r) => String(r.body).length > 0,
  });
  sleep(0.1);
}
