// Made-up users: names, addresses, identifiers. Sends: POST /echo x3
import http from 'k6/http';
import { check } from 'k6';

export const options = { vus: 1, iterations: 3 };

const one = <T>(list: readonly T[]): T => list[Math.floor(Math.random() * list.length)];

function user(): { id: string; name: string; email: string } {
  const name = `${one(['Ada', 'Alan', 'Grace'])}${__VU}`;
  return { id: crypto.randomUUID(), name, email: `${name.toLowerCase()}-${__ITER}@example.org` };
}

export default function (): void {
  const made = user();
  const response = http.post(`${__ENV.HOST}/echo`, JSON.stringify(made), { headers: { 'Content-Type': 'application/json' } });
  check(response, { 'has the address': (r) => r.json('email') === made.email });
}
