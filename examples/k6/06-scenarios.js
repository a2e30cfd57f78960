// Two kinds of users, with functions, variables and tags of their own.
import http from 'k6/http';
import { sleep } from 'k6';

export const options = {
  scenarios: {
    visitors: { executor: 'constant-vus', vus: 2, duration: '1s', exec: 'visit', tags: { kind: 'visitor' } },
    buyers: { executor: 'per-vu-iterations', vus: 2, iterations: 2, exec: 'login', env: { NAME: 'ann' }, startTime: '200ms' },
  },
  thresholds: { 'http_reqs{kind:visitor}': ['count>0'], 'iterations{scenario:buyers}': ['count==4'] },
};

export function visit() {
  http.get(`${__ENV.HOST}/`);
  sleep(0.1);
}

export function login() {
  http.post(`${__ENV.HOST}/login`, { user: __ENV.NAME, password: `pw-${__ENV.NAME}` });
}
