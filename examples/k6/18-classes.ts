// A client of the shop as a class, with errors of its own.
import http, { Params, RefinedResponse } from 'k6/http';
import { check } from 'k6';

class ShopError extends Error {
  constructor(readonly status: number, step: string) {
    super(`${step}: status ${status}`);
  }
}

abstract class Client {
  protected token?: string;
  constructor(private readonly host: string) {}

  protected abstract get name(): string;

  protected params(): Params {
    return this.token === undefined ? {} : { headers: { Authorization: `Bearer ${this.token}` } };
  }

  get(path: string): RefinedResponse<'text'> {
    const response = http.get(`${this.host}${path}`, {
      ...this.params(),
      responseType: 'text',
      // Errors are thrown below.
      responseCallback: http.expectedStatuses({ min: 200, max: 499 }),
    });
    if (response.status >= 400) throw new ShopError(response.status, `${this.name} ${path}`);
    return response;
  }

  post(path: string, body: Record<string, string>): RefinedResponse<'text'> {
    return http.post(`${this.host}${path}`, body, { ...this.params(), responseType: 'text' });
  }
}

class Shopper extends Client {
  protected override get name(): string {
    return 'shopper';
  }

  login(user: string): this {
    this.token = this.post('/login', { user, password: `pw-${user}` }).json('token') as string;
    return this;
  }
}

export const options = { vus: 1, iterations: 2 };

export default function (): void {
  const shopper = new Shopper(__ENV.HOST!).login('ann');
  check(shopper.get('/items?page=2'), { 'second page': (r) => r.json('page') === 2 });
  let error: unknown;
  try {
    shopper.get('/items/999');
  } catch (thrown) {
    error = thrown;
  }
  check(error, { 'an unknown item is an error': (e) => e instanceof ShopError && e.status >= 400 });
}
