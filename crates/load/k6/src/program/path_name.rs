//! Names of steps from paths.

/// Path whose parts that are numbers, or long and hexadecimal as those of a UUID, are `{id}`: each name of a step has
/// histograms of its own.
pub(super) fn without_ids(path: &str) -> String {
    let is_id = |part: &str| {
        let digits = part.bytes().filter(u8::is_ascii_digit).count();
        let is_number = digits > 0 && digits == part.len();
        let is_hex = part.len() >= 16 && digits > 0 && part.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
        is_number || is_hex
    };
    path.split('/').map(|part| if is_id(part) { "{id}" } else { part }).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_uuids_in_paths_are_ids() {
        for (path, name) in [
            ("/u/17/x", "/u/{id}/x"),
            ("/u/123e4567-e89b-12d3-a456-426614174000", "/u/{id}"),
            ("/v1/items", "/v1/items"),
            ("/", "/"),
            ("/facade-feedface-deadbeef", "/facade-feedface-deadbeef"),
        ] {
            assert_eq!(without_ids(path), name);
        }
    }
}
