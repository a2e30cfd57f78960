// A token that is fetched once, for all users. Sends: POST /echo x1; GET /headers x2
import http from 'k6/http';
import { check } from 'k6';

export const options = { vus: 2, iterations: 2 };

export function setup() {
  const login = http.post(`${__ENV.HOST}/echo`, JSON.stringify({ token: 't-123' }));
  return { token: login.json('token') };
}

export default function (data) {
  const params = { headers: { Authorization: `Bearer ${data.token}` } };
  check(http.get(`${__ENV.HOST}/headers`, params), { 'has it': (r) => JSON.stringify(r.json()).includes('Bearer t-123') });
}
