//! Headers of the PROXY protocol: nothing panics; a header is judged by its own bytes alone, and no part of a valid one
//! is taken for the whole.

use weir_server::ProxyHeader;

crate::target!(|bytes: &[u8]| {
    match ProxyHeader::parse(bytes) {
        ProxyHeader::Incomplete => {}
        invalid @ ProxyHeader::Invalid(_) => {
            assert_eq!(ProxyHeader::parse(&[bytes, b"\r\nGET / HTTP/1.1\r\n"].concat()), invalid, "{bytes:?}");
        }
        ProxyHeader::Complete { length, source } => {
            let header = &bytes[..length];
            assert_eq!(ProxyHeader::parse(header), ProxyHeader::Complete { length, source }, "{bytes:?}");
            for cut in 0..length {
                assert_eq!(ProxyHeader::parse(&header[..cut]), ProxyHeader::Incomplete, "{bytes:?}");
            }
        }
    }
});
