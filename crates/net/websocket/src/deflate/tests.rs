//! Compression: what is compressed comes back, with and without context, and bombs are bounded.

use super::*;
use proptest::prelude::*;

proptest! {
    #[test]
    fn messages_come_back_as_they_were(
        messages in prop::collection::vec(prop::collection::vec(0u8..4, 0..3000), 1..6),
        keeps_context: bool,
        receiver_keeps: bool,
    ) {
        let (mut deflater, mut inflater) =
            (Deflater::new(keeps_context), Inflater::new(keeps_context || receiver_keeps));
        for message in &messages {
            let mut compressed = Vec::new();
            deflater.deflate(message, &mut compressed);
            prop_assert_eq!(inflater.inflate(&compressed, message.len() as u64).unwrap(), &message[..]);
        }
    }

    #[test]
    fn random_bytes_end_with_data_or_a_violation(bytes: Vec<u8>, max in 0..5000u64) {
        if let Ok(content) = Inflater::new(true).inflate(&bytes, max) {
            prop_assert!(content.len() as u64 <= max);
        }
    }
}

#[test]
fn a_second_message_is_shorter_with_context_alone() {
    let message = "the quick brown fox jumps over the lazy dog, and the dog sleeps on".as_bytes();
    let lengths = |keeps_context| {
        let mut deflater = Deflater::new(keeps_context);
        [(); 2].map(|()| {
            let mut out = Vec::new();
            deflater.deflate(message, &mut out);
            out.len()
        })
    };
    let [first, second] = lengths(true);
    assert!(second < first / 2, "{first} {second}");
    let [first, second] = lengths(false);
    assert_eq!(first, second);
}

#[test]
fn a_bomb_ends_at_the_limit() {
    let mut bomb = Vec::new();
    Deflater::new(false).deflate(&vec![0; 64 << 20], &mut bomb);
    let mut inflater = Inflater::new(false);
    assert_eq!(inflater.inflate(&bomb, 1 << 20), Err(Violation::TooBig(1 << 20)));
    assert!(inflater.content.capacity() < 4 << 20);
}

#[test]
fn examples_of_the_rfc_are_read() {
    // RFC 7692, 7.2.3: "Hello" as one block, without compression, with BFINAL, and twice with shared context.
    let hello = b"Hello";
    for bytes in [
        &[0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00][..],
        &[0x00, 0x05, 0x00, 0xFA, 0xFF, 0x48, 0x65, 0x6C, 0x6C, 0x6F, 0x00],
        &[0xF3, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00, 0x00],
        &[0xF2, 0x48, 0x05, 0x00, 0x00, 0x00, 0xFF, 0xFF, 0xCA, 0xC9, 0xC9, 0x07, 0x00],
    ] {
        assert_eq!(Inflater::new(false).inflate(bytes, 100), Ok(&hello[..]), "{bytes:x?}");
    }
    let mut shared = Inflater::new(true);
    assert_eq!(shared.inflate(&[0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00], 100), Ok(&hello[..]));
    assert_eq!(shared.inflate(&[0xF2, 0x00, 0x11, 0x00, 0x00], 100), Ok(&hello[..]));
}

#[test]
fn a_server_takes_the_first_offer_that_it_can_keep() {
    let none = DeflateAgreement::default();
    for (offers, expected) in [
        ("permessage-deflate", Some("permessage-deflate")),
        ("permessage-deflate; client_max_window_bits", Some("permessage-deflate")),
        ("x-webkit-deflate-frame, permessage-deflate", Some("permessage-deflate")),
        (
            "permessage-deflate; server_max_window_bits=10, permessage-deflate; server_no_context_takeover",
            Some("permessage-deflate; server_no_context_takeover"),
        ),
        ("permessage-deflate; server_max_window_bits=\"15\"", Some("permessage-deflate")),
        ("permessage-deflate; unknown", None),
        ("permessage-deflate; client_max_window_bits; client_max_window_bits", None),
        ("", None),
    ] {
        let found = DeflateAgreement::of_offers(offers, none);
        assert_eq!(found.as_ref().map(|(_, text)| text.as_str()), expected, "{offers}");
    }
}
