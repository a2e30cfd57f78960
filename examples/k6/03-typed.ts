// A user of the shop in TypeScript: log in, choose, buy.
import http, { RefinedResponse, ResponseType } from 'k6/http';
import { check, fail } from 'k6';
import { Options } from 'k6/options';

interface Item {
  id: number;
  name: string;
  price_cents: number;
}

enum Step {
  Login = 'login',
  Items = 'items',
  Buy = 'buy',
}

type Headers = Record<string, string>;

export const options: Options = { vus: 2, iterations: 4, thresholds: { checks: ['rate==1'] } };

function expect(step: Step, response: RefinedResponse<ResponseType | undefined>, status: number): void {
  if (!check(response, { [step]: (r) => r.status === status })) fail(`${step}: ${response.status}`);
}

export default function (): void {
  const user = `user-${__VU}-${__ITER}`;
  const login = http.post(`${__ENV.HOST}/login`, { user, password: `pw-${user}` });
  expect(Step.Login, login, 200);
  const headers: Headers = { Authorization: `Bearer ${login.json('token') as string}` };
  const list = http.get(`${__ENV.HOST}/items?page=1`, { headers });
  expect(Step.Items, list, 200);
  const item = (list.json('items') as unknown as Item[])[0]!;
  http.get(http.url`${__ENV.HOST}/items/${item.id}`, { headers });
  http.post(`${__ENV.HOST}/cart`, JSON.stringify({ item: item.id, quantity: 2 }), { headers });
  expect(Step.Buy, http.post(`${__ENV.HOST}/buy`, null, { headers }), 201);
}
