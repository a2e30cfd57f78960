// k6/execution: facts of the user, the scenario and the run.
import { abort, facts, failTest, options, setTags } from 'weir:execution';

const fact = (number) => facts()[number];
const users = () => fact(8);

let read;
const readOptions = () => (read ??= JSON.parse(options()));

const tags = new Proxy({}, {
  get: (target, name) => (name === 'scenario' && !(name in target) ? fact(3) : target[name]),
  set(target, name, value) {
    if (typeof value === 'object' || typeof value === 'function' || value === undefined) {
      throw new TypeError(`the tag '${String(name)}' is neither a text, a number nor a flag`);
    }
    target[name] = String(value);
    setTags(target);
    return true;
  },
  deleteProperty(target, name) {
    delete target[name];
    setTags(target);
    return true;
  },
});

const metrics = { tags, metadata: {} };

export const vu = {
  get idInInstance() { return fact(0); },
  get idInTest() { return fact(0); },
  get iterationInInstance() { return fact(1); },
  get iterationInScenario() { return fact(1); },
  get metrics() { return metrics; },
  get tags() { return tags; },
};

export const scenario = {
  get name() { return fact(3); },
  get executor() { return fact(4); },
  get startTime() { return Date.now() - fact(7) + fact(5); },
  get progress() { return fact(6); },
  get iterationInInstance() { return fact(2); },
  get iterationInTest() { return fact(2); },
};

export const instance = {
  get iterationsInterrupted() { return fact(11); },
  get iterationsCompleted() { return fact(10); },
  get vusActive() { return fact(12); },
  get vusInitialized() { return users(); },
  get currentTestRunDuration() { return fact(7); },
};

export const test = {
  abort(reason) { abort(reason === undefined ? 'test aborted' : `test aborted: ${String(reason)}`); },
  fail(reason) { failTest(reason === undefined ? 'the test failed' : String(reason)); },
  get options() { return readOptions(); },
};

export default { vu, scenario, instance, test };
