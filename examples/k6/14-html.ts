// What a page says: HTML by selectors.
import http from 'k6/http';
import { check } from 'k6';
import { parseHTML, Selection } from 'k6/html';

export const options = { vus: 1, iterations: 2 };

const form = `<form action="/login" method="post"><input name="user" value="ann">
  <select name="role"><option value="1">one</option><option value="2" selected>two</option></select></form>`;

export default function (): void {
  const page = http.get(`${__ENV.HOST}/`);
  const body: Selection = page.html('body');
  const fields = parseHTML(form).find('form').serializeObject();
  check(body, {
    'the page has a body': (one) => one.size() === 1,
    'a form has values': () => fields['user'] === 'ann' && fields['role'] === '2',
  });
}
