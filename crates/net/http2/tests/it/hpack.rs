//! Properties of encoder and decoder together, and blocks that do not decode.

use proptest::prelude::*;
use weir_http2::hpack::{HpackDecoder, HpackEncoder, HpackError, IndexingPolicy};

use super::hpack_examples::Fields;

/// Something that happens between two ends of a connection.
#[derive(Clone, Debug)]
enum Action {
    /// A block, with names and values of which many repeat.
    Block(Vec<(Vec<u8>, Vec<u8>)>),
    /// A new maximum size of the table.
    Limit(usize),
}

fn text() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        3 => prop::sample::select(vec!["accept", "x-a", "x-b", "cookie", "authorization", ":path", "/", "200", "", "date"])
            .prop_map(|text| text.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..60),
        1 => "[a-z]{0,300}".prop_map(String::into_bytes),
    ]
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let action = prop_oneof![
        4 => prop::collection::vec((text(), text()), 0..12).prop_map(Action::Block),
        1 => prop_oneof![Just(0), 0_usize..200, 0_usize..10_000].prop_map(Action::Limit),
    ];
    prop::collection::vec(action, 0..30)
}

proptest! {
    #[test]
    fn fields_are_decoded_as_they_were_encoded_whatever_the_sizes_of_tables(
        actions in actions(),
        own_max in prop_oneof![Just(4096_usize), 0_usize..5000],
        all: bool,
        huffman: bool,
    ) {
        let policy = if all { IndexingPolicy::All } else { IndexingPolicy::Repeated };
        let mut encoder = HpackEncoder::new(own_max, policy);
        if !huffman {
            encoder = encoder.without_huffman();
        }
        let mut decoder = HpackDecoder::default();
        for action in actions {
            match action {
                Action::Limit(size) => {
                    // The decoder's setting, acknowledged at once.
                    encoder.limit_table(size);
                    decoder.limit_table(size);
                }
                Action::Block(fields) => {
                    let mut block = Vec::new();
                    encoder.begin(&mut block);
                    for (name, value) in &fields {
                        encoder.field(name, value, &mut block);
                    }
                    let mut decoded = Fields::default();
                    prop_assert!(decoder.decode(&block, &mut decoded).is_ok());
                    prop_assert_eq!(decoded.0, fields.clone());
                    prop_assert_eq!(encoder.table().size(), decoder.table().size());
                    prop_assert_eq!(encoder.table().len(), decoder.table().len());
                    if encoder.is_stable() {
                        let mut again = Vec::new();
                        encoder.begin(&mut again);
                        fields.iter().for_each(|(name, value)| encoder.field(name, value, &mut again));
                        prop_assert_eq!(again, block);
                        prop_assert!(encoder.is_stable());
                    }
                }
            }
        }
    }

    #[test]
    fn no_bytes_panic_or_grow_the_table_beyond_its_size(blocks in prop::collection::vec(any::<Vec<u8>>(), 0..10)) {
        let mut decoder = HpackDecoder::default();
        for block in blocks {
            if decoder.decode(&block, &mut Fields::default()).is_err() {
                break;
            }
            prop_assert!(decoder.table().size() <= decoder.table().max_size());
            prop_assert!(decoder.table().max_size() <= 4096);
        }
    }
}

#[test]
fn blocks_that_do_not_decode_have_a_reason() {
    let cases: [(&[u8], HpackError); 14] = [
        (&[0x80], HpackError::InvalidIndex),
        (&[0xbe], HpackError::InvalidIndex),
        (&[0x7f, 0x00, 0x00], HpackError::InvalidIndex),
        (&[0xff], HpackError::Truncated),
        (&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], HpackError::IntegerOverflow),
        (&[0x00], HpackError::Truncated),
        (&[0x00, 0x02, b'a'], HpackError::Truncated),
        (&[0x00, 0x01, b'a'], HpackError::Truncated),
        (&[0x00, 0x01, b'a', 0x7f], HpackError::Truncated),
        (&[0x00, 0x81, 0x00, 0x00], HpackError::InvalidHuffman),
        (&[0x3f, 0xe2, 0x1f], HpackError::TableTooLarge),
        (&[0x88, 0x20], HpackError::MisplacedResize),
        (&[0x20, 0x20, 0x20], HpackError::MisplacedResize),
        (&[0x3f], HpackError::Truncated),
    ];
    for (block, error) in cases {
        assert_eq!(HpackDecoder::default().decode(block, &mut Fields::default()), Err(error), "{block:x?}");
    }
}

#[test]
fn a_smaller_setting_has_to_be_followed_by_a_resize() {
    let mut decoder = HpackDecoder::new(100);
    let mut fields = Fields::default();
    // Until it is acknowledged, the default holds.
    decoder.decode(&[0x88], &mut fields).unwrap();
    decoder.limit_table(100);
    assert!(!decoder.can_repeat());
    assert_eq!(decoder.decode(&[0x88], &mut fields), Err(HpackError::MisplacedResize));
    let mut decoder = HpackDecoder::new(100);
    decoder.limit_table(100);
    decoder.decode(&[0x3f, 0x45, 0x88], &mut fields).unwrap();
    assert_eq!(decoder.table().max_size(), 100);
    assert_eq!(decoder.decode(&[0x3f, 0x46], &mut fields), Err(HpackError::TableTooLarge));
}

#[test]
fn secrets_are_never_inserted() {
    for policy in [IndexingPolicy::All, IndexingPolicy::Repeated] {
        let mut encoder = HpackEncoder::new(4096, policy);
        for _ in 0..3 {
            let mut block = Vec::new();
            encoder.begin(&mut block);
            encoder.field(b"authorization", b"Bearer of a token that is long enough", &mut block);
            encoder.field(b"cookie", b"session=7", &mut block);
            assert_eq!(block[0] & 0xf0, 0x10);
            assert!(encoder.table().is_empty() && encoder.is_stable());
        }
    }
}
