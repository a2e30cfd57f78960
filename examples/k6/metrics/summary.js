// A summary of its own, in place of none. Sends: GET /echo x3
import http from 'k6/http';

export const options = { vus: 1, iterations: 3, summaryTrendStats: ['avg', 'p(95)', 'count'] };

export default function () {
  http.get(`${__ENV.HOST}/echo`);
}

export function handleSummary(data) {
  const { values } = data.metrics.http_req_duration;
  return { stderr: `SUMMARY ${JSON.stringify(Object.keys(values).sort())} ${data.metrics.http_reqs.values.count}\n` };
}
