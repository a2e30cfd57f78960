// Promises and timers: requests one after the other, and a pause between them.
import http from 'k6/http';
import { check } from 'k6';
import { setTimeout } from 'k6/timers';

export const options = { vus: 2, iterations: 4 };

const pause = (ms: number): Promise<void> => new Promise<void>((done) => setTimeout(() => done(), ms));

export default async function (): Promise<void> {
  const first = await http.asyncRequest('GET', `${__ENV.HOST}/`);
  await pause(20);
  const second = await http.asyncRequest('GET', `${__ENV.HOST}/stats`);
  check([first, second], { 'both are there': (all) => all.every((r) => r.status === 200) });
}
