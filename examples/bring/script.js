// Log in and read the list, as k6 plays it: k6 run script.js.
import http from 'k6/http';
import { check, sleep } from 'k6';

export const options = { vus: 10, duration: '5s', thresholds: { checks: ['rate>0.99'] } };

export default function () {
  const login = http.post('http://localhost:8081/login', { user: 'ada', password: 'pw-ada' });
  const headers = { Authorization: `Bearer ${login.json('token')}` };
  const items = http.get('http://localhost:8081/items', { headers });
  check(items, { 'ten items': (r) => r.json('items').length === 10 });
  sleep(0.1);
}
