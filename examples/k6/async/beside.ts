// Requests beside one another, by promises. Sends: GET /delay/20 x3; POST /echo x1
import http from 'k6/http';
import { check } from 'k6';

export const options = { vus: 1, iterations: 1 };

export default async function (): Promise<void> {
  const all = await Promise.all([1, 2, 3].map(() => http.asyncRequest('GET', `${__ENV.HOST}/delay/20`)));
  const made = await http.asyncRequest('POST', `${__ENV.HOST}/echo`, JSON.stringify({ count: all.length }));
  check(made, { 'are three': (r) => r.json('count') === 3 });
}
