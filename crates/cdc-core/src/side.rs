//! What is kept beside a target, and how is it encoded?
//!
//! A target shows the outcome of its events, which is not enough to place a late one: a delete that removed nothing, or
//! an upsert that repeated its predecessor, must still be known. Those events are side rows. Together with the visible
//! rows they determine every event that can still matter:
//!
//! | shape | side row | stands for |
//! | --- | --- | --- |
//! | SCD1 | [`SideKind::Delete`] | the newest event of a key that has no row |
//! | SCD2 | [`SideKind::Delete`] | a delete that does not end a visible version |
//! | SCD2 | [`SideKind::Interior`] | an upsert within a run, before the run's last: full payload |
//! | SCD2 | [`SideKind::Tail`] | the sequence of a run's last upsert, whose values the visible row shows |
//!
//! A version whose run is a single upsert has no side row.

/// What a side row stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i8)]
pub enum SideKind {
    /// A delete that no visible row shows.
    Delete = 1,
    /// An upsert that is not the last of its run.
    Interior = 2,
    /// Where the last upsert of a run lies; its values are those of the visible row.
    Tail = 3,
}

impl SideKind {
    /// The value stored in [`crate::names::SIDE_KIND`].
    pub fn code(self) -> i8 {
        match self {
            Self::Delete => 1,
            Self::Interior => 2,
            Self::Tail => 3,
        }
    }

    /// The kind with this code, or `None` for a code that this version does not know.
    pub fn from_code(code: i8) -> Option<Self> {
        [Self::Delete, Self::Interior, Self::Tail].into_iter().find(|kind| kind.code() == code)
    }
}
