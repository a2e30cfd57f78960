// The three steps of shop.hurl.
import http from 'k6/http';
import { check } from 'k6';

const base = __ENV.BASE;

export const options = {
  scenarios: {
    load: { executor: 'constant-vus', vus: Number(__ENV.USERS), duration: `${__ENV.SECONDS}s`, gracefulStop: '1s' },
  },
  summaryTrendStats: ['avg', 'med', 'p(75)', 'p(90)', 'p(95)', 'p(99)', 'max'],
};

export default function () {
  const json = { 'Content-Type': 'application/json' };
  const login = http.post(`${base}/shop/login`, '{"user": "bob", "password": "x"}', { headers: json });
  check(login, { 'login: status is 200': (response) => response.status === 200 });
  const authorization = { Authorization: `Bearer ${login.json('token')}` };
  const items = http.get(`${base}/shop/items`, { headers: authorization });
  check(items, { 'items: status is 200': (response) => response.status === 200 });
  const id = items.json('items.7.id');
  // A name of its own keeps k6 from counting each address as another series.
  const params = { headers: Object.assign({}, json, authorization), tags: { name: 'order' } };
  const order = http.post(`${base}/shop/orders/${id}`, `{"item": ${id}}`, params);
  check(order, {
    'order: status is 200': (response) => response.status === 200,
    'order: is ok': (response) => response.json('status') === 'ok',
  });
}
