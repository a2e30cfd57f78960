// A mix of actions by weight: of ten iterations some read and others write. Sends: GET /echo x1+; POST /echo x1+
import http from 'k6/http';
import { randomSeed } from 'k6';

export const options = { vus: 1, iterations: 10 };

const actions = [
  { weight: 7, run: () => http.get(`${__ENV.HOST}/echo`) },
  { weight: 3, run: () => http.post(`${__ENV.HOST}/echo`, 'x') },
];
const whole = actions.reduce((sum, { weight }) => sum + weight, 0);

export default function () {
  if (__ITER === 0) randomSeed(7);
  let point = Math.random() * whole;
  for (const { weight, run } of actions) {
    point -= weight;
    if (point < 0) {
      run();
      return;
    }
  }
}
