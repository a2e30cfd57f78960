// Streams of gRPC: of the server, of the client, and both ways, each message after the one before. Service: grpc
import { Client, Stream } from 'k6/net/grpc';
import { check } from 'k6';

const client = new Client();

export const options = {
  vus: 2,
  iterations: 4,
  thresholds: { grpc_streams: ['count==12'], 'grpc_streams_msgs_received{kind:chat}': ['count==12'] },
};

// Messages of a stream, once it has ended; `next` may write further ones.
function messages(method, first, kind, next = (stream, count) => stream.end()) {
  return new Promise((resolve, reject) => {
    const stream = new Stream(client, `weir.test.v1.Test/${method}`, { tags: { kind } });
    const seen = [];
    stream.on('data', (message) => {
      seen.push(message);
      if (method === 'Chat') next(stream, seen.length);
    });
    stream.on('error', (error) => reject(new Error(JSON.stringify(error))));
    stream.on('end', () => resolve(seen));
    first.forEach((message) => stream.write(message));
    if (method !== 'Chat') stream.end();
  });
}

export default async function () {
  client.connect(__ENV.HOST.replace('grpc://', ''), { plaintext: true, reflect: true });
  const list = await messages('List', [{ count: 3, echo: { text: 'tea' } }], 'list');
  const [sum] = await messages('Collect', [{ text: 'green' }, { text: 'black' }], 'collect');
  const chat = await messages('Chat', [{ text: '1' }], 'chat', (stream, count) => {
    if (count < 3) stream.write({ text: `${count + 1}` });
    else stream.end();
  });
  check(null, {
    'three of the server': () => list.length === 3 && list[2].text === 'tea',
    'two of the client': () => sum.messages === '2' && sum.lastText === 'black',
    'each after the one before': () => chat.map((message) => message.text).join() === '1,2,3',
  });
  client.close();
}
