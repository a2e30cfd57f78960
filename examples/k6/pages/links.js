// Reads a page, and follows what it links to. Sends: POST /echo x1; GET /status/200 x2
import http from 'k6/http';
import { check } from 'k6';
import { parseHTML } from 'k6/html';

export const options = { vus: 1, iterations: 1 };

const page = '<ul><li><a href="/status/200">one</a><li><a href="/status/200">two</a></ul><p id=more>2 more</p>';

export default function () {
  const doc = parseHTML(String(http.post(`${__ENV.HOST}/echo`, page).body));
  const links = doc.find('li a').map((at, link) => link.attr('href'));
  check(doc, { 'has two': () => links.length === 2, 'has more': (own) => own.find('#more').text() === '2 more' });
  links.forEach((path) => http.get(`${__ENV.HOST}${path}`, { tags: { name: 'link' } }));
}
