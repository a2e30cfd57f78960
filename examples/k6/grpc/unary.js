// A call of gRPC, described by the service itself. Service: grpc
import grpc from 'k6/net/grpc';
import { check } from 'k6';

const client = new grpc.Client();

export const options = { vus: 1, iterations: 2 };

export default function () {
  client.connect(__ENV.HOST.replace('grpc://', ''), { plaintext: true, reflect: true });
  const response = client.invoke('weir.test.v1.Test/Echo', { text: 'tea' }, { metadata: { 'x-echo-a': '1' } });
  check(response, { 'is ok': (r) => r.status === grpc.StatusOK, 'came back': (r) => JSON.stringify(r.message).includes('"tea"') });
  client.close();
}
