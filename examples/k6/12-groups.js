// Groups, tags and names of requests.
import http from 'k6/http';
import { check, group } from 'k6';
import exec from 'k6/execution';

export const options = { vus: 1, iterations: 2, thresholds: { 'http_reqs{name:visit}': ['count==2'] } };

export default function () {
  exec.vu.metrics.tags.turn = exec.vu.iterationInScenario;
  group('front', () => {
    const page = http.get(`${__ENV.HOST}/`, { tags: { name: 'visit' }, redirects: 0 });
    check(page, { redirects: (r) => r.status === 302 && r.headers.Location.includes('/home') });
  });
  group('home', () => {
    http.get(`${__ENV.HOST}/home`);
  });
}
