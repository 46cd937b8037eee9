//! Each verb of the core by itself, beside the same statements run by rusqlite directly: `cargo bench --bench core`.

mod jobs;

use std::sync::Arc;

use divan::Bencher;
use jobs::Raw;
use membox_queue::{Claim, Durability, NewItem, Options, Queue};
use tempfile::TempDir;

/// How long a document is, and how its commit is written.
const CASES: [(usize, &str); 4] = [(16, "NORMAL"), (5_000, "NORMAL"), (100_000, "NORMAL"), (5_000, "FULL")];

fn main() {
    divan::main();
}

struct Ours {
    queue: Arc<Queue>,
    content: String,
    _folder: TempDir,
}

impl Ours {
    fn open((length, sync): (usize, &str)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let durability = if sync == "FULL" { Durability::Full } else { Durability::Normal };
        let queue = Queue::open(&folder.path().join("app.db"), Options { durability, ..Options::default() }).unwrap();
        Self { queue, content: "x".repeat(length), _folder: folder }
    }

    fn enqueue(&self) {
        self.queue.enqueue(NewItem::text(self.content.clone())).unwrap();
    }
}

struct Theirs {
    raw: Raw,
    content: String,
    _folder: TempDir,
}

impl Theirs {
    fn open((length, sync): (usize, &str)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let raw = Raw::open(&folder.path().join("app.db"), sync);
        Self { raw, content: "x".repeat(length), _folder: folder }
    }
}

#[divan::bench(args = CASES)]
fn enqueue(bencher: Bencher, case: (usize, &str)) {
    let ours = Ours::open(case);
    bencher.bench_local(|| ours.enqueue());
}

#[divan::bench(args = CASES)]
fn enqueue_rusqlite(bencher: Bencher, case: (usize, &str)) {
    let theirs = Theirs::open(case);
    bencher.bench_local(|| theirs.raw.enqueue(&theirs.content));
}

#[divan::bench(args = CASES)]
fn claim_and_mark_done(bencher: Bencher, case: (usize, &str)) {
    let ours = Ours::open(case);
    bencher.with_inputs(|| ours.enqueue()).bench_local_values(|()| {
        let held = ours.queue.claim(&Claim::default()).unwrap().pop().unwrap();
        assert!(ours.queue.mark_done(&held, None).unwrap());
    });
}

#[divan::bench(args = CASES)]
fn claim_and_mark_done_rusqlite(bencher: Bencher, case: (usize, &str)) {
    let theirs = Theirs::open(case);
    bencher.with_inputs(|| theirs.raw.enqueue(&theirs.content)).bench_local_values(|()| theirs.raw.claim_and_finish());
}

const DRAINED: usize = 50;

#[divan::bench(args = CASES, sample_count = 40)]
fn drain_fifty(bencher: Bencher, case: (usize, &str)) {
    let ours = Ours::open(case);
    let fill = || (0..DRAINED).for_each(|_| ours.enqueue());
    bencher.with_inputs(fill).bench_local_values(|()| jobs::drain(&ours.queue));
}

#[divan::bench(args = CASES, sample_count = 40)]
fn drain_fifty_rusqlite(bencher: Bencher, case: (usize, &str)) {
    let theirs = Theirs::open(case);
    let fill = || (0..DRAINED).for_each(|_| theirs.raw.enqueue(&theirs.content));
    bencher.with_inputs(fill).bench_local_values(|()| theirs.raw.drain());
}
