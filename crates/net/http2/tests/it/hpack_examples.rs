//! The examples of RFC 7541 Appendix C, both ways.

use weir_http2::hpack::{FieldSink, HpackDecoder, HpackEncoder, IndexingPolicy, LiteralKind};

#[derive(Default)]
pub(crate) struct Fields(pub(crate) Vec<(Vec<u8>, Vec<u8>)>);

impl FieldSink for Fields {
    fn field(&mut self, name: &[u8], value: &[u8], _is_inserted: bool) {
        self.0.push((name.to_vec(), value.to_vec()));
    }
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pairs = digits.chunks(2).map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap());
    pairs.collect()
}

type Field = (&'static str, &'static str);

fn owned(fields: &[Field]) -> Vec<(Vec<u8>, Vec<u8>)> {
    fields.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec())).collect()
}

/// Blocks of one connection: fields, with and without Huffman codes, and the size of the table behind.
type Example = (&'static [Field], &'static str, &'static str, usize);

const REQUESTS: [Example; 3] = [
    (
        &[(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "www.example.com")],
        "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
        57,
    ),
    (
        &[
            (":method", "GET"),
            (":scheme", "http"),
            (":path", "/"),
            (":authority", "www.example.com"),
            ("cache-control", "no-cache"),
        ],
        "8286 84be 5808 6e6f 2d63 6163 6865",
        "8286 84be 5886 a8eb 1064 9cbf",
        110,
    ),
    (
        &[
            (":method", "GET"),
            (":scheme", "https"),
            (":path", "/index.html"),
            (":authority", "www.example.com"),
            ("custom-key", "custom-value"),
        ],
        "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
        "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
        164,
    ),
];

const RESPONSES: [Example; 3] = [
    (
        &[
            (":status", "302"),
            ("cache-control", "private"),
            ("date", "Mon, 21 Oct 2013 20:13:21 GMT"),
            ("location", "https://www.example.com"),
        ],
        "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120 \
         474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 \
         63c7 8f0b 97c8 e9ae 82ae 43d3",
        222,
    ),
    (
        &[
            (":status", "307"),
            ("cache-control", "private"),
            ("date", "Mon, 21 Oct 2013 20:13:21 GMT"),
            ("location", "https://www.example.com"),
        ],
        "4803 3330 37c1 c0bf",
        "4883 640e ffc1 c0bf",
        222,
    ),
    (
        &[
            (":status", "200"),
            ("cache-control", "private"),
            ("date", "Mon, 21 Oct 2013 20:13:22 GMT"),
            ("location", "https://www.example.com"),
            ("content-encoding", "gzip"),
            ("set-cookie", "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1"),
        ],
        "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 7738 \
         666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 \
         3630 303b 2076 6572 7369 6f6e 3d31",
        "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 \
         b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
        215,
    ),
];

/// Encodes and decodes the examples in order, with tables of this size.
fn check(examples: &[Example], with_huffman: bool, table_size: usize) {
    let mut encoder = HpackEncoder::new(table_size, IndexingPolicy::All);
    if !with_huffman {
        encoder = encoder.without_huffman();
    }
    let mut decoder = HpackDecoder::default();
    // The size of the table precedes the examples.
    let mut resize = Vec::new();
    encoder.begin(&mut resize);
    decoder.decode(&resize, &mut Fields::default()).unwrap();
    for (fields, plain, huffman, size) in examples {
        let expected = bytes(if with_huffman { huffman } else { plain });
        let mut block = Vec::new();
        encoder.begin(&mut block);
        for (name, value) in *fields {
            encoder.field(name.as_bytes(), value.as_bytes(), &mut block);
        }
        assert_eq!(block, expected);
        let mut decoded = Fields::default();
        decoder.decode(&expected, &mut decoded).unwrap();
        assert_eq!(decoded.0, owned(fields));
        assert_eq!((encoder.table().size(), decoder.table().size()), (*size, *size));
    }
}

#[test]
fn single_fields_are_those_of_appendix_c_2() {
    let cases = [
        (
            LiteralKind::Indexed,
            "custom-key",
            "custom-header",
            "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
            55,
        ),
        (LiteralKind::Plain, ":path", "/sample/path", "040c 2f73 616d 706c 652f 7061 7468", 0),
        (LiteralKind::Never, "password", "secret", "1008 7061 7373 776f 7264 0673 6563 7265 74", 0),
    ];
    for (kind, name, value, hex, size) in cases {
        let mut encoder = HpackEncoder::default().without_huffman();
        let mut block = Vec::new();
        encoder.literal(kind, name.as_bytes(), value.as_bytes(), &mut block);
        assert_eq!(block, bytes(hex));
        let mut decoder = HpackDecoder::default();
        let mut fields = Fields::default();
        decoder.decode(&block, &mut fields).unwrap();
        assert_eq!(fields.0, [(name.as_bytes().to_vec(), value.as_bytes().to_vec())]);
        assert_eq!((encoder.table().size(), decoder.table().size()), (size, size));
    }
    let mut block = Vec::new();
    HpackEncoder::default().field(b":method", b"GET", &mut block);
    assert_eq!(block, [0x82]);
}

#[test]
fn requests_are_those_of_appendix_c_3_and_c_4() {
    check(&REQUESTS, false, 4096);
    check(&REQUESTS, true, 4096);
}

#[test]
fn responses_with_evictions_are_those_of_appendix_c_5_and_c_6() {
    check(&RESPONSES, false, 256);
    check(&RESPONSES, true, 256);
}
