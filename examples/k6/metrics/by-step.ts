// A trend for each step, and a rate of what has gone wrong. Sends: GET /echo x2; GET /status/500 x2
import http from 'k6/http';
import { Rate, Trend } from 'k6/metrics';
import type { Options } from 'k6/options';

const times = { echo: new Trend('echo_time', true), broken: new Trend('broken_time', true) };
const wrong = new Rate('wrong');

export const options: Options = {
  vus: 1,
  iterations: 2,
  thresholds: { wrong: ['rate==0.5'], echo_time: ['max<10000'], broken_time: ['count==2'] },
};

function step(name: keyof typeof times, path: string): void {
  const response = http.get(`${__ENV.HOST}${path}`, { responseCallback: http.expectedStatuses({ min: 200, max: 599 }) });
  times[name].add(response.timings.duration);
  wrong.add(response.status >= 500);
}

export default function (): void {
  step('echo', '/echo');
  step('broken', '/status/500');
}
