//! Encodings against values worked out by hand, and against integers of the language.

use base64::Engine;

use super::*;

#[test]
fn a_decimal_has_every_digit_whatever_its_length() {
    for (bytes, scale, text) in [
        (&[][..], 2, "0.00"),
        (&[0], 0, "0"),
        (&[0x7b], 2, "1.23"),
        (&[0xff], 0, "-1"),
        (&[0xff], 3, "-0.001"),
        (&[0x80], 1, "-12.8"),
        (&[0x00, 0x80], 1, "12.8"),
        (&[0x05], -3, "5000"),
        (&[0x00], -3, "0"),
        (
            &[0x01, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            0,
            "340282366920938463463374607431768211456",
        ),
    ] {
        assert_eq!(decimal(bytes, scale).as_deref(), Some(text));
    }
    for number in [i64::MIN, i64::MIN + 1, -257, -256, -255, -1, 1, 255, 256, 1_000_000_000, i64::MAX] {
        assert_eq!(decimal(&number.to_be_bytes(), 0), Some(number.to_string()));
    }
}

#[test]
fn a_scale_that_no_database_has_is_refused() {
    for scale in [-1000, 0, 16_383] {
        assert!(decimal(&[1], scale).is_some(), "{scale}");
    }
    for scale in [i32::MIN, -1001, 16_384, 65_535, 70_000, i32::MAX] {
        assert_eq!(decimal(&[1], scale), None, "{scale}");
    }
}

#[test]
fn dates_and_times_before_1970_and_beyond_a_day() {
    assert_eq!(date(0).unwrap(), "1970-01-01");
    assert_eq!(date(-1).unwrap(), "1969-12-31");
    assert_eq!(date(17_546).unwrap(), "2018-01-15");
    assert_eq!(date(i64::MAX), None);
    assert_eq!(instant(1_529_507_596_945_104, Unit::Micro).unwrap(), "2018-06-20T15:13:16.945104");
    assert_eq!(instant(1_529_476_623_000, Unit::Milli).unwrap(), "2018-06-20T06:37:03");
    assert_eq!(instant(-1, Unit::Nano).unwrap(), "1969-12-31T23:59:59.999999999");
    assert_eq!(instant(-1_500, Unit::Milli).unwrap(), "1969-12-31T23:59:58.5");
    assert_eq!(clock(44_712_345, Unit::Milli), "12:25:12.345");
    assert_eq!(clock(-3_020_399_000_000, Unit::Micro), "-838:59:59");
    assert_eq!(clock(1, Unit::Nano), "00:00:00.000000001");
}

#[test]
fn bytes_in_each_mode() {
    let bytes = [0xfb, 0xff, 0x00];
    for mode in [BinaryMode::Base64, BinaryMode::Base64UrlSafe, BinaryMode::Hex] {
        assert_eq!(mode.decode(&mode.encode(&bytes)).unwrap(), bytes);
        assert_eq!(mode.decode("!"), None);
    }
    assert_eq!(BinaryMode::Base64.encode(&bytes), "+/8A");
    assert_eq!(BinaryMode::Base64UrlSafe.encode(&bytes), "-_8A");
    assert_eq!(BinaryMode::Base64UrlSafe.decode("-_8").unwrap(), [0xfb, 0xff]);
    assert_eq!(BinaryMode::Hex.decode("FBFF00").unwrap(), bytes);
    assert_eq!(STANDARD.decode("+/8A").unwrap(), bytes);
}
