//! Do the laws hold for every shape, with partial updates, truncates and two clocks?

use proptest::prelude::*;
use strandline_cdc_core::StoredAs;
use strandline_testkit::generate::{Authoring, Domain};

use crate::{
    compare::{arrived, open, without},
    shapes::Shape,
};

fn one_key(domain: Domain) -> Domain {
    Domain { keys: 1, ..domain }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn c05_c23_c25_law_1_scd1_with_truncates(batches in arrived(&Domain::truncated(), 14)) {
        Shape::new(StoredAs::Scd1, &Domain::truncated(), None).deliver(&batches);
    }

    #[test]
    fn c05_c46_c51_law_1_scd1_with_masks(batches in arrived(&Domain::partial(Authoring::Leaves), 10)) {
        Shape::new(StoredAs::Scd1, &Domain::partial(Authoring::Leaves), None).deliver(&batches);
    }

    #[test]
    fn c05_c46_c51_law_1_scd1_ignoring_null(batches in arrived(&Domain::partial(Authoring::NonNull), 10)) {
        Shape::new(StoredAs::Scd1, &Domain::partial(Authoring::NonNull), None).deliver(&batches);
    }

    #[test]
    fn c05_law_1_scd1_with_masks_and_truncates(batches in arrived(&Domain { truncates: true, ..Domain::partial(Authoring::Leaves) }, 10)) {
        let domain = Domain { truncates: true, ..Domain::partial(Authoring::Leaves) };
        Shape::new(StoredAs::Scd1, &domain, None).deliver(&batches);
    }

    #[test]
    fn c06_c47_c48_c49_c50_c51_law_1_scd2_with_masks(batches in arrived(&Domain::partial(Authoring::Leaves), 10)) {
        Shape::new(StoredAs::Scd2, &Domain::partial(Authoring::Leaves), None).deliver(&batches);
    }

    #[test]
    fn c06_c47_law_1_scd2_ignoring_null_of_one_key(batches in arrived(&one_key(Domain::partial(Authoring::NonNull)), 12)) {
        Shape::new(StoredAs::Scd2, &Domain::partial(Authoring::NonNull), None).deliver(&batches);
    }

    #[test]
    fn c06_c21_c22_law_1_scd2_with_masks_and_a_tracked_subset(batches in arrived(&one_key(Domain::partial(Authoring::Leaves)), 12)) {
        Shape::new(StoredAs::Scd2, &Domain::partial(Authoring::Leaves), Some(&["a"])).deliver(&batches);
    }

    #[test]
    fn c07_law_1_bitemporal(batches in arrived(&Domain::two_clocks(), 12)) {
        Shape::new(StoredAs::Bitemporal, &Domain::two_clocks(), None).deliver(&batches);
    }

    #[test]
    fn c07_law_1_bitemporal_of_one_key(batches in arrived(&one_key(Domain { sequences: 7, systems: Some(7), ..Domain::two_clocks() }), 14)) {
        Shape::new(StoredAs::Bitemporal, &Domain::two_clocks(), None).deliver(&batches);
    }

    #[test]
    fn c07_law_1_bitemporal_with_masks(batches in arrived(&Domain::partial_two_clocks(Authoring::Leaves), 9)) {
        Shape::new(StoredAs::Bitemporal, &Domain::partial_two_clocks(Authoring::Leaves), None).deliver(&batches);
    }

    #[test]
    fn c07_law_1_bitemporal_ignoring_null(batches in arrived(&one_key(Domain::partial_two_clocks(Authoring::NonNull)), 10)) {
        Shape::new(StoredAs::Bitemporal, &Domain::partial_two_clocks(Authoring::NonNull), None).deliver(&batches);
    }

    #[test]
    fn c09_law_2_with_masks_current_scd2_rows_are_the_scd1_target(batches in arrived(&Domain::partial(Authoring::Leaves), 12)) {
        let domain = Domain::partial(Authoring::Leaves);
        let (mut scd1, mut scd2) =
            (Shape::new(StoredAs::Scd1, &domain, None), Shape::new(StoredAs::Scd2, &domain, None));
        for batch in &batches {
            scd1.apply(batch);
            scd2.apply(batch);
            let current = without(open(scd2.target(), "__END_AT"), &["__START_AT", "__END_AT"]);
            prop_assert_eq!(without(scd1.target(), &["__SEQUENCE_AT"]), current);
        }
    }
}
