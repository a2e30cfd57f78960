//! Flags of cURL.

/// What a flag of cURL means for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CurlFlag {
    Method,
    Header,
    Data,
    DataRaw,
    DataBinary,
    DataUrlEncode,
    Json,
    Form,
    FormString,
    User,
    Bearer,
    Digest,
    Cookie,
    UserAgent,
    Referer,
    Get,
    Head,
    Location,
    LocationTrusted,
    MaxTime,
    MaxRedirects,
    Compressed,
    Upload,
    Url,
    UrlQuery,
    PathAsIs,
    Retry,
    RetryDelay,
    Next,
    /// Output, logs and progress: nothing of the request.
    Quiet,
    /// As `Quiet`, with a value.
    QuietValue,
    /// Of the connection: weir has a flag of the load.
    Connection,
    /// As `Connection`, with a value.
    ConnectionValue,
}

impl CurlFlag {
    pub(super) fn takes_value(self) -> bool {
        !matches!(
            self,
            Self::Digest
                | Self::Get
                | Self::Head
                | Self::Location
                | Self::LocationTrusted
                | Self::Compressed
                | Self::PathAsIs
                | Self::Next
                | Self::Quiet
                | Self::Connection
        )
    }
}

/// Flag of a long name.
pub(super) fn long_flag(name: &str) -> Option<CurlFlag> {
    Some(match name {
        "request" => CurlFlag::Method,
        "header" => CurlFlag::Header,
        "data" | "data-ascii" => CurlFlag::Data,
        "data-raw" => CurlFlag::DataRaw,
        "data-binary" => CurlFlag::DataBinary,
        "data-urlencode" => CurlFlag::DataUrlEncode,
        "json" => CurlFlag::Json,
        "form" => CurlFlag::Form,
        "form-string" => CurlFlag::FormString,
        "user" => CurlFlag::User,
        "oauth2-bearer" => CurlFlag::Bearer,
        "digest" => CurlFlag::Digest,
        "cookie" => CurlFlag::Cookie,
        "user-agent" => CurlFlag::UserAgent,
        "referer" => CurlFlag::Referer,
        "get" => CurlFlag::Get,
        "head" => CurlFlag::Head,
        "location" => CurlFlag::Location,
        "location-trusted" => CurlFlag::LocationTrusted,
        "max-time" => CurlFlag::MaxTime,
        "max-redirs" => CurlFlag::MaxRedirects,
        "compressed" => CurlFlag::Compressed,
        "upload-file" => CurlFlag::Upload,
        "url" => CurlFlag::Url,
        "url-query" => CurlFlag::UrlQuery,
        "path-as-is" => CurlFlag::PathAsIs,
        "retry" => CurlFlag::Retry,
        "retry-delay" => CurlFlag::RetryDelay,
        "next" => CurlFlag::Next,
        "silent"
        | "show-error"
        | "verbose"
        | "include"
        | "fail"
        | "fail-with-body"
        | "fail-early"
        | "no-buffer"
        | "progress-bar"
        | "no-progress-meter"
        | "remote-name"
        | "remote-name-all"
        | "remote-header-name"
        | "raw"
        | "globoff"
        | "basic"
        | "create-dirs"
        | "show-headers"
        | "retry-connrefused"
        | "retry-all-errors"
        | "disable"
        | "no-keepalive"
        | "junk-session-cookies"
        | "parallel"
        | "styled-output"
        | "http1.1" => CurlFlag::Quiet,
        "output" | "output-dir" | "write-out" | "dump-header" | "cookie-jar" | "stderr" | "trace" | "trace-ascii"
        | "retry-max-time" | "limit-rate" | "speed-limit" | "speed-time" | "parallel-max" => CurlFlag::QuietValue,
        "insecure"
        | "http1.0"
        | "http2"
        | "http2-prior-knowledge"
        | "http3"
        | "ipv4"
        | "ipv6"
        | "tlsv1"
        | "tlsv1.0"
        | "tlsv1.1"
        | "tlsv1.2"
        | "tlsv1.3"
        | "ssl"
        | "ssl-reqd"
        | "sslv3"
        | "anyauth"
        | "ntlm"
        | "negotiate"
        | "netrc"
        | "proxy-insecure"
        | "tcp-nodelay"
        | "haproxy-protocol" => CurlFlag::Connection,
        "proxy"
        | "proxy-user"
        | "cert"
        | "key"
        | "cacert"
        | "capath"
        | "pass"
        | "cert-type"
        | "key-type"
        | "resolve"
        | "connect-to"
        | "unix-socket"
        | "abstract-unix-socket"
        | "connect-timeout"
        | "interface"
        | "socks5"
        | "socks5-hostname"
        | "noproxy"
        | "ciphers"
        | "tls-max"
        | "aws-sigv4"
        | "netrc-file"
        | "keepalive-time"
        | "dns-servers"
        | "range"
        | "config"
        | "time-cond"
        | "proto"
        | "proto-default"
        | "pinnedpubkey"
        | "request-target"
        | "max-filesize" => CurlFlag::ConnectionValue,
        _ => return None,
    })
}

/// Long name of a flag of one letter.
pub(super) fn long_name(letter: char) -> Option<&'static str> {
    Some(match letter {
        'X' => "request",
        'H' => "header",
        'd' => "data",
        'F' => "form",
        'u' => "user",
        'b' => "cookie",
        'A' => "user-agent",
        'e' => "referer",
        'G' => "get",
        'I' => "head",
        'L' => "location",
        'm' => "max-time",
        'T' => "upload-file",
        's' => "silent",
        'S' => "show-error",
        'v' => "verbose",
        'i' => "include",
        'f' => "fail",
        'N' => "no-buffer",
        '#' => "progress-bar",
        'O' => "remote-name",
        'J' => "remote-header-name",
        'g' => "globoff",
        'q' => "disable",
        'j' => "junk-session-cookies",
        'Z' => "parallel",
        'o' => "output",
        'w' => "write-out",
        'D' => "dump-header",
        'c' => "cookie-jar",
        'k' => "insecure",
        '0' => "http1.0",
        '1' => "tlsv1",
        '4' => "ipv4",
        '6' => "ipv6",
        'n' => "netrc",
        'x' => "proxy",
        'U' => "proxy-user",
        'E' => "cert",
        'r' => "range",
        'K' => "config",
        'z' => "time-cond",
        'y' => "speed-time",
        'Y' => "speed-limit",
        ':' => "next",
        _ => return None,
    })
}
