//! Positions of each connector sort as its log does.

use super::*;

fn of(source: &str, is_read: bool) -> String {
    position(&Json::of(source).unwrap(), is_read).unwrap()
}

#[test]
fn positions_sort_as_the_log_does() {
    let ordered = |sources: &[(&str, bool)]| {
        let all: Vec<String> = sources.iter().map(|(source, is_read)| of(source, *is_read)).collect();
        assert!(all.is_sorted_by(|a, b| a < b), "{all:?}");
    };
    ordered(&[
        (r#"{"connector":"postgresql","lsn":9}"#, false),
        (r#"{"connector":"postgresql","lsn":24023128}"#, true),
        (r#"{"connector":"postgresql","lsn":24023128}"#, false),
        (r#"{"connector":"postgresql","lsn":9223372036854775807}"#, false),
    ]);
    ordered(&[
        (r#"{"file":"mysql-bin.000003","pos":154,"row":0}"#, true),
        (r#"{"file":"mysql-bin.000003","pos":154,"row":0}"#, false),
        (r#"{"file":"mysql-bin.000003","pos":154,"row":1}"#, false),
        (r#"{"file":"mysql-bin.000003","pos":1540,"row":0}"#, false),
        (r#"{"file":"mysql-bin.999999","pos":4,"row":0}"#, false),
        (r#"{"file":"mysql-bin.1000000","pos":4,"row":0}"#, false),
    ]);
    ordered(&[
        (r#"{"commit_lsn":"00000027:00000758:0003","change_lsn":null}"#, true),
        (
            r#"{"commit_lsn":"00000027:00000758:0005","change_lsn":"00000027:00000758:0003","event_serial_no":1}"#,
            false,
        ),
        (
            r#"{"commit_lsn":"00000027:00000758:0005","change_lsn":"00000027:00000758:0003","event_serial_no":2}"#,
            false,
        ),
        (
            r#"{"commit_lsn":"00000027:00000ac0:0002","change_lsn":"00000027:00000758:0004","event_serial_no":1}"#,
            false,
        ),
    ]);
    ordered(&[
        (r#"{"scn":"999"}"#, true),
        (r#"{"scn":"1590000","ssn":0}"#, false),
        (r#"{"scn":"1590000","ssn":1}"#, false),
    ]);
    ordered(&[
        (r#"{"ts_ms":1559033904863,"ord":1}"#, false),
        (r#"{"ts_us":1559033904863001,"ord":1}"#, false),
        (r#"{"ts_ns":1559033904863001001,"ord":1}"#, false),
        (r#"{"ts_ns":1559033904863001001,"ord":2}"#, false),
    ]);
    assert_eq!(position(&Json::of("{}").unwrap(), false), None);
}

#[test]
fn what_is_no_number_is_no_position() {
    let strange = [
        r#"{"ts_us":"éééééééééééééééééééééé"}"#,
        r#"{"ts_ms":"日本語日本語日本語日本語日本語日本語日本語日本語"}"#,
        r#"{"lsn":"x"}"#,
        r#"{"scn":""}"#,
        r#"{"ts_ns":123456789012345678901}"#,
        r#"{"ts_ms":-1.5}"#,
    ];
    for source in strange {
        assert_eq!(position(&Json::of(source).unwrap(), false), None, "{source}");
    }
    assert_eq!(of(r#"{"lsn":"x","scn":"7"}"#, false), of(r#"{"scn":"7"}"#, false));
}
