// Calls of gRPC and requests of HTTP in one script, to one service. Service: grpc
import grpc from 'k6/net/grpc';
import http from 'k6/http';
import { check } from 'k6';

const client = new grpc.Client();
const host = __ENV.HOST.replace('grpc://', '');

export const options = { vus: 1, iterations: 2 };

export default function () {
  const before = Number(http.get(`http://${host}/stats`).json('status.OK') ?? 0);
  client.connect(host, { plaintext: true, reflect: true });
  const call = client.invoke('weir.test.v1.Test/Echo', { text: 'tea' });
  const after = http.get(`http://${host}/stats`);
  check(after, {
    'is a page': (r) => r.status === 200 && r.proto === 'HTTP/1.1',
    'counts the call': (r) => call.status === grpc.StatusOK && Number(r.json('status.OK')) > before,
  });
  client.close();
}
