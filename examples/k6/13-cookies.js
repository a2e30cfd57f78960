// Cookies: those that the service sets, and own ones.
import http from 'k6/http';
import { check } from 'k6';

export const options = { vus: 1, iterations: 2 };

export default function () {
  const jar = http.cookieJar();
  http.get(`${__ENV.HOST}/`);
  check(jar.cookiesForURL(`${__ENV.HOST}/home`), { 'is a visitor': (cookies) => cookies.visitor.length === 1 });
  const other = new http.CookieJar();
  other.set(`${__ENV.HOST}/`, 'theme', 'dark');
  const page = http.get(`${__ENV.HOST}/`, { jar: other, cookies: { once: 'yes' } });
  check(page, { 'the other jar has a visitor of its own': (r) => r.url.endsWith('/home') && r.status === 200 });
}
