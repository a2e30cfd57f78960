// Messages over WebSocket: each connection sends its next one when the reply to the one before has come.
import ws from 'k6/ws';

export const options = {
  scenarios: {
    load: {
      executor: 'constant-vus',
      vus: Number(__ENV.CONNECTIONS),
      duration: `${__ENV.SECONDS}s`,
      gracefulStop: '1s',
    },
  },
};

const end = Number(__ENV.SECONDS) * 1000;

export default function () {
  ws.connect(__ENV.URL, (socket) => {
    socket.on('open', () => socket.send('{"type":"ping"}'));
    socket.on('message', () => socket.send('{"type":"ping"}'));
    socket.setTimeout(() => socket.close(), end);
  });
}
