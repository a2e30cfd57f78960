//! Formats of imported files, and their names.

use std::fmt;

/// File format of the tool that requests are imported from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportKind {
    /// Command lines of cURL.
    Curl,
    /// HTTP Archive, as browsers save it.
    Har,
    /// Collection of Postman, version 2, or one of its environments.
    Postman,
    /// OpenAPI 3 or Swagger 2, as JSON or YAML.
    OpenApi,
    /// `.http` or `.rest`, of the REST Client of Visual Studio Code or of JetBrains.
    Http,
    /// Test plan of JMeter.
    Jmx,
    /// Request of Bruno, one of its environments, or its export as JSON.
    Bruno,
}

impl ImportKind {
    /// All kinds.
    pub const ALL: [Self; 7] =
        [Self::Curl, Self::Har, Self::Postman, Self::OpenApi, Self::Http, Self::Jmx, Self::Bruno];

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Curl => "curl",
            Self::Har => "har",
            Self::Postman => "postman",
            Self::OpenApi => "openapi",
            Self::Http => "http",
            Self::Jmx => "jmx",
            Self::Bruno => "bruno",
        }
    }
}

/// Noun with its article, for messages.
impl fmt::Display for ImportKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Curl => "cURL command lines",
            Self::Har => "a HAR file",
            Self::Postman => "a Postman collection",
            Self::OpenApi => "an OpenAPI description",
            Self::Http => "an .http file",
            Self::Jmx => "a JMeter test plan",
            Self::Bruno => "a Bruno request",
        })
    }
}
