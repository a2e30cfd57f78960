// Two kinds of users, one after the other, each with its function. Sends: GET /headers x2; POST /echo x1
import http from 'k6/http';
import { check } from 'k6';
import exec from 'k6/execution';
import type { Options } from 'k6/options';

export const options: Options = {
  scenarios: {
    readers: { executor: 'per-vu-iterations', vus: 2, iterations: 1, exec: 'read', tags: { kind: 'reader' } },
    writers: { executor: 'per-vu-iterations', vus: 1, iterations: 1, exec: 'write', startTime: '200ms', env: { NAME: 'tea' } },
  },
  thresholds: { 'http_reqs{kind:reader}': ['count==2'], 'checks{scenario:writers}': ['rate==1'] },
};

export function read(): void {
  http.get(`${__ENV.HOST}/headers`);
}

export function write(): void {
  const made = http.post(`${__ENV.HOST}/echo`, __ENV.NAME);
  check(made, { 'came back': (r) => r.body === 'tea' && exec.scenario.name === 'writers' });
}
