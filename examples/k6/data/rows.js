// Rows that all users share; each iteration takes the next one. Sends: POST /echo x4
import http from 'k6/http';
import { check } from 'k6';
import { SharedArray } from 'k6/data';
import exec from 'k6/execution';

const users = new SharedArray('users', () => JSON.parse(open('../users.json')));

export const options = { scenarios: { all: { executor: 'shared-iterations', vus: 2, iterations: 4 } } };

export default function () {
  const user = users[exec.scenario.iterationInTest % users.length];
  check(http.post(`${__ENV.HOST}/echo`, JSON.stringify(user)), { 'has a user': (r) => String(r.body).length > 2 });
}
