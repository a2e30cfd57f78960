//! Plays the published vectors of HPACK (github.com/http2jp/hpack-test-case), both ways: each block of each
//! implementation decodes to its fields, and the same fields encoded here decode to themselves.
//!
//! ```console
//! $ cargo run --release -p weir-http2 --example hpack_vectors -- FOLDER
//! ```
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "it reads files")]
#![allow(clippy::print_stdout, reason = "its result")]

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use weir_http2::hpack::{FieldSink, HpackDecoder, HpackEncoder, IndexingPolicy};

/// A file of vectors: blocks of one connection, in order.
#[derive(Deserialize)]
struct Story {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    /// The block in hexadecimal digits; missing in the raw data.
    wire: Option<String>,
    headers: Vec<BTreeMap<String, String>>,
    header_table_size: Option<usize>,
}

#[derive(Default)]
struct Fields(Vec<(Vec<u8>, Vec<u8>)>);

impl FieldSink for Fields {
    fn field(&mut self, name: &[u8], value: &[u8], _: bool) {
        self.0.push((name.to_vec(), value.to_vec()));
    }
}

/// Number of blocks that were right, and of all.
#[derive(Clone, Copy, Default)]
struct Count {
    right: u64,
    all: u64,
}

impl Count {
    fn add(&mut self, is_right: bool) {
        self.right += u64::from(is_right);
        self.all += 1;
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("give the folder of the vectors")?;
    let mut is_right = true;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if !path.join("story_00.json").exists() {
            continue;
        }
        let (decoded, encoded) = play(&path)?;
        is_right &= decoded.right == decoded.all && encoded.right == encoded.all;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        println!(
            "{name:35} decoded {} of {}, encoded {} of {}",
            decoded.right, decoded.all, encoded.right, encoded.all
        );
    }
    if is_right { Ok(()) } else { Err("some blocks differ".into()) }
}

fn play(folder: &Path) -> Result<(Count, Count), Box<dyn Error>> {
    let (mut decoded, mut encoded) = (Count::default(), Count::default());
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let story: Story = serde_json::from_slice(&fs::read(&path)?)?;
        let largest = story.cases.iter().filter_map(|case| case.header_table_size).max().unwrap_or(4096);
        let mut theirs = HpackDecoder::new(largest);
        let mut encoder = HpackEncoder::new(4096, IndexingPolicy::default());
        let mut ours = HpackDecoder::new(4096);
        for case in &story.cases {
            let headers = case.headers.iter().flatten();
            let headers: Vec<_> =
                headers.map(|(name, value)| (name.clone().into_bytes(), value.clone().into_bytes())).collect();
            if let Some(wire) = &case.wire {
                let mut fields = Fields::default();
                let is_valid = theirs.decode(&bytes(wire)?, &mut fields).is_ok();
                decoded.add(is_valid && fields.0 == headers);
            }
            let mut block = Vec::new();
            encoder.begin(&mut block);
            headers.iter().for_each(|(name, value)| encoder.field(name, value, &mut block));
            let mut fields = Fields::default();
            let is_valid = ours.decode(&block, &mut fields).is_ok();
            encoded.add(is_valid && fields.0 == headers && ours.table().size() == encoder.table().size());
        }
    }
    Ok((decoded, encoded))
}

fn bytes(digits: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| Ok(u8::from_str_radix(std::str::from_utf8(pair)?, 16)?)).collect()
}
