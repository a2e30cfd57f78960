//! AES in the modes of WebCrypto: CBC with padding, CTR and GCM.

use aes::cipher::generic_array::GenericArray;
use aes::cipher::{BlockDecrypt as _, BlockEncrypt as _, KeyInit as _};
use aes::{Aes128, Aes192, Aes256};
use ring::aead::{AES_128_GCM, AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

/// Length of a block, in bytes.
const BLOCK: usize = 16;

/// Mode of the cipher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AesMode {
    Cbc,
    /// With this many bits of the counter block that count.
    Ctr(u32),
    /// With data that is authenticated as well.
    Gcm(Vec<u8>),
}

/// Cipher of a key.
enum BlockCipher {
    Short(Box<Aes128>),
    Middle(Box<Aes192>),
    Long(Box<Aes256>),
}

impl BlockCipher {
    fn new(key: &[u8]) -> Result<Self, String> {
        let wrong = |_| format!("a key of AES has 16, 24 or 32 bytes, and not {}", key.len());
        match key.len() {
            16 => Aes128::new_from_slice(key).map(|key| Self::Short(Box::new(key))).map_err(wrong),
            24 => Aes192::new_from_slice(key).map(|key| Self::Middle(Box::new(key))).map_err(wrong),
            _ => Aes256::new_from_slice(key).map(|key| Self::Long(Box::new(key))).map_err(wrong),
        }
    }

    fn encrypt(&self, block: &mut [u8; BLOCK]) {
        let block = GenericArray::from_mut_slice(block);
        match self {
            Self::Short(key) => key.encrypt_block(block),
            Self::Middle(key) => key.encrypt_block(block),
            Self::Long(key) => key.encrypt_block(block),
        }
    }

    fn decrypt(&self, block: &mut [u8; BLOCK]) {
        let block = GenericArray::from_mut_slice(block);
        match self {
            Self::Short(key) => key.decrypt_block(block),
            Self::Middle(key) => key.decrypt_block(block),
            Self::Long(key) => key.decrypt_block(block),
        }
    }
}

/// Encrypts an input. `iv`: the initialization vector, or the counter block.
///
/// # Errors
/// One line, if a length is wrong.
pub(crate) fn encrypt(mode: &AesMode, key: &[u8], iv: &[u8], mut input: Vec<u8>) -> Result<Vec<u8>, String> {
    match mode {
        AesMode::Cbc => {
            let (cipher, mut last) = (BlockCipher::new(key)?, block_of(iv)?);
            let padding = BLOCK - input.len() % BLOCK;
            input.resize(input.len() + padding, u8::try_from(padding).unwrap_or(0));
            for chunk in input.chunks_exact_mut(BLOCK) {
                last.iter_mut().zip(chunk.iter()).for_each(|(byte, other)| *byte ^= other);
                cipher.encrypt(&mut last);
                chunk.copy_from_slice(&last);
            }
            Ok(input)
        }
        AesMode::Ctr(bits) => counted(key, iv, *bits, input),
        AesMode::Gcm(extra) => {
            let (key, nonce) = (gcm_key(key)?, nonce_of(iv)?);
            let sealed = key.seal_in_place_append_tag(nonce, Aad::from(extra), &mut input);
            sealed.map(|()| input).map_err(|_| "the input is too long for AES-GCM".to_owned())
        }
    }
}

/// Decrypts an input.
///
/// # Errors
/// One line, if a length is wrong, or the input was not encrypted in this way.
pub(crate) fn decrypt(mode: &AesMode, key: &[u8], iv: &[u8], mut input: Vec<u8>) -> Result<Vec<u8>, String> {
    let wrong = "cannot decrypt: other key, vector or data than it was encrypted with";
    match mode {
        AesMode::Cbc => {
            let (cipher, mut last) = (BlockCipher::new(key)?, block_of(iv)?);
            if input.is_empty() || !input.len().is_multiple_of(BLOCK) {
                return Err(wrong.to_owned());
            }
            for chunk in input.chunks_exact_mut(BLOCK) {
                let mut block = [0; BLOCK];
                block.copy_from_slice(chunk);
                let sent = block;
                cipher.decrypt(&mut block);
                chunk.iter_mut().zip(block.iter().zip(last)).for_each(|(byte, (one, other))| *byte = one ^ other);
                last = sent;
            }
            let padding = usize::from(input.last().copied().unwrap_or(0));
            let text = input.len().saturating_sub(padding);
            let is_padded =
                (1..=BLOCK).contains(&padding) && input[text..].iter().all(|byte| usize::from(*byte) == padding);
            if !is_padded {
                return Err(wrong.to_owned());
            }
            input.truncate(text);
            Ok(input)
        }
        AesMode::Ctr(bits) => counted(key, iv, *bits, input),
        AesMode::Gcm(extra) => {
            let (key, nonce) = (gcm_key(key)?, nonce_of(iv)?);
            let opened = key.open_in_place(nonce, Aad::from(extra), &mut input).map(|text| text.len());
            let length = opened.map_err(|_| wrong.to_owned())?;
            input.truncate(length);
            Ok(input)
        }
    }
}

/// Input with the stream of a counter; both ways are the same.
fn counted(key: &[u8], counter: &[u8], bits: u32, mut input: Vec<u8>) -> Result<Vec<u8>, String> {
    let (cipher, first) = (BlockCipher::new(key)?, u128::from_be_bytes(block_of(counter)?));
    if !(1..=128).contains(&bits) {
        return Err(format!("the length of a counter is 1 to 128 bits, and not {bits}"));
    }
    let mask = u128::MAX >> (128 - bits);
    if bits < 64 && (input.len().div_ceil(BLOCK) as u128) > mask + 1 {
        return Err("the counter is too short for the input".to_owned());
    }
    let mut number = first;
    for chunk in input.chunks_mut(BLOCK) {
        let mut block = number.to_be_bytes();
        cipher.encrypt(&mut block);
        chunk.iter_mut().zip(block).for_each(|(byte, other)| *byte ^= other);
        number = (first & !mask) | (number.wrapping_add(1) & mask);
    }
    Ok(input)
}

fn block_of(bytes: &[u8]) -> Result<[u8; BLOCK], String> {
    bytes.try_into().map_err(|_| format!("an initialization vector has {BLOCK} bytes, and not {}", bytes.len()))
}

fn nonce_of(iv: &[u8]) -> Result<Nonce, String> {
    Nonce::try_assume_unique_for_key(iv)
        .map_err(|_| format!("AES-GCM with a vector of {} bytes is not supported; use {NONCE_LEN}", iv.len()))
}

fn gcm_key(key: &[u8]) -> Result<LessSafeKey, String> {
    let kind = if key.len() == 16 { &AES_128_GCM } else { &AES_256_GCM };
    let key = UnboundKey::new(kind, key);
    key.map(LessSafeKey::new)
        .map_err(|_| "AES-GCM with this length of a key is not supported; use 128 or 256 bits".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<char> = hex.chars().collect();
        let pair = |pair: &[char]| pair.iter().fold(0, |sum, digit| sum * 16 + digit.to_digit(16).unwrap_or(0) as u8);
        digits.chunks(2).map(pair).collect()
    }

    /// NIST SP 800-38A, F.2.1 and F.5.1.
    #[test]
    fn ciphers_are_those_of_the_standard() {
        let key = bytes("2b7e151628aed2a6abf7158809cf4f3c");
        let text = bytes("6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51");
        let cbc = encrypt(&AesMode::Cbc, &key, &bytes("000102030405060708090a0b0c0d0e0f"), text.clone());
        let cbc = cbc.expect("valid");
        assert_eq!(cbc[..32], bytes("7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b2")[..]);
        let counter = bytes("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff");
        let ctr = encrypt(&AesMode::Ctr(64), &key, &counter, text).expect("valid");
        assert_eq!(ctr, bytes("874d6191b620e3261bef6864990db6ce9806f66b7970fdff8617187bb9fffdff"));
    }

    #[test]
    fn wrong_lengths_and_other_data_are_rejected() {
        let iv = [0; 16];
        assert!(encrypt(&AesMode::Cbc, &[0; 15], &iv, vec![1]).is_err_and(|why| why.contains("and not 15")));
        assert!(encrypt(&AesMode::Cbc, &[0; 16], &[0; 3], vec![1]).is_err_and(|why| why.contains("and not 3")));
        assert!(encrypt(&AesMode::Gcm(Vec::new()), &[0; 24], &[0; 12], vec![1]).is_err());
        assert!(encrypt(&AesMode::Gcm(Vec::new()), &[0; 16], &[0; 16], vec![1]).is_err());
        assert!(encrypt(&AesMode::Ctr(1), &[0; 16], &iv, vec![0; 48]).is_err());
        assert!(encrypt(&AesMode::Ctr(0), &[0; 16], &iv, vec![1]).is_err());
        assert!(decrypt(&AesMode::Cbc, &[0; 16], &iv, vec![1; 16]).is_err());
        let sealed = encrypt(&AesMode::Gcm(vec![1]), &[0; 16], &[0; 12], vec![1]).expect("valid");
        assert!(decrypt(&AesMode::Gcm(vec![2]), &[0; 16], &[0; 12], sealed).is_err());
    }

    proptest! {
        #[test]
        fn what_was_encrypted_is_decrypted(
            key in proptest::sample::select(vec![16_usize, 24, 32]),
            text in proptest::collection::vec(any::<u8>(), 0..80),
            iv in any::<[u8; 16]>(),
            bits in 4_u32..=128,
        ) {
            let key = vec![7; key];
            for mode in [AesMode::Cbc, AesMode::Ctr(bits), AesMode::Gcm(vec![1, 2])] {
                if key.len() == 24 && matches!(mode, AesMode::Gcm(_)) {
                    continue;
                }
                let iv = if matches!(mode, AesMode::Gcm(_)) { &iv[..12] } else { &iv[..] };
                let made = encrypt(&mode, &key, iv, text.clone()).expect("valid");
                prop_assert_eq!(decrypt(&mode, &key, iv, made).expect("valid"), text.clone());
            }
        }
    }
}
