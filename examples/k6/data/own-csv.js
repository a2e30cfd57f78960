// A CSV file that the script reads by itself. Sends: POST /echo x3
import http from 'k6/http';
import { SharedArray } from 'k6/data';

const rows = new SharedArray('rows', () => {
  const [head, ...lines] = open('../users.csv').trim().split('\n').map((line) => line.split(','));
  return lines.map((cells) => Object.fromEntries(cells.map((cell, at) => [head[at], cell])));
});

export const options = { vus: 1, iterations: 3 };

export default function () {
  http.post(`${__ENV.HOST}/echo`, rows[__ITER % rows.length]);
}
