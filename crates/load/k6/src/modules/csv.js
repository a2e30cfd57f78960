// k6/experimental/csv: rows of a file, kept once for all users.
import * as native from 'weir:native';
import { SharedArray } from 'k6/data';
import { File } from 'k6/experimental/fs';

function rows(file, options = {}) {
  if (!(file instanceof File)) throw new TypeError("CSV is read from a file of open(), of 'k6/experimental/fs'");
  const { delimiter = ',', skipFirstLine = false, fromLine = 0, toLine, asObjects = false } = options ?? {};
  if (asObjects && skipFirstLine) throw new TypeError('asObjects and skipFirstLine exclude each other: the first line has the names');
  if (fromLine < 0 || toLine < fromLine) throw new TypeError(`invalid lines ${fromLine} to ${toLine}`);
  const settings = { delimiter, from: Math.max(fromLine, skipFirstLine ? 1 : 0), to: toLine, asObjects };
  const name = `csv:${File.number(file)}:${JSON.stringify(settings)}`;
  native.csvMake(name, File.number(file), settings);
  return new SharedArray(name, () => []);
}

export async function parse(file, options) {
  return rows(file, options);
}

export class Parser {
  #rows;
  #next = 0;
  constructor(file, options) { this.#rows = rows(file, options); }
  async next() {
    if (this.#next >= this.#rows.length) return { done: true, value: [] };
    return { done: false, value: this.#rows[this.#next++] };
  }
}

export default { parse, Parser };
