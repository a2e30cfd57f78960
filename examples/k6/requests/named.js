// URLs with numbers, under one name. Sends: GET /status/200 x1; GET /status/201 x1; GET /status/202 x1
import http from 'k6/http';

export const options = { vus: 1, iterations: 1, thresholds: { 'http_reqs{name:status}': ['count==3'] } };

export default function () {
  for (const code of [200, 201, 202]) http.get(`${__ENV.HOST}/status/${code}`, { tags: { name: 'status' } });
}
