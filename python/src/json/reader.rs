//! Text of JSON -> Python objects.

use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyList, PyString};

use super::MAX_DEPTH;

/// Keys of objects, which come again and again: Python's strings of them, with their hashes.
static KEY_CACHE: Mutex<KeyCache> = Mutex::new(KeyCache(Vec::new()));

/// Reads a text; `None` if Python's module has to, or reports an error.
pub(crate) fn read<'py>(py: Python<'py>, bytes: &[u8]) -> Option<Bound<'py, PyAny>> {
    let text = std::str::from_utf8(bytes).ok()?;
    // Python may collect garbage on the way, and what it then calls may read JSON as well: nothing waits here.
    let (mut shared, mut own) = (KEY_CACHE.try_lock().ok(), KeyCache(Vec::new()));
    let keys = shared.as_deref_mut().unwrap_or(&mut own);
    let mut reader = JsonReader { py, text, bytes, at: 0, keys, items: Vec::new() };
    let value = reader.value(0)?;
    reader.skip_spaces();
    (reader.at == bytes.len()).then_some(value)
}

struct JsonReader<'a, 'py> {
    py: Python<'py>,
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    keys: &'a mut KeyCache,
    /// Items of the lists that are not complete.
    items: Vec<Bound<'py, PyAny>>,
}

impl<'a, 'py> JsonReader<'a, 'py> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_spaces(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Takes a byte after spaces, if it is this one.
    fn takes(&mut self, byte: u8) -> bool {
        self.skip_spaces();
        let is_there = self.peek() == Some(byte);
        self.at += usize::from(is_there);
        is_there
    }

    fn value(&mut self, depth: usize) -> Option<Bound<'py, PyAny>> {
        if depth > MAX_DEPTH {
            return None;
        }
        self.skip_spaces();
        match self.peek()? {
            b'{' => self.object(depth),
            b'[' => self.list(depth),
            b'"' => {
                let mut buffer = String::new();
                let text = self.string(&mut buffer)?;
                Some(PyString::new(self.py, text).into_any())
            }
            b't' => self.word("true", PyBool::new(self.py, true).to_owned().into_any()),
            b'f' => self.word("false", PyBool::new(self.py, false).to_owned().into_any()),
            b'n' => self.word("null", self.py.None().into_bound(self.py)),
            _ => self.number(),
        }
    }

    fn word(&mut self, word: &str, value: Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
        self.bytes[self.at..].starts_with(word.as_bytes()).then(|| {
            self.at += word.len();
            value
        })
    }

    fn object(&mut self, depth: usize) -> Option<Bound<'py, PyAny>> {
        self.at += 1;
        let object = PyDict::new(self.py);
        if self.takes(b'}') {
            return Some(object.into_any());
        }
        loop {
            self.skip_spaces();
            if self.peek()? != b'"' {
                return None;
            }
            let mut buffer = String::new();
            let name = self.string(&mut buffer)?;
            let key = self.keys.get(self.py, name);
            if !self.takes(b':') {
                return None;
            }
            let value = self.value(depth + 1)?;
            object.set_item(key, value).ok()?;
            if self.takes(b'}') {
                return Some(object.into_any());
            }
            if !self.takes(b',') {
                return None;
            }
        }
    }

    fn list(&mut self, depth: usize) -> Option<Bound<'py, PyAny>> {
        self.at += 1;
        if self.takes(b']') {
            return Some(PyList::empty(self.py).into_any());
        }
        let first = self.items.len();
        loop {
            let item = self.value(depth + 1)?;
            self.items.push(item);
            if self.takes(b']') {
                return Some(PyList::new(self.py, self.items.drain(first..)).ok()?.into_any());
            }
            if !self.takes(b',') {
                return None;
            }
        }
    }

    /// Characters of a string; those with escapes are in `buffer`.
    fn string<'b>(&mut self, buffer: &'b mut String) -> Option<&'b str>
    where
        'a: 'b,
    {
        self.at += 1;
        let start = self.at;
        let length = self.bytes[start..].iter().position(|byte| matches!(byte, b'"' | b'\\' | ..=0x1f))?;
        self.at += length;
        if self.peek()? == b'"' {
            self.at += 1;
            return self.text.get(start..start + length);
        }
        buffer.push_str(self.text.get(start..self.at)?);
        loop {
            let start = self.at;
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    return Some(buffer);
                }
                b'\\' => {
                    self.at += 1;
                    buffer.push(self.escape()?);
                }
                ..=0x1f => return None,
                _ => {
                    let rest = &self.bytes[start..];
                    self.at += rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | ..=0x1f))?;
                    buffer.push_str(self.text.get(start..self.at)?);
                }
            }
        }
    }

    /// Character of an escape, after its backslash.
    fn escape(&mut self) -> Option<char> {
        let kind = self.peek()?;
        self.at += 1;
        Some(match kind {
            b'"' | b'\\' | b'/' => kind.into(),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let unit = self.unit()?;
                if !(0xd800..0xe000).contains(&unit) {
                    return char::from_u32(unit);
                }
                // A pair of surrogates; a lone one is for Python.
                if unit >= 0xdc00 || !self.bytes[self.at..].starts_with(b"\\u") {
                    return None;
                }
                self.at += 2;
                let low = self.unit().filter(|low| (0xdc00..0xe000).contains(low))?;
                return char::from_u32(0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00));
            }
            _ => return None,
        })
    }

    /// Four hexadecimal digits.
    fn unit(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        self.at += 4;
        if digits.bytes().all(|byte| byte.is_ascii_hexdigit()) { u32::from_str_radix(digits, 16).ok() } else { None }
    }

    fn number(&mut self) -> Option<Bound<'py, PyAny>> {
        let start = self.at;
        self.at += usize::from(self.peek() == Some(b'-'));
        match self.peek()? {
            b'0' => self.at += 1,
            b'1'..=b'9' => self.skip_digits()?,
            _ => return None,
        }
        let mut is_whole = true;
        if self.peek() == Some(b'.') {
            is_whole = false;
            self.at += 1;
            self.skip_digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            is_whole = false;
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            self.skip_digits()?;
        }
        let text = self.text.get(start..self.at)?;
        if is_whole {
            return Some(text.parse::<i64>().ok()?.into_pyobject(self.py).ok()?.into_any());
        }
        Some(PyFloat::new(self.py, text.parse().ok()?).into_any())
    }

    /// Skips digits, at least one.
    fn skip_digits(&mut self) -> Option<()> {
        let digits = self.bytes[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += digits;
        (digits > 0).then_some(())
    }
}

/// Strings of keys, by a hash of their text; a new one takes the place of another.
struct KeyCache(Vec<Option<(Box<str>, Py<PyString>)>>);

/// Number of keys.
const KEY_COUNT: usize = 1024;
/// Longest key, in bytes.
const MAX_KEY_BYTES: usize = 40;

impl KeyCache {
    fn get<'py>(&mut self, py: Python<'py>, text: &str) -> Bound<'py, PyString> {
        if text.len() > MAX_KEY_BYTES {
            return PyString::new(py, text);
        }
        if self.0.is_empty() {
            self.0.resize_with(KEY_COUNT, || None);
        }
        let hash = text
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        let place = &mut self.0[(hash >> 40) as usize % KEY_COUNT];
        if let Some((known, key)) = place
            && **known == *text
        {
            return key.bind(py).clone();
        }
        let key = PyString::new(py, text);
        *place = Some((text.into(), key.clone().unbind()));
        key
    }
}
