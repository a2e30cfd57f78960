// Follows the pages of a list to its end. Sends: POST /echo x3
import http from 'k6/http';
import { check } from 'k6';

export const options = { vus: 1, iterations: 1 };

export default function () {
  const items = [];
  for (let page = 1; page !== null; ) {
    const body = { items: [page * 10, page * 10 + 1], next: page < 3 ? page + 1 : null };
    const response = http.post(`${__ENV.HOST}/echo`, JSON.stringify(body), { tags: { name: 'page' } });
    const shown = JSON.parse(String(response.body));
    items.push(...shown.items);
    page = shown.next;
  }
  check(items, { 'has all': (all) => all.join() === '10,11,20,21,30,31' });
}
