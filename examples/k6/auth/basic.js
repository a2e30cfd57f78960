// Basic authentication, by the URL and by a header. Sends: GET /headers x2
import http from 'k6/http';
import { check } from 'k6';
import encoding from 'k6/encoding';

export const options = { vus: 1, iterations: 1 };

export default function () {
  const header = `Basic ${encoding.b64encode('ada:tea')}`;
  const [scheme, host] = __ENV.HOST.split('://');
  const both = [
    http.get(`${scheme}://ada:tea@${host}/headers`, { auth: 'basic' }),
    http.get(`${__ENV.HOST}/headers`, { headers: { Authorization: header } }),
  ];
  check(both, { 'are the same': (all) => all.every((r) => JSON.stringify(r.json()).includes(header)) });
}
