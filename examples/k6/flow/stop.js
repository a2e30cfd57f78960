// Stops the whole run by itself, at the third iteration. Exit code 1. Sends: GET /echo x3
import http from 'k6/http';
import exec from 'k6/execution';

export const options = { vus: 1, iterations: 100 };

export default function () {
  http.get(`${__ENV.HOST}/echo`);
  if (exec.scenario.iterationInTest === 2) exec.test.abort('enough');
}
