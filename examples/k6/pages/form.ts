// Fills in a form that a page has, and sends it. Sends: POST /echo x2
import http from 'k6/http';
import { check } from 'k6';

export const options = { vus: 1, iterations: 1 };

const page = '<form action="/echo" method="post"><input name="csrf" type="hidden" value="c-1"><input name="q"><button type="submit">Go</button></form>';

export default function (): void {
  const shown = http.post(`${__ENV.HOST}/echo`, page, { headers: { 'Content-Type': 'text/html' } });
  const sent = shown.submitForm({ fields: { q: 'tea' } });
  check(sent, { 'has both': (r) => r.body === 'csrf=c-1&q=tea' });
}
