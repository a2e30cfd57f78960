// What modules offer that are loaded when something of theirs is used for the first time.
import { load } from 'weir:core';

export const late = {};

export function loaded(module, name) {
  if (late[name] === undefined) load(module);
  return late[name];
}
