//! Padding: how many bytes keep a row's length the same while it is pending, processing and finished.
//!
//! Lengths are those of SQLite's record format. Padding that does not fit exactly costs time, never correctness: SQLite
//! then rewrites the whole row. The two columns are called `filler` in the table.

/// Bytes for the columns that vary. While processing: a time, a token, the lease, the worker's name and number. Once
/// finished: two times and the worker's name. Always: the status.
const ROOM: usize = 104;
/// A longer blob would need a longer record header, which would change the row's length.
const LARGEST: usize = 57;

const TIME_TEXT: usize = "2026-06-14 10:00:00.000".len();
const TOKEN: usize = 8;
/// Milliseconds since 1970, from 1970-01-26 to the year 6429.
const TIME_MS: usize = 6;

/// A row with shorter content fits into one page of 4 KB in every status. Such a row is rewritten with its page in any case, so it
/// gets no padding, which would only make it longer.
const LONG: usize = 3_400;

/// The sizes of the two padding columns. A statement that changes a row without padding leaves it so.
pub type Padding = (i64, i64);

/// The padding of a new row.
pub fn new(content: usize, run_at: Option<i64>) -> Padding {
    if content < LONG { (0, 0) } else { pending(run_at) }
}

pub fn pending(run_at: Option<i64>) -> Padding {
    fill_up("pending".len() + run_at.map_or(0, |_| TIME_MS))
}

pub fn processing(lease_ms: i64, worker: &str, holder: Option<i64>) -> Padding {
    let holder = holder.map_or(0, integer);
    fill_up("processing".len() + TIME_TEXT + TOKEN + TIME_MS + integer(lease_ms) + worker.len() + holder)
}

pub fn finished(status: &str, worker: Option<&str>) -> Padding {
    fill_up(status.len() + TIME_TEXT + TIME_TEXT + worker.map_or(0, str::len))
}

fn fill_up(used: usize) -> Padding {
    let left = ROOM.saturating_sub(used);
    let first = left.min(LARGEST);
    (first as i64, (left - first).min(LARGEST) as i64)
}

fn integer(value: i64) -> usize {
    match value {
        0 | 1 => 0,
        -128..=127 => 1,
        -32_768..=32_767 => 2,
        -8_388_608..=8_388_607 => 3,
        -2_147_483_648..=2_147_483_647 => 4,
        -140_737_488_355_328..=140_737_488_355_327 => 6,
        _ => 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(padding: Padding) -> usize {
        (padding.0 + padding.1) as usize
    }

    #[test]
    fn a_new_row_has_the_defaults_of_the_table() {
        let table = include_str!("migrations/items.sql");
        let (first, second) = pending(None);
        assert!(table.contains(&format!("filler       BLOB NOT NULL DEFAULT (zeroblob({first}))")));
        assert!(table.contains(&format!("filler2      BLOB NOT NULL DEFAULT (zeroblob({second}))")));
    }

    #[test]
    fn every_status_takes_the_same_room() {
        let worker = "a-host-with-a-name.example:12345";
        let claimed = 10 + 23 + 8 + 6 + 3 + worker.len() + 6 + sum(processing(60_000, worker, Some(1 << 40)));
        assert_eq!(claimed, 10 + 23 + 8 + 6 + 3 + worker.len() + sum(processing(60_000, worker, None)));
        assert_eq!(claimed, 7 + sum(pending(None)));
        assert_eq!(claimed, 7 + 6 + sum(pending(Some(1_800_000_000_000))));
        assert_eq!(claimed, 4 + 23 + 23 + worker.len() + sum(finished("done", Some(worker))));
    }
}
