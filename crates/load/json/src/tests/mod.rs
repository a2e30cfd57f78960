//! Tests of paths: the tables of RFC 9535, and a naive oracle.

mod examples;
mod oracle;
mod scans;
