// A rate that rises and falls.
import http from 'k6/http';

export const options = {
  scenarios: {
    ramp: {
      executor: 'ramping-arrival-rate',
      startRate: 5,
      timeUnit: '1s',
      preAllocatedVUs: 5,
      stages: [
        { duration: '500ms', target: 20 },
        { duration: '500ms', target: 0 },
      ],
    },
  },
};

export default function () {
  http.get(`${__ENV.HOST}/`);
}
