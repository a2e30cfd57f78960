// A redirect that is followed, and one that is not. Sends: GET /status/302 x2; GET / x1
import http from 'k6/http';
import { check } from 'k6';

export const options = { vus: 1, iterations: 1 };

export default function () {
  const url = `${__ENV.HOST}/status/302`;
  check(http.get(url), { 'is followed': (r) => r.status === 200 && new RegExp('/$').test(r.url) });
  check(http.get(url, { redirects: 0 }), { 'is not': (r) => r.status === 302 && r.headers.Location === '/' });
}
