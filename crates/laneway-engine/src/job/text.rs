//! Opaque texts that carry numbers: a version, variable-length numbers, bytes, and a checksum, as base64 for URLs.
//!
//! The checksum is no secret. It makes a mistyped or cut text an error instead of another place.

use bytes::{Buf, Bytes};
use xxhash_rust::xxh3::xxh3_64;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const CHECK_BYTES: usize = 4;

/// A text being written.
#[derive(Debug)]
pub(super) struct Writer(Vec<u8>);

impl Writer {
    pub(super) fn new(version: u8) -> Self {
        Self(vec![version])
    }

    /// Seven bits at a time, lowest first.
    pub(super) fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(0x80 | u8::try_from(number & 0x7f).expect("seven bits"));
            number >>= 7;
        }
        self.0.push(u8::try_from(number).expect("seven bits"));
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn text(mut self) -> String {
        let check = xxh3_64(&self.0).to_le_bytes();
        self.0.extend_from_slice(&check[..CHECK_BYTES]);
        encode(&self.0)
    }

    /// A number for what was written so far.
    pub(super) fn hash(&self) -> u64 {
        xxh3_64(&self.0)
    }
}

/// A text being read. Every method answers nothing where the text ends early or makes no sense.
#[derive(Debug)]
pub(super) struct Reader(Bytes);

impl Reader {
    /// Begins to read a text of this version.
    pub(super) fn new(text: &str, version: u8) -> Option<Self> {
        let mut bytes = Bytes::from(decode(text)?);
        let check = bytes.split_off(bytes.len().checked_sub(CHECK_BYTES)?);
        if xxh3_64(&bytes).to_le_bytes()[..CHECK_BYTES] != check[..] {
            return None;
        }
        (bytes.try_get_u8().ok()? == version).then_some(Self(bytes))
    }

    pub(super) fn number(&mut self) -> Option<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.0.try_get_u8().ok()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                return None;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    pub(super) fn small(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }

    pub(super) fn bytes(&mut self) -> Option<Bytes> {
        let length = usize::try_from(self.number()?).ok()?;
        (length <= self.0.len()).then(|| self.0.split_to(length))
    }

    /// Nothing is left.
    pub(super) fn end(&self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}

fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits =
            group.iter().enumerate().fold(0u32, |bits, (at, byte)| bits | u32::from(*byte) << (16 - 8 * at));
        for at in 0..=group.len() {
            let index = usize::try_from(bits >> (18 - 6 * at) & 0x3f).expect("six bits");
            text.push(char::from(ALPHABET[index]));
        }
    }
    text
}

/// Strict: one text for the same bytes, so whatever reads the same is the same.
fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
    for group in text.as_bytes().chunks(4) {
        let mut bits = 0u32;
        for (at, letter) in group.iter().enumerate() {
            let index = ALPHABET.iter().position(|known| known == letter)?;
            bits |= u32::try_from(index).expect("below 64") << (18 - 6 * at);
        }
        let whole = group.len().checked_sub(1).filter(|whole| *whole > 0)?;
        let [_, first, second, third] = bits.to_be_bytes();
        let all = [first, second, third];
        if all[whole..].iter().any(|rest| *rest != 0) {
            return None;
        }
        bytes.extend_from_slice(&all[..whole]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn letters_are_those_of_the_standard() {
        for (bytes, text) in
            [("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("\u{3ff}\u{3bf}", "z7_Ovw")]
        {
            assert_eq!(
                (encode(bytes.as_bytes()).as_str(), decode(text).as_deref()),
                (text, Some(bytes.as_bytes()))
            );
        }
        assert_eq!([decode("Z"), decode("Zh"), decode("Z="), decode("Zm8+")], [None, None, None, None]);
    }

    proptest! {
        #[test]
        fn numbers_and_bytes_are_read_back_and_a_changed_text_is_refused(
            numbers in prop::collection::vec(any::<u64>(), 0..20), tail in prop::collection::vec(any::<u8>(), 0..20),
            at in any::<prop::sample::Index>(), other in 0..64usize
        ) {
            let mut writer = Writer::new(3);
            numbers.iter().for_each(|number| writer.number(*number));
            writer.bytes(&tail);
            let text = writer.text();
            let mut reader = Reader::new(&text, 3).expect("it was written so");
            for number in numbers {
                prop_assert_eq!(reader.number(), Some(number));
            }
            prop_assert_eq!(reader.bytes(), Some(Bytes::from(tail)));
            prop_assert_eq!(reader.end(), Some(()));
            prop_assert!(Reader::new(&text, 4).is_none(), "another version");
            let mut changed = text.clone().into_bytes();
            let at = at.index(changed.len());
            prop_assume!(changed[at] != ALPHABET[other]);
            changed[at] = ALPHABET[other];
            let changed = String::from_utf8(changed).expect("letters");
            prop_assert!(Reader::new(&changed, 3).is_none());
            prop_assert!(Reader::new(&text[..text.len() - 1], 3).is_none());
        }
    }
}
