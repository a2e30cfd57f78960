// One counter with tags, and thresholds of each. Sends: GET /echo x6
import http from 'k6/http';
import { Counter } from 'k6/metrics';

const orders = new Counter('orders');

export const options = {
  vus: 1,
  iterations: 6,
  thresholds: { 'orders{region:north}': ['count==3'], 'orders{region:south}': ['count==3'], orders: ['count==6'] },
};

export default function () {
  http.get(`${__ENV.HOST}/echo`);
  orders.add(1, { region: __ITER % 2 === 0 ? 'north' : 'south' });
}
