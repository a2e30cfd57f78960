// A script in several files.
import { check } from 'k6';
import { login, type Login } from './lib/shop.ts';

export const options = { vus: 1, iterations: 2 };

export default function (): void {
  const { user, token }: Login = login('ann');
  check(user, { 'is ann': (name) => name === 'ann' && token.length > 0 });
}
