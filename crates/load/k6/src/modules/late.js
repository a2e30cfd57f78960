// What modules offer that are loaded when something of theirs is used for the first time.
import * as native from 'weir:native';

export const late = {};

export function loaded(module, name) {
  if (late[name] === undefined) native.load(module);
  return late[name];
}
