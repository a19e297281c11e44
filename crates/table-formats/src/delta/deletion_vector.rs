//! Which rows of a file another engine marked as deleted. Source: the Delta protocol, "Deletion Vector Format".

use roaring::{RoaringBitmap, RoaringTreemap};

use crate::{
    contract::Result,
    error::{Error, ErrorKind},
};

/// What the bitmap begins with, in its portable form.
const MAGIC: u32 = 1_681_511_377;
/// Digits of the text form of bytes, Z85.
const DIGITS: &[u8; 85] =
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
/// Length of an encoded UUID.
const UUID: usize = 20;
/// Bytes around the bitmap in a file: its length before it, a checksum behind it.
pub(super) const FRAME: u64 = 4;

/// The path, within the table's folder, that an encoded UUID and an optional prefix before it stand for.
pub(super) fn relative_path(text: &str) -> Result<String> {
    let at = text.len().checked_sub(UUID).filter(|at| text.is_char_boundary(*at));
    let (prefix, encoded) = at.map(|at| text.split_at(at)).ok_or_else(|| corrupt("has no name"))?;
    let uuid = uuid::Uuid::from_slice(&decoded(encoded)?).map_err(|e| corrupt("has no name").because(e))?;
    let folder = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
    Ok(format!("{folder}deletion_vector_{uuid}.bin"))
}

/// Bytes from their text form.
pub(super) fn decoded(text: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 5 * 4);
    for group in text.as_bytes().chunks(5) {
        let mut value: u32 = 0;
        for digit in group {
            let digit = DIGITS.iter().position(|d| d == digit).and_then(|d| u32::try_from(d).ok());
            let next = digit.and_then(|digit| value.checked_mul(85)?.checked_add(digit));
            value = next.ok_or_else(|| corrupt("has text that stands for no bytes"))?;
        }
        if group.len() != 5 {
            return Err(corrupt("has text that is cut off"));
        }
        bytes.extend(value.to_be_bytes());
    }
    Ok(bytes)
}

/// The bitmap in a piece of a file that holds its length, it, and more.
pub(super) fn framed(bytes: &[u8], size: u64) -> Result<RoaringBitmap> {
    let (length, rest) = bytes.split_first_chunk().ok_or_else(|| corrupt("is cut off"))?;
    if u64::from(u32::from_be_bytes(*length)) != size {
        return Err(corrupt("has another length than the log says"));
    }
    let bitmap = usize::try_from(size).ok().and_then(|size| rest.get(..size));
    plain(bitmap.ok_or_else(|| corrupt("is cut off"))?)
}

/// The bitmap in these bytes.
pub(super) fn plain(bytes: &[u8]) -> Result<RoaringBitmap> {
    let (magic, rest) = bytes.split_first_chunk().ok_or_else(|| corrupt("is cut off"))?;
    if u32::from_le_bytes(*magic) != MAGIC {
        return Err(Error::new(
            ErrorKind::Unsupported,
            "a deletion vector has an encoding that is not known",
        ));
    }
    let all = RoaringTreemap::deserialize_from(rest).map_err(|e| corrupt("can't be read").because(e))?;
    let mut positions = RoaringBitmap::new();
    for (high, bitmap) in all.bitmaps() {
        if high > 0 {
            return Err(Error::new(ErrorKind::Unsupported, "a file of over 4 billion rows"));
        }
        positions |= bitmap;
    }
    Ok(positions)
}

fn corrupt(what: &str) -> Error {
    Error::new(ErrorKind::Corrupt, format!("a deletion vector {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_bytes_are_decoded_as_the_protocol_says() {
        // The protocol's own example of a name.
        let path = relative_path("ab^-aqEH.-t@S}K{vb[*k^").unwrap();
        assert_eq!(path, "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin");
        assert_eq!(decoded("HelloWorld").unwrap(), [0x86, 0x4f, 0xd2, 0x6f, 0xb5, 0x59, 0xf7, 0x5b]);
        for wrong in ["", "short", "\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}x"] {
            assert_eq!(relative_path(wrong).unwrap_err().kind(), ErrorKind::Corrupt, "{wrong}");
        }
        assert!(decoded("#####").is_err() && decoded("abcd").is_err());
    }

    #[test]
    fn bitmaps_come_back_and_altered_ones_are_errors() {
        let rows = RoaringTreemap::from_iter([1, 5, 70_000]);
        let mut bytes = MAGIC.to_le_bytes().to_vec();
        rows.serialize_into(&mut bytes).unwrap();
        assert_eq!(plain(&bytes).unwrap(), RoaringBitmap::from_iter([1, 5, 70_000]));
        let mut file = u32::try_from(bytes.len()).unwrap().to_be_bytes().to_vec();
        file.extend(&bytes);
        assert_eq!(framed(&file, bytes.len() as u64).unwrap().len(), 3);
        assert!(framed(&file, 3).is_err());
        for cut in 0..bytes.len() {
            assert!(plain(&bytes[..cut]).is_err(), "cut at {cut}");
        }
        let far = RoaringTreemap::from_iter([1 << 40]);
        let mut bytes = MAGIC.to_le_bytes().to_vec();
        far.serialize_into(&mut bytes).unwrap();
        assert_eq!(plain(&bytes).unwrap_err().kind(), ErrorKind::Unsupported);
    }
}
