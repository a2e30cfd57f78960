// Iterations that users share. Sends: GET /echo x7
import http from 'k6/http';

export const options = { scenarios: { shared: { executor: 'shared-iterations', vus: 3, iterations: 7 } } };

export default function () {
  http.get(`${__ENV.HOST}/echo`);
}
