// A request that is signed by HMAC. Sends: POST /echo x1
import http from 'k6/http';
import { check } from 'k6';
import crypto from 'k6/crypto';

export const options = { vus: 1, iterations: 1 };

export default function () {
  const body = JSON.stringify({ amount: 5 });
  const signature = crypto.hmac('sha256', 'key', body, 'hex');
  const response = http.post(`${__ENV.HOST}/echo`, body, { headers: { 'X-Signature': signature } });
  check(response, { 'came back': (r) => r.body === body && signature.length === 64 });
}
