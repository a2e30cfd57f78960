// k6/metrics: Counter, Gauge, Rate, Trend.
import * as native from 'weir:native';
import { flat } from 'weir:values';

const ofKind = (kind) =>
  class {
    #number;
    constructor(name, isTime) {
      this.#number = native.metric(String(name), kind, Boolean(isTime));
      this.name = String(name);
    }
    add(value, tags) {
      const number = typeof value === 'boolean' ? Number(value) : Number(value);
      if (Number.isNaN(number)) {
        native.log('warning', `metric '${this.name}': ${String(value)} is not a number; it is left out`);
        return false;
      }
      native.sample(this.#number, number, flat(tags));
      return true;
    }
  };

export const Counter = ofKind('counter');
export const Gauge = ofKind('gauge');
export const Rate = ofKind('rate');
export const Trend = ofKind('trend');
export default { Counter, Gauge, Rate, Trend };
