// A query that is made of an object. Sends: GET /echo?page=2&q=black%20tea x1
import http from 'k6/http';

export const options = { vus: 1, iterations: 1 };

const query = (fields) => Object.entries(fields).map((pair) => pair.map(encodeURIComponent).join('=')).join('&');

export default function () {
  http.get(`${__ENV.HOST}/echo?${query({ page: 2, q: 'black tea' })}`, { tags: { name: 'search' } });
}
