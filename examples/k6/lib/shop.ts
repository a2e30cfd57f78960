// Parts that scripts share.
import http from 'k6/http';

export type Login = { token: string; user: string };

export const hostOf = (): string => __ENV.HOST ?? 'http://localhost:8080';

export function login(user: string): Login {
  const response = http.post(`${hostOf()}/login`, { user, password: `pw-${user}` });
  return response.json() as unknown as Login;
}
