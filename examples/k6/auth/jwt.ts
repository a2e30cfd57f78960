// A JSON Web Token that the script makes itself. Sends: GET /headers x1
import http from 'k6/http';
import { check } from 'k6';
import crypto from 'k6/crypto';
import encoding from 'k6/encoding';

export const options = { vus: 1, iterations: 1 };

function token(claims: object, key: string): string {
  const part = (value: object) => encoding.b64encode(JSON.stringify(value), 'rawurl');
  const signed = `${part({ alg: 'HS256', typ: 'JWT' })}.${part(claims)}`;
  return `${signed}.${crypto.hmac('sha256', key, signed, 'base64rawurl')}`;
}

export default function (): void {
  const made = token({ sub: 'ada', exp: 4102444800 }, 'secret');
  const claims = JSON.parse(encoding.b64decode(made.split('.')[1], 'rawurl', 's'));
  http.get(`${__ENV.HOST}/headers`, { headers: { Authorization: `Bearer ${made}` } });
  check(claims, { 'is of ada': (own) => own.sub === 'ada' });
}
