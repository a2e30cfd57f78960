// A socket that sends and closes, by callbacks. Service: ws
import ws from 'k6/ws';
import { check } from 'k6';

export const options = { vus: 1, iterations: 2 };

export default function () {
  let reply;
  const response = ws.connect(`${__ENV.HOST}/echo`, {}, (socket) => {
    socket.on('open', () => socket.send('tea'));
    socket.on('message', (text) => {
      reply = text;
      socket.close();
    });
    socket.setTimeout(() => socket.close(), 5000);
  });
  check(response, { 'was upgraded': (r) => r.status === 101, 'came back': () => reply === 'tea' });
}
