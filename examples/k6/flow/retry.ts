// A request that is sent again with a growing wait. Sends: GET /status/503 x3; GET /status/200 x1
import http, { type Response } from 'k6/http';
import { check, sleep } from 'k6';

export const options = { vus: 1, iterations: 1 };

function retried(send: (attempt: number) => Response, attempts: number): Response {
  let response = send(0);
  for (let attempt = 1; attempt < attempts && response.status >= 500; attempt += 1) {
    sleep(0.005 * 2 ** attempt);
    response = send(attempt);
  }
  return response;
}

export default function (): void {
  const expected = { responseCallback: http.expectedStatuses({ min: 200, max: 599 }) };
  const last = retried((attempt) => http.get(`${__ENV.HOST}/status/${attempt < 3 ? 503 : 200}`, expected), 5);
  check(last, { 'succeeds at last': (r) => r.status === 200 });
}
