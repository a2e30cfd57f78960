// Rows of a CSV file.
import http from 'k6/http';
import { check } from 'k6';
import { open } from 'k6/experimental/fs';
import csv from 'k6/experimental/csv';
import exec from 'k6/execution';

const file = await open('./users.csv');
const rows = (await csv.parse(file, { asObjects: true })) as unknown as Array<{ user: string; password: string }>;

export const options = { vus: 2, iterations: 4 };

export default function (): void {
  const { user, password } = rows[exec.scenario.iterationInTest % rows.length]!;
  check(http.post(`${__ENV.HOST}/login`, { user, password }), { 'logged in': (r) => r.status === 200 });
}
