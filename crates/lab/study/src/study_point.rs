//! Name of a point of the sweep.

use serde_json::Value;

use super::definition_hash::short_hash;

/// Folder name of a point: `connections=8,workers=2`; `all` without a sweep.
pub fn point_name(point: &[(String, String)]) -> String {
    if point.is_empty() {
        return "all".to_owned();
    }
    let simple = |value: &str| {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        let plain = !value.is_empty() && value.len() <= 40 && value.chars().all(fits);
        if plain { value.to_owned() } else { short_hash(value) }
    };
    point.iter().map(|(name, value)| format!("{name}={}", simple(value))).collect::<Vec<_>>().join(",")
}

/// Values of a point by parameter.
pub(super) fn point_values(of: &[(String, String)]) -> Value {
    of.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect::<serde_json::Map<_, _>>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(of: &[(&str, &str)]) -> Vec<(String, String)> {
        of.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_point_is_a_folder_name_without_path_separators() {
        assert_eq!(point_name(&[]), "all");
        assert_eq!(point_name(&point(&[("connections", "8"), ("size", "1.5")])), "connections=8,size=1.5");
        let odd = point_name(&point(&[("path", "../../etc")]));
        assert!(!odd.contains('/') && odd.starts_with("path="), "{odd}");
        assert_ne!(odd, point_name(&point(&[("path", "../../usr")])));
    }
}
