//! Payload of SETTINGS (RFC 9113 section 6.5).

use super::u32_at;

/// Identifier of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettingId(pub u16);

impl SettingId {
    /// Maximum size of the sender's table for decoding fields, in bytes.
    pub const HEADER_TABLE_SIZE: Self = Self(0x1);
    /// Whether push is permitted.
    pub const ENABLE_PUSH: Self = Self(0x2);
    /// Maximum number of streams that the receiver may have open.
    pub const MAX_CONCURRENT_STREAMS: Self = Self(0x3);
    /// Initial window of streams, in bytes.
    pub const INITIAL_WINDOW_SIZE: Self = Self(0x4);
    /// Maximum payload of a frame, in bytes.
    pub const MAX_FRAME_SIZE: Self = Self(0x5);
    /// Advised maximum size of a message's fields, in bytes.
    pub const MAX_HEADER_LIST_SIZE: Self = Self(0x6);
}

/// The settings in a payload, in order; a length that is not a multiple of six is excluded before.
#[derive(Clone, Copy, Debug)]
pub struct SettingsPayload<'a>(pub &'a [u8]);

impl SettingsPayload<'_> {
    /// Bytes of one setting.
    pub const ENTRY_BYTES: usize = 6;

    /// Identifiers and values.
    pub fn entries(&self) -> impl Iterator<Item = (SettingId, u32)> {
        self.0
            .chunks_exact(Self::ENTRY_BYTES)
            .map(|entry| (SettingId(u16::from_be_bytes([entry[0], entry[1]])), u32_at(entry, 2)))
    }

    /// Appends one setting to a payload.
    pub fn push(out: &mut Vec<u8>, id: SettingId, value: u32) {
        out.extend_from_slice(&id.0.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_as_they_were_written() {
        let mut payload = Vec::new();
        SettingsPayload::push(&mut payload, SettingId::INITIAL_WINDOW_SIZE, 65_536);
        SettingsPayload::push(&mut payload, SettingId(0xfff0), u32::MAX);
        let entries: Vec<_> = SettingsPayload(&payload).entries().collect();
        assert_eq!(entries, [(SettingId::INITIAL_WINDOW_SIZE, 65_536), (SettingId(0xfff0), u32::MAX)]);
    }
}
