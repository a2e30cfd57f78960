// A soak test in small: constant users with a pause between requests. Sends: GET /echo x2+
import http from 'k6/http';
import { sleep } from 'k6';

export const options = { scenarios: { soak: { executor: 'constant-vus', vus: 2, duration: '500ms', gracefulStop: '1s' } } };

export default function () {
  http.get(`${__ENV.HOST}/echo`);
  sleep(0.1);
}
