// Several requests at a time, by names. Sends: GET /headers x1; POST /echo x1; GET /status/204 x1
import http from 'k6/http';
import { check } from 'k6';

export const options = { vus: 1, iterations: 1 };

export default function () {
  const { front, made, empty } = http.batch({
    front: `${__ENV.HOST}/headers`,
    made: { method: 'POST', url: `${__ENV.HOST}/echo`, body: 'x', params: { tags: { name: 'made' } } },
    empty: ['GET', `${__ENV.HOST}/status/204`],
  });
  check(null, { 'all are there': () => front.status === 200 && made.body === 'x' && empty.status === 204 });
}
