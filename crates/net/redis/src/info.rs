//! `INFO` of a Redis server.

use ::redis::{Connection, RedisResult};

/// Output of `INFO`.
///
/// # Errors
/// The server does not respond, or denies the command to this user.
pub fn info(connection: &mut Connection) -> RedisResult<String> {
    ::redis::cmd("INFO").query(connection)
}

/// Value of a field of `INFO`.
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
