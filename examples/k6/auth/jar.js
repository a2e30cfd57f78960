// Cookies that the script sets itself, in a jar of its own. Sends: GET /headers x2
import http from 'k6/http';
import { check } from 'k6';

export const options = { vus: 1, iterations: 1 };

export default function () {
  const jar = new http.CookieJar();
  jar.set(__ENV.HOST, 'session', 's-1');
  check(http.get(`${__ENV.HOST}/headers`, { jar }), { 'has the session': (r) => JSON.stringify(r.json()).includes('session=s-1') });
  const plain = http.get(`${__ENV.HOST}/headers`, { cookies: { theme: 'dark' } });
  check(plain, { 'has the theme alone': (r) => String(r.body).includes('theme=dark') && !String(r.body).includes('s-1') });
}
