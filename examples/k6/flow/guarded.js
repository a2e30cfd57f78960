// A step that is only made if the one before it has succeeded. Sends: GET /status/404 x2; GET /status/200 x1
import http from 'k6/http';
import { check, group } from 'k6';

export const options = { vus: 1, iterations: 1 };

const accepted = { responseCallback: http.expectedStatuses(200, 404) };

export default function () {
  group('found', () => {
    const first = http.get(`${__ENV.HOST}/status/404`, accepted);
    if (!check(first, { 'is missing': (r) => r.status === 404 })) return;
    try {
      const again = http.get(`${__ENV.HOST}/status/404`, accepted);
      if (again.status !== 200) throw new Error('still missing');
    } catch (error) {
      check(error, { 'is told': (thrown) => String(thrown).includes('still missing') });
    }
    http.get(`${__ENV.HOST}/status/200`);
  });
}
