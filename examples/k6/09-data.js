// Rows of a file, kept once for all users: each iteration has the next one.
import http from 'k6/http';
import { check } from 'k6';
import exec from 'k6/execution';
import { SharedArray } from 'k6/data';

/** @typedef {{ user: string, password: string }} User */

const users = new SharedArray('users', () => /** @type {User[]} */ (JSON.parse(open('./users.json'))));

export const options = { scenarios: { all: { executor: 'shared-iterations', vus: 2, iterations: 6 } } };

export default function () {
  const user = users[exec.scenario.iterationInTest % users.length];
  const login = http.post(`${__ENV.HOST}/login`, JSON.stringify(user), { headers: { 'Content-Type': 'application/json' } });
  check(login, { 'is this user': (r) => r.json('user') === user.user });
}
