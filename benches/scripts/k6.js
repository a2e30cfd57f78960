// Repeated GETs: evenly spaced arrivals with RATE; without it, users that wait for each response.
import http from 'k6/http';

const duration = `${__ENV.SECONDS}s`;
const connections = Number(__ENV.CONNECTIONS);

const closed = { executor: 'constant-vus', vus: connections, duration, gracefulStop: '1s' };
const open = {
  executor: 'constant-arrival-rate',
  rate: Number(__ENV.RATE || 1),
  timeUnit: '1s',
  duration,
  preAllocatedVUs: connections,
  maxVUs: connections,
  gracefulStop: '1s',
};

export const options = {
  discardResponseBodies: true,
  scenarios: { load: __ENV.RATE ? open : closed },
  summaryTrendStats: ['avg', 'med', 'p(75)', 'p(90)', 'p(95)', 'p(99)', 'p(99.9)', 'max'],
};

export default function () {
  http.get(__ENV.URL);
}
