// Timers within an iteration: the first of two that is done wins. Sends: GET /delay/2000 x1; GET /echo x1
import http from 'k6/http';
import { check } from 'k6';
import { clearTimeout, setTimeout } from 'k6/timers';

export const options = { vus: 1, iterations: 1 };

export default async function () {
  let timer;
  const late = new Promise((resolve) => {
    timer = setTimeout(() => resolve('late'), 50);
  });
  const slow = http.asyncRequest('GET', `${__ENV.HOST}/delay/2000`, null, { timeout: '300ms', responseCallback: null }).then(() => 'slow');
  const first = await Promise.race([late, slow]);
  clearTimeout(timer);
  http.get(`${__ENV.HOST}/echo`);
  check(first, { 'the timer was first': (name) => name === 'late' });
}
