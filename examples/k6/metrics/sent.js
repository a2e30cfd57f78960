// A summary that is sent to a service, as to a webhook. Sends: GET /echo x2; POST /echo x1
import http from 'k6/http';

export const options = { vus: 1, iterations: 2 };

export default function () {
  http.get(`${__ENV.HOST}/echo`);
}

export function handleSummary(data) {
  const { passes, fails } = data.metrics.http_req_failed.values;
  const sent = http.post(`${__ENV.HOST}/echo`, JSON.stringify({ failed: passes, succeeded: fails }), {
    headers: { 'Content-Type': 'application/json' },
  });
  if (sent.status !== 200 || sent.json('succeeded') !== 2) throw new Error(`not sent: ${sent.status}`);
  return { stderr: `sent: ${sent.body}\n` };
}
