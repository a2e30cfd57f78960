// k6/experimental/fs: files that are read in parts, and kept once for all users.
import * as native from 'weir:native';

export const SeekMode = { Start: 0, Current: 1, End: 2 };

export class File {
  #number;
  #offset = 0;
  #size;
  constructor(path, number, size) {
    if (number === undefined) throw new TypeError('a File is made by open()');
    this.path = path;
    this.#number = number;
    this.#size = size;
  }
  static number(file) { return file.#number; }
  async read(buffer) {
    if (!(buffer instanceof Uint8Array)) throw new TypeError('read() needs a Uint8Array');
    if (buffer.length === 0) return 0;
    if (this.#offset >= this.#size) return null;
    const bytes = new Uint8Array(native.fileRead(this.#number, this.#offset, buffer.length));
    buffer.set(bytes);
    this.#offset += bytes.length;
    return bytes.length;
  }
  async seek(offset, whence) {
    const bases = [0, this.#offset, this.#size];
    if (!Number.isInteger(offset)) throw new TypeError('seek() needs a whole number');
    if (bases[whence] === undefined) throw new TypeError(`invalid seek mode '${whence}'; choose one of SeekMode`);
    const at = bases[whence] + offset;
    if (at < 0 || at > this.#size) throw new RangeError(`the file '${this.path}' has no byte ${at}`);
    this.#offset = at;
    return at;
  }
  async stat() { return { name: this.path.slice(this.path.lastIndexOf('/') + 1), size: this.#size }; }
}

export async function open(path) {
  if (typeof path !== 'string' || path === '') throw new TypeError('open() needs the path of a file');
  return new File(path, ...native.fileOpen(path));
}

export default { open, File, SeekMode };
