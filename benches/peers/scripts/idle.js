// Users that read the items once and then think, for the memory that a user takes.
import http from 'k6/http';
import { check, sleep } from 'k6';

export default function () {
  check(http.get(`${__ENV.BASE}/shop/items`), { 'status is 200': (response) => response.status === 200 });
  sleep(3600);
}
