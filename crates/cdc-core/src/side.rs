//! What is kept beside a target, and how is it encoded?
//!
//! A target shows the outcome of its events, which is not enough to place a late one: a delete that removed nothing, or
//! an upsert that repeated its predecessor, must still be known. Those events are side rows. Together with the visible
//! rows they determine every event that can still matter:
//!
//! | shape | side row | stands for |
//! | --- | --- | --- |
//! | SCD1 | [`SideKind::Delete`] | the newest event of a key that has no row |
//! | SCD1 | [`SideKind::Author`] | an upsert that authors some of the columns that the key's row shows |
//! | SCD1 | [`SideKind::Delete`] | beside a row: the newest delete, when no later event authors some column |
//! | SCD2 | [`SideKind::Delete`] | a delete that does not end a visible version |
//! | SCD2 | [`SideKind::Interior`] | an upsert within a run, before the run's last: full payload |
//! | SCD2 | [`SideKind::Tail`] | the sequence of a run's last upsert, whose values the visible row shows |
//! | SCD2 | [`SideKind::Author`] | an upsert of some columns, with its own values |
//! | bitemporal | [`SideKind::Upsert`], [`SideKind::Author`], [`SideKind::Delete`], [`SideKind::Retract`] | an event: all of them are kept |
//! | SCD1 beside snapshots | [`SideKind::Change`] | the key's row was written by a change at the snapshot's version |
//! | SCD1 beside snapshots | [`SideKind::Snapshot`] | the snapshot's row, where later changes set some columns only |
//!
//! A target row that somebody edited by hand is taken as it is, as long as it stands for its event alone; where author rows
//! stand for it, the next batch of its key puts their values back.
//!
//! What holds for every key at once is kept beside the side rows, see [`crate::barriers`].
//!
//! A version whose run is a single upsert has no side row.
//!
//! # Authors of the columns of an SCD1 row
//!
//! A row without author rows was written as a whole by the event at its sequence. That stops being true under partial
//! updates, and once the source lacks a column of the target, because its events do not author that column. From
//! then on the side rows say who wrote what:
//!
//! | [`crate::names::AUTHORED`] | the side row stands for | its values |
//! | --- | --- | --- |
//! | NULL | the newest upsert of a whole row, as long as the row shows a column of it | all columns |
//! | a list | the upserts at one sequence that authored these columns, as far as the row shows them | none: the row shows them; beside a whole row of the same sequence: the columns listed |
//!
//! Of a column of structs the fields are listed (`column.field`), unless all of them are meant. There is always one at the row's own sequence: a row at whose sequence there is none was written as a whole. The side
//! rows of a key go when an upsert of a whole row is newer than all of them. Those of a row that is gone mean nothing.

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
    /// An upsert that sets some columns only; [`crate::names::AUTHORED`] lists them.
    Author = 4,
    /// Bitemporal: an upsert of a whole row.
    Upsert = 5,
    /// Bitemporal: a retraction.
    Retract = 6,
    /// SCD1, beside a snapshot: the key's row was written by a change at the very version of the snapshot, not by it.
    Change = 7,
    /// SCD1, beside a snapshot: the row that the snapshot wrote, as long as the key's row shows a column of it.
    Snapshot = 8,
}

impl SideKind {
    /// The value stored in [`crate::names::SIDE_KIND`].
    pub fn code(self) -> i8 {
        match self {
            Self::Delete => 1,
            Self::Interior => 2,
            Self::Tail => 3,
            Self::Author => 4,
            Self::Upsert => 5,
            Self::Retract => 6,
            Self::Change => 7,
            Self::Snapshot => 8,
        }
    }

    /// The kind with this code, or `None` for a code that this version does not know.
    pub fn from_code(code: i8) -> Option<Self> {
        [
            Self::Delete,
            Self::Interior,
            Self::Tail,
            Self::Author,
            Self::Upsert,
            Self::Retract,
            Self::Change,
            Self::Snapshot,
        ]
        .into_iter()
        .find(|kind| kind.code() == code)
    }
}
