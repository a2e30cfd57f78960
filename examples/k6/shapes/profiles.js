// A load that is chosen by the environment: -e PROFILE=smoke. Sends: GET /echo x2
import http from 'k6/http';

const profiles = {
  smoke: { vus: 1, iterations: 2 },
  load: { stages: [{ duration: '1m', target: 50 }, { duration: '5m', target: 50 }, { duration: '1m', target: 0 }] },
};

export const options = profiles[__ENV.PROFILE || 'smoke'];

export default function () {
  http.get(`${__ENV.HOST}/echo`);
}
