//! Names of options, and the types of their values.

crate::words::words! {
    /// Option of a request, named as hurl's flag on the command line.
    pub enum OptionName {
        /// Signature of AWS: `provider1:provider2:region:service`.
        AwsSigV4 = "aws-sigv4",
        /// File of certificate authorities.
        CaCert = "cacert",
        /// File of the client's certificate.
        Cert = "cert",
        /// Whether the response may be compressed, and is decompressed.
        Compressed = "compressed",
        /// Timeout of connecting.
        ConnectTimeout = "connect-timeout",
        /// Other address: `host:port:host:port`.
        ConnectTo = "connect-to",
        /// Wait before the request.
        Delay = "delay",
        /// Digest authentication with `user`.
        Digest = "digest",
        /// Whether a status from 400 is an error, after the body is written.
        FailWithBody = "fail-with-body",
        /// Additional header: `name: value`.
        Header = "header",
        /// HTTP/1.0.
        Http10 = "http1.0",
        /// HTTP/1.1.
        Http11 = "http1.1",
        /// HTTP/2.
        Http2 = "http2",
        /// HTTP/2 without an upgrade.
        Http2PriorKnowledge = "http2-prior-knowledge",
        /// HTTP/3.
        Http3 = "http3",
        /// Whether invalid certificates are accepted.
        Insecure = "insecure",
        /// IPv4 only.
        Ipv4 = "ipv4",
        /// IPv6 only.
        Ipv6 = "ipv6",
        /// File of the client's private key.
        Key = "key",
        /// Maximum transfer rate, in bytes per second.
        LimitRate = "limit-rate",
        /// Whether redirects are followed.
        Location = "location",
        /// As `location`, with credentials sent to other hosts too.
        LocationTrusted = "location-trusted",
        /// Maximum number of redirects.
        MaxRedirs = "max-redirs",
        /// Timeout of the request.
        MaxTime = "max-time",
        /// SPNEGO authentication.
        Negotiate = "negotiate",
        /// Whether credentials are read from ~/.netrc.
        Netrc = "netrc",
        /// Other .netrc file.
        NetrcFile = "netrc-file",
        /// As `netrc`; the file may be missing.
        NetrcOptional = "netrc-optional",
        /// Header that is not sent.
        NoHeader = "no-header",
        /// Whether JSONPath results stay lists.
        NoJsonPathCoercion = "no-jsonpath-coercion",
        /// Hosts without a proxy.
        NoProxy = "no-proxy",
        /// NTLM authentication.
        Ntlm = "ntlm",
        /// File for the body.
        Output = "output",
        /// Whether `/../` stays in a path.
        PathAsIs = "path-as-is",
        /// Public key that the server must have.
        PinnedPubKey = "pinnedpubkey",
        /// Address of a proxy.
        Proxy = "proxy",
        /// Number of times that the entry is run.
        Repeat = "repeat",
        /// Address of a host: `host:port:address`.
        Resolve = "resolve",
        /// Maximum number of retries of a failed entry.
        Retry = "retry",
        /// Time between retries.
        RetryInterval = "retry-interval",
        /// Whether the entry is skipped.
        Skip = "skip",
        /// Maximum version of TLS.
        TlsMax = "tls-max",
        /// Minimum version of TLS.
        TlsMin = "tls-min",
        /// Socket to connect to.
        UnixSocket = "unix-socket",
        /// Credentials: `user:password`.
        User = "user",
        /// Variable that is set before the request.
        Variable = "variable",
        /// Whether the request is logged.
        Verbose = "verbose",
        /// Detail of the log.
        Verbosity = "verbosity",
        /// Whether bodies are logged too.
        VeryVerbose = "very-verbose",
    }
}

/// Type of an option's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OptionType {
    Flag,
    Count,
    Natural,
    Duration,
    Text,
    File,
    Certificate,
    Variable,
    Verbosity,
}

impl OptionName {
    pub(crate) fn value_type(self) -> OptionType {
        match self {
            Self::Compressed
            | Self::Digest
            | Self::FailWithBody
            | Self::Http10
            | Self::Http11
            | Self::Http2
            | Self::Http2PriorKnowledge
            | Self::Http3
            | Self::Insecure
            | Self::Ipv4
            | Self::Ipv6
            | Self::Location
            | Self::LocationTrusted
            | Self::Negotiate
            | Self::Netrc
            | Self::NetrcOptional
            | Self::NoJsonPathCoercion
            | Self::Ntlm
            | Self::PathAsIs
            | Self::Skip
            | Self::Verbose
            | Self::VeryVerbose => OptionType::Flag,
            Self::MaxRedirs | Self::Repeat | Self::Retry => OptionType::Count,
            Self::LimitRate => OptionType::Natural,
            Self::ConnectTimeout | Self::Delay | Self::MaxTime | Self::RetryInterval => OptionType::Duration,
            Self::AwsSigV4
            | Self::ConnectTo
            | Self::Header
            | Self::NetrcFile
            | Self::NoHeader
            | Self::NoProxy
            | Self::PinnedPubKey
            | Self::Proxy
            | Self::Resolve
            | Self::TlsMax
            | Self::TlsMin
            | Self::UnixSocket
            | Self::User => OptionType::Text,
            Self::CaCert | Self::Key | Self::Output => OptionType::File,
            Self::Cert => OptionType::Certificate,
            Self::Variable => OptionType::Variable,
            Self::Verbosity => OptionType::Verbosity,
        }
    }
}
