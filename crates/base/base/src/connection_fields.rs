//! Fields of HTTP that belong to a connection, or frame a body.

/// Names of the fields that a client or proxy writes itself for each of its connections, in lower case.
pub const CONNECTION_FIELDS: [&str; 9] = [
    "connection",
    "content-length",
    "expect",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
