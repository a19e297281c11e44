//! The checksum behind a deletion vector: CRC-32 with the polynomial of IEEE 802.3, low bits first.

const POLYNOMIAL: u32 = 0xedb8_8320;

/// What eight zero bits make of each byte.
const TABLE: [u32; 256] = table();

#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "no conversion is const; i < 256"
)]
const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut i = 0;
    while i < table.len() {
        let mut value = i as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { (value >> 1) ^ POLYNOMIAL } else { value >> 1 };
            bit += 1;
        }
        table[i] = value;
        i += 1;
    }
    table
}

/// The checksum of bytes.
pub(super) fn of(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |sum: u32, byte| {
        let [low, ..] = sum.to_le_bytes();
        (sum >> 8) ^ TABLE.get(usize::from(low ^ byte)).copied().unwrap_or_default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_value_of_the_standard_holds() {
        assert_eq!(of(b"123456789"), 0xcbf4_3926);
        assert_eq!(of(b""), 0);
    }
}
