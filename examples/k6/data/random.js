// Random choices that are the same in each run. Sends: GET /status/200 x5
import http from 'k6/http';
import { check, randomSeed } from 'k6';

export const options = { vus: 1, iterations: 5 };

const between = (from, to) => from + Math.floor(Math.random() * (to - from + 1));

export default function () {
  randomSeed(1000 + __ITER);
  const [first, second] = [between(1, 1000000), between(1, 1000000)];
  randomSeed(1000 + __ITER);
  check(null, { 'come again': () => between(1, 1000000) === first && between(1, 1000000) === second });
  http.get(`${__ENV.HOST}/status/200`);
}
