// A rising rate that ends by itself once too many requests fail. Exit code 1. Sends: GET /status/500 x1+
import http from 'k6/http';

export const options = {
  scenarios: {
    rising: {
      executor: 'ramping-arrival-rate', startRate: 20, timeUnit: '1s', preAllocatedVUs: 10, maxVUs: 50,
      stages: [{ duration: '30s', target: 1000 }],
    },
  },
  thresholds: { http_req_failed: [{ threshold: 'rate<0.5', abortOnFail: true }] },
};

export default function () {
  http.get(`${__ENV.HOST}/status/500`);
}
