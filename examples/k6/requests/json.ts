// JSON in both directions, with a type for it. Sends: POST /echo x1
import http, { type RefinedResponse } from 'k6/http';
import { check } from 'k6';

interface Order { id: number; lines: { item: string; quantity: number }[] }

export const options = { vus: 1, iterations: 1 };

export default function (): void {
  const order: Order = { id: 7, lines: [{ item: 'tea', quantity: 2 }] };
  const headers = { 'Content-Type': 'application/json' };
  const made: RefinedResponse<'text'> = http.post(`${__ENV.HOST}/echo`, JSON.stringify(order), { headers, responseType: 'text' });
  check(made, {
    'has the item': (r) => r.json('lines.0.item') === 'tea',
    'has two': (r) => (r.json() as unknown as Order).lines[0].quantity === 2,
  });
}
