//! Points of the sweep: their values, and their names.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::definition_hash::short_hash;

/// Point of the sweep: its parameters in the file's order, each with a value. It has none without a sweep.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StudyPoint(Vec<(String, String)>);

impl StudyPoint {
    /// This point with one more parameter.
    pub(super) fn with(&self, parameter: &str, value: &str) -> Self {
        Self([self.0.as_slice(), &[(parameter.to_owned(), value.to_owned())]].concat())
    }

    /// Parameters and their values.
    pub fn values(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(parameter, value)| (parameter.as_str(), value.as_str()))
    }

    /// Value of a parameter.
    pub fn value(&self, parameter: &str) -> Option<&str> {
        self.values().find(|(name, _)| *name == parameter).map(|(_, value)| value)
    }

    /// Value of the first parameter.
    pub(super) fn first(&self) -> Option<&str> {
        self.values().next().map(|(_, value)| value)
    }

    /// This point without its first parameter.
    pub(super) fn others(&self) -> Self {
        Self(self.0.get(1..).unwrap_or_default().to_vec())
    }

    /// Whether it has no parameter.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Name of its folder: `connections=8,workers=2`; `all` without a sweep.
    pub fn name(&self) -> String {
        if self.is_empty() {
            return "all".to_owned();
        }
        let simple = |value: &str| {
            let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
            let plain = !value.is_empty() && value.len() <= 40 && value.chars().all(fits);
            if plain { value.to_owned() } else { short_hash(value) }
        };
        self.values().map(|(name, value)| format!("{name}={}", simple(value))).collect::<Vec<_>>().join(",")
    }

    /// Its values by parameter.
    pub(super) fn to_json(&self) -> Value {
        self.values()
            .map(|(name, value)| (name.to_owned(), Value::from(value)))
            .collect::<serde_json::Map<_, _>>()
            .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(of: &[(&str, &str)]) -> StudyPoint {
        of.iter().fold(StudyPoint::default(), |point, (name, value)| point.with(name, value))
    }

    #[test]
    fn a_point_is_a_folder_name_without_path_separators() {
        assert_eq!(point(&[]).name(), "all");
        assert_eq!(point(&[("connections", "8"), ("size", "1.5")]).name(), "connections=8,size=1.5");
        let odd = point(&[("path", "../../etc")]).name();
        assert!(!odd.contains('/') && odd.starts_with("path="), "{odd}");
        assert_ne!(odd, point(&[("path", "../../usr")]).name());
    }

    #[test]
    fn a_point_is_saved_as_pairs() {
        let saved = serde_json::json!([["connections", "8"], ["size", "1.5"]]);
        assert_eq!(serde_json::to_value(point(&[("connections", "8"), ("size", "1.5")])).ok(), Some(saved));
    }
}
