//! Names of keys for output: the same key has the same name everywhere, and the name is not the key.

/// Minimum length of a key whose last four characters are in its name.
const MIN_SHOWN_CHARS: usize = 16;

/// Name of a key with this hash: its last four characters if it is long and they are letters or digits, and 32 bits of
/// the hash.
pub fn key_name(key: &str, hash: u64) -> String {
    let last = key.char_indices().rev().nth(3).map_or("", |(at, _)| &key[at..]);
    let is_shown = key.len() >= MIN_SHOWN_CHARS && last.chars().all(|c| c.is_ascii_alphanumeric());
    let begin = if is_shown { last } else { "key" };
    format!("{begin}-{:08x}", hash >> 32)
}

#[cfg(test)]
mod tests {
    use super::key_name;

    #[test]
    fn the_name_of_a_short_key_has_no_part_of_it() {
        let hash = 0x0123_4567_89ab_cdef;
        assert_eq!(key_name("UT4NHL1J796WCHULA1750MXYF9F5JYA6", hash), "JYA6-01234567");
        for short in ["", "hunter2", "c2VjcmV0c2VjcmV0==", "\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}"] {
            assert_eq!(key_name(short, hash), "key-01234567", "{short}");
        }
    }
}
