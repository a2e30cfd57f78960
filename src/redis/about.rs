//! What a server says of itself.

use ::redis::{Connection, RedisResult};

/// All of it.
///
/// # Errors
/// The server does not answer, or does not tell everybody.
pub fn info(connection: &mut Connection) -> RedisResult<String> {
    ::redis::cmd("INFO").query(connection)
}

/// A line of it.
pub fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::field;

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let info = "# Server\r\nrun_id:abc\r\nmaxmemory_policy:noeviction\r\nmaxmemory:0\r\n";
        assert_eq!(field(info, "maxmemory"), Some("0"));
        assert_eq!(field(info, "run_id"), Some("abc"));
        assert_eq!(field(info, "run"), None);
    }
}
