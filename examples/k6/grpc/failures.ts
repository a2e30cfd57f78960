// Statuses of gRPC other than OK, as a script expects them. Service: grpc; exit code 3, since no call succeeds
import { Client, StatusNotFound } from 'k6/net/grpc';
import { check } from 'k6';

const client = new Client();

export const options = { vus: 1, iterations: 1 };

export default function (): void {
  client.connect(__ENV.HOST.replace('grpc://', ''), { plaintext: true, reflect: true });
  const response = client.invoke('weir.test.v1.Test/Echo', { status: { code: 5, message: 'no tea' } });
  check(response, { 'is not found': (r) => r?.status === StatusNotFound, 'has its text': (r) => JSON.stringify(r?.error).includes('no tea') });
  client.close();
}
