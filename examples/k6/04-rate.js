// A fixed rate of arrivals, whatever the response times are.
import http from 'k6/http';

export const options = {
  scenarios: {
    home: { executor: 'constant-arrival-rate', rate: 20, timeUnit: '1s', duration: '1s', preAllocatedVUs: 5, maxVUs: 20 },
  },
};

export default function () {
  http.get(`${__ENV.HOST}/`);
}
