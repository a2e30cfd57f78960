// A socket by events, as browsers have it: counts what a service pushes. Service: ws
import { WebSocket } from 'k6/websockets';
import { Counter } from 'k6/metrics';
import type { Options } from 'k6/options';

const pushed = new Counter('pushed');

export const options: Options = { vus: 1, iterations: 1, thresholds: { pushed: ['count==3'] } };

export default function (): void {
  const socket = new WebSocket(`${__ENV.HOST}/push`);
  let count = 0;
  socket.addEventListener('message', () => {
    count += 1;
    if (count > 3) return;
    pushed.add(1);
    if (count === 3) socket.close();
  });
}
