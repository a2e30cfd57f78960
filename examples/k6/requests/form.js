// A form: fields of an object. Sends: POST /echo x1
import http from 'k6/http';
import { check } from 'k6';

export const options = { vus: 1, iterations: 1 };

export default function () {
  const response = http.post(`${__ENV.HOST}/echo`, { name: 'Ada L', drink: 'tea & milk' });
  check(response, {
    'is a form': (r) => r.headers['Content-Type'] === 'application/x-www-form-urlencoded',
    'is encoded': (r) => r.body === 'name=Ada+L&drink=tea+%26+milk',
  });
}
