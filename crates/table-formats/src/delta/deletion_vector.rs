//! Which rows of a file don't count, in bytes. Source: the Delta protocol, "Deletion Vector Format" and "Deletion Vector File
//! Storage Format".
//!
//! A bitmap is a magic number and Roaring's portable form for 64 bits. In a file of bitmaps each has its length before it and
//! a checksum behind it, and the file begins with the version of this layout.

use roaring::{RoaringBitmap, RoaringTreemap};
use uuid::Uuid;

use super::{crc32, z85};
use crate::{
    contract::Result,
    error::{Error, ErrorKind},
};

/// What a file of bitmaps begins with.
pub(super) const LAYOUT: u8 = 1;
/// What the bitmap begins with, in its portable form.
const MAGIC: u32 = 1_681_511_377;
/// Length of an encoded UUID.
const UUID: usize = 20;
/// Bytes around the bitmap in a file: its length before it, a checksum behind it.
pub(super) const FRAME: u64 = 8;
/// How a file of bitmaps is called, around its UUID.
const NAME: (&str, &str) = ("deletion_vector_", ".bin");

/// The name of a file of bitmaps.
pub(super) fn file_name(uuid: Uuid) -> String {
    format!("{}{uuid}{}", NAME.0, NAME.1)
}

/// The path, within the table's folder, that an encoded UUID and an optional prefix before it stand for.
pub(super) fn relative_path(text: &str) -> Result<String> {
    let at = text.len().checked_sub(UUID).filter(|at| text.is_char_boundary(*at));
    let (prefix, encoded) = at.map(|at| text.split_at(at)).ok_or_else(|| corrupt("has no name"))?;
    let uuid = Uuid::from_slice(&z85::decoded(encoded)?).map_err(|e| corrupt("has no name").because(e))?;
    let folder = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
    Ok(format!("{folder}{}", file_name(uuid)))
}

/// What [`relative_path`] gives the path of.
pub(super) fn path_text(path: &str) -> Result<String> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let uuid = name.strip_prefix(NAME.0).and_then(|name| name.strip_suffix(NAME.1));
    let uuid = uuid.and_then(|uuid| Uuid::try_parse(uuid).ok()).ok_or_else(|| corrupt("has no name"))?;
    Ok(format!("{folder}{}", z85::encoded(uuid.as_bytes())))
}

/// The bitmap in a piece of a file that holds its length, it, and its checksum.
pub(super) fn framed(bytes: &[u8], size: u64) -> Result<RoaringBitmap> {
    let (length, rest) = bytes.split_first_chunk().ok_or_else(|| corrupt("is cut off"))?;
    if u64::from(u32::from_be_bytes(*length)) != size {
        return Err(corrupt("has another length than the log says"));
    }
    let parts = usize::try_from(size).ok().and_then(|size| rest.split_at_checked(size));
    let (bitmap, sum) = parts.ok_or_else(|| corrupt("is cut off"))?;
    let sum = sum.first_chunk().ok_or_else(|| corrupt("is cut off"))?;
    if u32::from_be_bytes(*sum) != crc32::of(bitmap) {
        return Err(corrupt("was altered: its checksum is another one"));
    }
    plain(bitmap)
}

/// A bitmap with its length and its checksum.
pub(super) fn frame(bitmap: &[u8]) -> Result<Vec<u8>> {
    let length = i32::try_from(bitmap.len())
        .map_err(|e| Error::new(ErrorKind::Unsupported, "too many rows of a file are deleted").because(e))?;
    let mut bytes = length.to_be_bytes().to_vec();
    bytes.extend(bitmap);
    bytes.extend(crc32::of(bitmap).to_be_bytes());
    Ok(bytes)
}

/// The bitmap in these bytes.
pub(super) fn plain(bytes: &[u8]) -> Result<RoaringBitmap> {
    let mut positions = RoaringBitmap::new();
    for (high, bitmap) in treemap(bytes)?.bitmaps() {
        if high > 0 {
            return Err(Error::new(ErrorKind::Unsupported, "a file of over 4 billion rows"));
        }
        positions |= bitmap;
    }
    Ok(positions)
}

fn treemap(bytes: &[u8]) -> Result<RoaringTreemap> {
    let (magic, rest) = bytes.split_first_chunk().ok_or_else(|| corrupt("is cut off"))?;
    if u32::from_le_bytes(*magic) != MAGIC {
        return Err(Error::new(
            ErrorKind::Unsupported,
            "a deletion vector has an encoding that is not known",
        ));
    }
    RoaringTreemap::deserialize_from(rest).map_err(|e| corrupt("can't be read").because(e))
}

/// The bytes of a bitmap.
pub(super) fn to_plain(positions: &RoaringBitmap) -> Result<Vec<u8>> {
    let all = RoaringTreemap::from_bitmaps([(0, positions.clone())]);
    let mut bytes = MAGIC.to_le_bytes().to_vec();
    all.serialize_into(&mut bytes)
        .map_err(|e| Error::new(ErrorKind::Internal, "a deletion vector can't be written").because(e))?;
    Ok(bytes)
}

/// How many of these bytes are the bitmap: text holds four at a time, and fills up with zeros.
pub(super) fn plain_size(bytes: &[u8]) -> usize {
    let size = treemap(bytes).map_or(bytes.len(), |all| all.serialized_size() + size_of_val(&MAGIC));
    let rest = bytes.get(size..);
    if rest.is_some_and(|rest| rest.len() < 4 && rest.iter().all(|byte| *byte == 0)) {
        size
    } else {
        bytes.len()
    }
}

fn corrupt(what: &str) -> Error {
    Error::new(ErrorKind::Corrupt, format!("a deletion vector {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_protocol() {
        // The protocol's own example of a name.
        let (text, path) =
            ("ab^-aqEH.-t@S}K{vb[*k^", "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin");
        assert_eq!(relative_path(text).unwrap(), path);
        assert_eq!(path_text(path).unwrap(), text);
        let own = file_name(Uuid::new_v4());
        assert_eq!(relative_path(&path_text(&own).unwrap()).unwrap(), own);
        for wrong in ["", "short", "\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}x"] {
            assert_eq!(relative_path(wrong).unwrap_err().kind(), ErrorKind::Corrupt, "{wrong}");
            assert_eq!(path_text(wrong).unwrap_err().kind(), ErrorKind::Corrupt, "{wrong}");
        }
    }

    #[test]
    fn bitmaps_come_back_and_altered_ones_are_errors() {
        let rows = RoaringBitmap::from_iter([1, 5, 70_000]);
        let bytes = to_plain(&rows).unwrap();
        assert_eq!(plain(&bytes).unwrap(), rows);
        let file = frame(&bytes).unwrap();
        assert_eq!(file.len() as u64, bytes.len() as u64 + FRAME);
        assert_eq!(framed(&file, bytes.len() as u64).unwrap(), rows);
        assert!(framed(&file, 3).is_err());
        for at in 4..file.len() {
            let mut altered = file.clone();
            altered[at] ^= 0x10;
            let error = framed(&altered, bytes.len() as u64).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "altered at {at}: {error}");
        }
        for cut in 0..bytes.len() {
            assert!(plain(&bytes[..cut]).is_err(), "cut at {cut}");
            assert!(framed(&file[..cut], bytes.len() as u64).is_err(), "cut at {cut}");
        }
        let far = RoaringTreemap::from_iter([1 << 40]);
        let mut bytes = MAGIC.to_le_bytes().to_vec();
        far.serialize_into(&mut bytes).unwrap();
        assert_eq!(plain(&bytes).unwrap_err().kind(), ErrorKind::Unsupported);
    }

    #[test]
    fn zeros_that_text_needs_are_no_part_of_a_bitmap() {
        for n in 1..9 {
            let bytes = to_plain(&(0..n).collect::<RoaringBitmap>()).unwrap();
            let back = z85::decoded(&z85::encoded(&bytes)).unwrap();
            assert_eq!(plain_size(&back), bytes.len());
            assert_eq!(plain_size(&bytes), bytes.len());
        }
        assert_eq!(plain_size(b"nonsense"), 8);
    }
}
