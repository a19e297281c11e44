//! Bytes as text, Z85: how Delta's log names files of deletion vectors, and holds small ones itself. Source: ZeroMQ RFC 32.

use crate::{
    contract::Result,
    error::{Error, ErrorKind},
};

const DIGITS: &[u8; 85] =
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";

/// The text of bytes: five digits for four of them; missing ones at the end count as zero.
pub(super) fn encoded(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(4) * 5);
    for group in bytes.chunks(4) {
        let value =
            (0..4).fold(0_u32, |value, i| (value << 8) | u32::from(group.get(i).copied().unwrap_or(0)));
        let digits = [85_u32.pow(4), 85_u32.pow(3), 85_u32.pow(2), 85, 1].map(|place| value / place % 85);
        let digit = |n: &u32| usize::try_from(*n).ok().and_then(|n| DIGITS.get(n)).copied().map(char::from);
        text.extend(digits.iter().filter_map(digit));
    }
    text
}

/// Bytes from their text.
pub(super) fn decoded(text: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 5 * 4);
    for group in text.as_bytes().chunks(5) {
        let mut value: u32 = 0;
        for digit in group {
            let digit = DIGITS.iter().position(|d| d == digit).and_then(|d| u32::try_from(d).ok());
            let next = digit.and_then(|digit| value.checked_mul(85)?.checked_add(digit));
            value = next.ok_or_else(|| corrupt("that stands for no bytes"))?;
        }
        if group.len() != 5 {
            return Err(corrupt("that is cut off"));
        }
        bytes.extend(value.to_be_bytes());
    }
    Ok(bytes)
}

fn corrupt(what: &str) -> Error {
    Error::new(ErrorKind::Corrupt, format!("a deletion vector has text {what}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_example_of_the_standard_holds() {
        let bytes = [0x86, 0x4f, 0xd2, 0x6f, 0xb5, 0x59, 0xf7, 0x5b];
        assert_eq!(decoded("HelloWorld").unwrap(), bytes);
        assert_eq!(encoded(&bytes), "HelloWorld");
        assert!(decoded("#####").is_err() && decoded("abcd").is_err());
    }

    proptest! {
        #[test]
        fn bytes_come_back_filled_up_with_zeros(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let back = decoded(&encoded(&bytes)).unwrap();
            prop_assert_eq!(&back[..bytes.len()], &bytes[..]);
            prop_assert!(back.len() - bytes.len() < 4 && back[bytes.len()..].iter().all(|b| *b == 0));
        }
    }
}
