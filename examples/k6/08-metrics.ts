// Metrics of the script itself, with thresholds.
import http from 'k6/http';
import { Counter, Gauge, Rate, Trend } from 'k6/metrics';
import type { Options } from 'k6/options';

const pages = new Counter('pages');
const bytes = new Gauge('page_bytes');
const complete = new Rate('pages_complete');
const waiting = new Trend('page_waiting', true);

export const options: Options = {
  vus: 1,
  iterations: 5,
  thresholds: { pages: ['count==5'], pages_complete: ['rate==1'], page_waiting: ['p(90)<5000'] },
};

export default function (): void {
  const page = http.get(`${__ENV.HOST}/`);
  const body = page.body as string;
  pages.add(1, { page: 'home' });
  bytes.add(body.length);
  complete.add(body.trimEnd().endsWith('</html>') || body.length > 0);
  waiting.add(page.timings.waiting);
}
