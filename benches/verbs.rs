//! The verbs beside the same statements run by rusqlite directly: interleaved rounds, medians, ratios.
//!
//! `cargo bench --bench verbs` prints a table; `-- --json` one JSON list; `-- --rounds=1` fewer rounds; `-- --memory` the
//! core alone with small items in memory, for `binding.py`.

mod jobs;

use std::path::Path;
use std::time::Instant;

use jobs::Raw;
use membox_queue::{Claim, Durability, NewItem, Options, Queue};

const ROUNDS: usize = 9;
const DOCUMENT: usize = 5_000;
const SMALL: usize = 16;
const SMALL_ITEMS: usize = 20_000;

/// Microseconds per item for each of the three jobs.
type Costs = [f64; 3];

fn per_item(count: usize, work: impl FnOnce()) -> f64 {
    let started = Instant::now();
    work();
    started.elapsed().as_secs_f64() * 1e6 / count as f64
}

fn raw(path: &Path, sync: &str, count: usize) -> Costs {
    let raw = Raw::open(path, sync);
    let content = "x".repeat(DOCUMENT);
    let put = per_item(count, || (0..count).for_each(|_| raw.enqueue(&content)));
    let finish = per_item(count, || (0..count).for_each(|_| raw.claim_and_finish()));
    (0..count).for_each(|_| raw.enqueue(&content));
    let drain = per_item(count, || raw.drain());
    [put, finish, drain]
}

fn ours(path: &Path, durability: Durability, count: usize, length: usize) -> Costs {
    let queue = Queue::open(path, Options { durability, ..Options::default() }).unwrap();
    let content = "x".repeat(length);
    let enqueue = || {
        queue.enqueue(NewItem::text(content.clone())).unwrap();
    };
    let put = per_item(count, || (0..count).for_each(|_| enqueue()));
    let finish = per_item(count, || {
        for _ in 0..count {
            let held = queue.claim(&Claim::default()).unwrap().pop().unwrap();
            assert!(queue.mark_done(&held, None).unwrap());
        }
    });
    (0..count).for_each(|_| enqueue());
    let drain = per_item(count, || jobs::drain(&queue));
    [put, finish, drain]
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let rounds = arguments
        .iter()
        .find_map(|argument| argument.strip_prefix("--rounds="))
        .map_or(ROUNDS, |rounds| rounds.parse().expect("--rounds takes a number"));
    let json = arguments.iter().any(|argument| argument == "--json");
    if arguments.iter().any(|argument| argument == "--memory") {
        let [put, finish, drain] = ours(Path::new(":memory:"), Durability::Normal, SMALL_ITEMS, SMALL);
        println!("[{put:.2}, {finish:.2}, {drain:.2}]");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let jobs = ["enqueue", "claim + mark_done", "drain, empty handler"];
    let mut lines = Vec::new();
    for (sync, durability, count) in [("NORMAL", Durability::Normal, 1_500), ("FULL", Durability::Full, 300)] {
        let mut costs: [Vec<Costs>; 2] = Default::default();
        for round in 0..rounds {
            let path = |name: &str| folder.path().join(format!("{name}-{sync}-{round}.db"));
            costs[0].push(raw(&path("raw"), sync, count));
            costs[1].push(ours(&path("ours"), durability, count, DOCUMENT));
        }
        for (index, job) in jobs.iter().enumerate() {
            let of = |which: usize| median(costs[which].iter().map(|costs| costs[index]).collect());
            let ratio = median(costs[1].iter().zip(&costs[0]).map(|(ours, raw)| ours[index] / raw[index]).collect());
            lines.push((sync, *job, of(0), of(1), ratio));
        }
    }
    if json {
        let rows: Vec<_> = lines
            .iter()
            .map(|(sync, job, raw, ours, ratio)| {
                format!(r#"{{"sync": "{sync}", "job": "{job}", "raw_us": {raw:.1}, "ours_us": {ours:.1}, "ratio": {ratio:.3}}}"#)
            })
            .collect();
        println!("[{}]", rows.join(", "));
        return;
    }
    println!("| synchronous | job, 5 KB document | rusqlite alone, µs | membox_queue core, µs | ratio |");
    println!("|---|---|---|---|---|");
    for (sync, job, raw, ours, ratio) in lines {
        println!("| {sync} | {job} | {raw:.0} | {ours:.0} | {ratio:.2} |");
    }
}
