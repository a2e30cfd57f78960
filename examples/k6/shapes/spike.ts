// A spike of arrivals: quiet, high, quiet. Sends: GET /echo x1+
import http from 'k6/http';
import type { Options } from 'k6/options';

export const options: Options = {
  scenarios: {
    spike: {
      executor: 'ramping-arrival-rate',
      startRate: 5,
      timeUnit: '1s',
      preAllocatedVUs: 5,
      maxVUs: 20,
      stages: [{ duration: '200ms', target: 5 }, { duration: '200ms', target: 40 }, { duration: '200ms', target: 5 }],
    },
  },
};

export default function (): void {
  http.get(`${__ENV.HOST}/echo`);
}
