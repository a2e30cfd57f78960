// Several requests by one call.
import http from 'k6/http';
import { check } from 'k6';

export const options = { vus: 1, iterations: 2 };

export default function () {
  const pages = http.batch({
    home: { method: 'GET', url: `${__ENV.HOST}/` },
    stats: { method: 'GET', url: `${__ENV.HOST}/stats`, params: { tags: { kind: 'operator' } } },
  });
  check(pages, { 'both are there': ({ home, stats }) => home.status === 200 && stats.status === 200 });
}
