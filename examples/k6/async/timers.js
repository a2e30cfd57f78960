// Timers within an iteration: the first of two wins, the other is cleared. Sends: GET /echo x1
import http from 'k6/http';
import { check } from 'k6';
import { clearTimeout, setTimeout } from 'k6/timers';

export const options = { vus: 1, iterations: 1 };

export default async function () {
  const timers = [];
  const after = (name, wait) => new Promise((resolve) => timers.push(setTimeout(() => resolve(name), wait)));
  const first = await Promise.race([after('soon', 10), after('late', 600000)]);
  timers.forEach(clearTimeout);
  check(first, { 'the shorter one was first': (name) => name === 'soon' });
  http.get(`${__ENV.HOST}/echo`);
}
