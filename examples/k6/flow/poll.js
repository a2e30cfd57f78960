// Waits until a job is done, at most ten times. Sends: GET /status/202 x2; GET /status/200 x1
import http from 'k6/http';
import { check, fail, sleep } from 'k6';

export const options = { vus: 1, iterations: 1 };

function awaited(url) {
  for (let round = 0; round < 10; round += 1) {
    const response = http.get(url(round), { tags: { name: 'job' } });
    if (response.status === 200) return round;
    sleep(0.01);
  }
  return fail('the job is not done');
}

export default function () {
  const rounds = awaited((round) => `${__ENV.HOST}/status/${round < 2 ? 202 : 200}`);
  check(rounds, { 'took two': (n) => n === 2 });
}
