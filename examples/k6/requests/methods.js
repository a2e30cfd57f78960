// All methods. Sends: GET /echo x1; HEAD /echo x1; POST /echo x1; PUT /echo x1; PATCH /echo x1; DELETE /echo x1; OPTIONS /echo x1; PURGE /echo x1
import http from 'k6/http';
import { check } from 'k6';

export const options = { vus: 1, iterations: 1 };

export default function () {
  const url = `${__ENV.HOST}/echo`;
  const all = [
    http.get(url), http.head(url), http.post(url, 'a'), http.put(url, 'b'), http.patch(url, 'c'), http.del(url),
    http.options(url), http.request('PURGE', url),
  ];
  check(all, { 'all succeed': (responses) => responses.every((r) => r.status === 200) });
}
