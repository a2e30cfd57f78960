//! Styles of parameters: how arrays and objects stand in paths, queries, headers, cookies and forms.

use crate::builder::percent_encoded;
use crate::tree::{SourceNode, SourceValue};

/// Value of a parameter, with the parts that its style separates.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ParameterValue {
    Scalar(String),
    Items(Vec<String>),
    Members(Vec<(String, String)>),
}

impl ParameterValue {
    /// Value of a node; what is within items and members is JSON.
    pub(super) fn of_node(node: &SourceNode<'_>) -> Self {
        let text = |node: &SourceNode<'_>| node.scalar().unwrap_or_else(|| node.to_json());
        match &node.value {
            SourceValue::List(items) => Self::Items(items.iter().map(text).collect()),
            SourceValue::Map(_) => {
                Self::Members(node.members().map(|(name, node)| (name.into_owned(), text(node))).collect())
            }
            SourceValue::Null => Self::Scalar(String::new()),
            _ => Self::Scalar(text(node)),
        }
    }
}

/// Serialization of arrays and objects in a parameter: `style` of OpenAPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParameterStyle {
    Matrix,
    Label,
    Form,
    Simple,
    /// Values between a separator, which is encoded: spaces, bars, tabs.
    Delimited(&'static str),
    DeepObject,
}

/// How a parameter is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ParameterForm {
    pub(super) style: ParameterStyle,
    pub(super) explodes: bool,
    /// Whether reserved characters of URLs stay as they are.
    pub(super) allows_reserved: bool,
    /// Whether values are percent-encoded: those of headers are not.
    pub(super) is_encoded: bool,
}

impl ParameterForm {
    /// Form of a parameter or of a property's `encoding`, at a place: `query`, `path`, `header`, `cookie`.
    ///
    /// # Errors
    /// A style that the place does not have.
    pub(super) fn read(node: &SourceNode<'_>, place: &str) -> Result<Self, String> {
        let is_encoded = place != "header";
        let of = |style, explodes| Self { style, explodes, allows_reserved: node.is_true("allowReserved"), is_encoded };
        if let Some(format) = node.text_of("collectionFormat") {
            return Ok(match format.as_str() {
                "multi" => of(ParameterStyle::Form, true),
                "ssv" => of(ParameterStyle::Delimited("%20"), false),
                "pipes" => of(ParameterStyle::Delimited("%7C"), false),
                "tsv" => of(ParameterStyle::Delimited("%09"), false),
                "csv" => {
                    of(if matches!(place, "query") { ParameterStyle::Form } else { ParameterStyle::Simple }, false)
                }
                other => return Err(format!("collectionFormat {other}")),
            });
        }
        let default = if matches!(place, "path" | "header") { "simple" } else { "form" };
        let name = node.text_of("style").unwrap_or_else(|| default.to_owned());
        let style = match (name.as_str(), place) {
            ("matrix", "path") => ParameterStyle::Matrix,
            ("label", "path") => ParameterStyle::Label,
            ("simple", "path" | "header") => ParameterStyle::Simple,
            ("form", "query" | "cookie") => ParameterStyle::Form,
            ("spaceDelimited", "query") => ParameterStyle::Delimited("%20"),
            ("pipeDelimited", "query") => ParameterStyle::Delimited("%7C"),
            ("deepObject", "query") => ParameterStyle::DeepObject,
            _ => return Err(format!("style {name}")),
        };
        let explodes = node.get("explode").map_or(style == ParameterStyle::Form, |_| node.is_true("explode"));
        Ok(of(style, explodes))
    }

    /// Swagger's form without `collectionFormat`: values between commas.
    pub(super) fn commas(place: &str) -> Self {
        let style = if place == "query" { ParameterStyle::Form } else { ParameterStyle::Simple };
        Self { style, explodes: false, allows_reserved: false, is_encoded: place != "header" }
    }

    /// The default of queries and forms.
    pub(super) fn exploded() -> Self {
        Self { style: ParameterStyle::Form, explodes: true, allows_reserved: false, is_encoded: true }
    }

    fn encoded(&self, text: &str) -> String {
        match (self.is_encoded, self.allows_reserved) {
            (false, _) => text.to_owned(),
            (true, false) => percent_encoded(text),
            // Those that end a parameter or stand for another character are encoded all the same.
            (true, true) => {
                let keep = |c: char| ":/?@!$'()*,;=".contains(c);
                text.split_inclusive(keep)
                    .map(|piece| match piece.chars().next_back().filter(|c| keep(*c)) {
                        Some(last) => percent_encoded(&piece[..piece.len() - last.len_utf8()]) + &last.to_string(),
                        None => percent_encoded(piece),
                    })
                    .collect()
            }
        }
    }

    /// Pairs of names and values, encoded: what a query, a form or a cookie has. Values may have separators.
    pub(super) fn pairs(&self, name: &str, value: &ParameterValue) -> Vec<(String, String)> {
        let own = self.encoded(name);
        let joined = |separator: &str| match value {
            ParameterValue::Scalar(text) => self.encoded(text),
            ParameterValue::Items(items) => {
                items.iter().map(|item| self.encoded(item)).collect::<Vec<_>>().join(separator)
            }
            ParameterValue::Members(members) => {
                let pairs = members.iter().flat_map(|(key, value)| [self.encoded(key), self.encoded(value)]);
                pairs.collect::<Vec<_>>().join(separator)
            }
        };
        match (self.style, value) {
            (ParameterStyle::DeepObject, ParameterValue::Members(members)) => members
                .iter()
                .map(|(key, value)| (format!("{own}%5B{}%5D", self.encoded(key)), self.encoded(value)))
                .collect(),
            (ParameterStyle::Delimited(separator), _) if !self.explodes => vec![(own, joined(separator))],
            // Without an array or an object to separate, and exploded, all are forms.
            (_, ParameterValue::Items(items)) if self.explodes || self.style == ParameterStyle::DeepObject => {
                items.iter().map(|item| (own.clone(), self.encoded(item))).collect()
            }
            (_, ParameterValue::Members(members)) if self.explodes => {
                members.iter().map(|(key, value)| (self.encoded(key), self.encoded(value))).collect()
            }
            _ => vec![(own, joined(","))],
        }
    }

    /// Text of a path or a header.
    pub(super) fn text(&self, name: &str, value: &ParameterValue) -> String {
        let own = self.encoded(name);
        let list = |separator: &str| match value {
            ParameterValue::Scalar(text) => self.encoded(text),
            ParameterValue::Items(items) => {
                items.iter().map(|item| self.encoded(item)).collect::<Vec<_>>().join(separator)
            }
            ParameterValue::Members(members) => {
                let pair = |(key, value): &(String, String)| {
                    format!(
                        "{}{}{}",
                        self.encoded(key),
                        if self.explodes { "=" } else { separator },
                        self.encoded(value)
                    )
                };
                members.iter().map(pair).collect::<Vec<_>>().join(separator)
            }
        };
        match (self.style, value) {
            (ParameterStyle::Label, _) => format!(".{}", list(if self.explodes { "." } else { "," })),
            (ParameterStyle::Matrix, ParameterValue::Items(items)) if self.explodes => {
                items.iter().map(|item| format!(";{own}={}", self.encoded(item))).collect()
            }
            (ParameterStyle::Matrix, ParameterValue::Members(_)) if self.explodes => format!(";{}", list(";")),
            (ParameterStyle::Matrix, ParameterValue::Scalar(text)) if text.is_empty() => format!(";{own}"),
            (ParameterStyle::Matrix, _) => format!(";{own}={}", list(",")),
            (ParameterStyle::Delimited(separator), _) => list(separator),
            _ => list(","),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::parse_json;

    /// The table of OpenAPI 3.1.1, 4.8.12.4: style, explode, and a string, an array and an object of colors.
    const TABLE: &str = "
        matrix false ;color ;color=blue ;color=blue,black,brown ;color=R,100,G,200,B,150
        matrix true ;color ;color=blue ;color=blue;color=black;color=brown ;R=100;G=200;B=150
        label false . .blue .blue,black,brown .R,100,G,200,B,150
        label true . .blue .blue.black.brown .R=100.G=200.B=150
        simple false - blue blue,black,brown R,100,G,200,B,150
        simple true - blue blue,black,brown R=100,G=200,B=150
        form false color= color=blue color=blue,black,brown color=R,100,G,200,B,150
        form true color= color=blue color=blue&color=black&color=brown R=100&G=200&B=150
        spaceDelimited false - - color=blue%20black%20brown color=R%20100%20G%20200%20B%20150
        pipeDelimited false - - color=blue%7Cblack%7Cbrown color=R%7C100%7CG%7C200%7CB%7C150
        deepObject true - - - color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150";

    #[test]
    fn all_styles_are_those_of_the_specification() {
        let scalar = |text: &str| ParameterValue::Scalar(text.to_owned());
        let items = ParameterValue::Items(["blue", "black", "brown"].map(str::to_owned).to_vec());
        let members = [("R", "100"), ("G", "200"), ("B", "150")];
        let members = ParameterValue::Members(members.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec());
        for line in TABLE.lines().filter(|line| !line.trim().is_empty()) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let json = format!("{{\"style\": \"{}\", \"explode\": {}}}", words[0], words[1]);
            let places: &[&str] = match words[0] {
                "matrix" | "label" => &["path"],
                "simple" => &["path", "header"],
                "form" => &["query", "cookie"],
                _ => &["query"],
            };
            for place in places {
                let form = ParameterForm::read(&parse_json(&json).unwrap(), place).unwrap();
                for (expected, value) in words[2..].iter().zip([&scalar(""), &scalar("blue"), &items, &members]) {
                    let made = match *place {
                        "query" | "cookie" => {
                            let pairs = form.pairs("color", value);
                            pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
                        }
                        _ => form.text("color", value),
                    };
                    if *expected != "-" {
                        assert_eq!(made, *expected, "{line} {place}");
                    }
                }
            }
        }
    }

    #[test]
    fn values_are_encoded_and_styles_of_other_places_are_errors() {
        let node = |json: &'static str| parse_json(json).unwrap();
        let form = ParameterForm::read(&node("{\"allowReserved\": true}"), "query").unwrap();
        let value = ParameterValue::Scalar("a/b&c d".into());
        assert_eq!(form.pairs("q", &value), [("q".to_owned(), "a/b%26c%20d".to_owned())]);
        let header = ParameterForm::read(&node("{}"), "header").unwrap();
        assert_eq!(header.text("X", &value), "a/b&c d");
        assert!(ParameterForm::read(&node("{\"style\": \"matrix\"}"), "query").is_err());
        assert!(ParameterForm::read(&node("{\"collectionFormat\": \"x\"}"), "query").is_err());
        let pipes = ParameterForm::read(&node("{\"collectionFormat\": \"pipes\"}"), "query").unwrap();
        let items = ParameterValue::Items(vec!["a".into(), "b".into()]);
        assert_eq!(pipes.pairs("q", &items), [("q".to_owned(), "a%7Cb".to_owned())]);
    }
}
