// k6/metrics: Counter, Gauge, Rate, Trend.
import { log, metric, sample } from 'weir:core';

const ofKind = (kind) =>
  class {
    #number;
    constructor(name, isTime) {
      if (name === undefined) throw new TypeError('a metric needs a name');
      this.#number = metric(String(name), kind, Boolean(isTime));
      this.name = String(name);
    }
    add(value, tags) {
      const number = Number(value);
      if (!Number.isFinite(number)) {
        log('warning', `metric '${this.name}': ${String(value)} is not a finite number; it is left out`);
        return false;
      }
      sample(this.#number, number, tags);
      return true;
    }
  };

export const Counter = ofKind('counter');
export const Gauge = ofKind('gauge');
export const Rate = ofKind('rate');
export const Trend = ofKind('trend');
export default { Counter, Gauge, Rate, Trend };
