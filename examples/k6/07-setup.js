// One login before the load, whose token all users have.
import http from 'k6/http';
import { check } from 'k6';

export const options = { vus: 2, iterations: 4 };

export function setup() {
  const login = http.post(`${__ENV.HOST}/login`, { user: 'ann', password: 'pw-ann' });
  return { token: login.json('token'), session: login.cookies.session[0].value };
}

/** @param {{ token: string, session: string }} data */
export default function (data) {
  const params = { headers: { Authorization: `Bearer ${data.token}` }, cookies: { session: data.session } };
  check(http.get(`${__ENV.HOST}/items?page=1`, params), { 'ten items': (r) => r.json('items.#') === 10 });
}

export function teardown() {
  console.log('the load is over');
}
