// The shortest script: ten iterations of one request.
import http from 'k6/http';

export const options = { vus: 2, iterations: 10 };

export default function () {
  http.get(`${__ENV.HOST}/`);
}
