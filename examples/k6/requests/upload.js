// A file in a form of several parts. Sends: POST /echo x1
import http from 'k6/http';
import { check } from 'k6';

const users = open('../users.csv', 'b');

export const options = { vus: 1, iterations: 1 };

export default function () {
  const form = { note: 'users', file: http.file(users, 'users.csv', 'text/csv') };
  const response = http.post(`${__ENV.HOST}/echo`, form);
  check(response, {
    'has parts': (r) => r.headers['Content-Type'].startsWith('multipart/form-data; boundary='),
    'has the file': (r) => String(r.body).includes('filename="users.csv"'),
  });
}
