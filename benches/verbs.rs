//! The verbs beside the same statements run by rusqlite directly: interleaved rounds, medians, ratios.
//!
//! `cargo bench --bench verbs` prints a table; `-- --json` one JSON list; `-- --rounds=1` fewer rounds.

use std::path::Path;
use std::time::Instant;

use membox_queue::{Claim, Crew, Durability, Ending, NewItem, Next, Options, Plan, Queue};
use rusqlite::{Connection, OptionalExtension, params};

const ROUNDS: usize = 9;
const DOCUMENT: usize = 5_000;

macro_rules! statement {
    ($name:literal) => {
        include_str!(concat!("../src/sqlite/sql/", $name, ".sql"))
    };
}

/// The same tables, pragmas and statements without anything around them.
struct Raw(Connection);

impl Raw {
    fn open(path: &Path, sync: &str) -> Self {
        drop(Queue::open(path, Options::default()).unwrap());
        let connection = Connection::open(path).unwrap();
        connection.pragma_update(None, "synchronous", sync).unwrap();
        connection.set_prepared_statement_cache_capacity(64);
        connection.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).unwrap();
        Self(connection)
    }

    fn transaction<T>(&self, work: impl FnOnce(&Connection) -> T) -> T {
        self.0.prepare_cached("BEGIN IMMEDIATE").unwrap().execute([]).unwrap();
        let value = work(&self.0);
        self.0.prepare_cached("COMMIT").unwrap().execute([]).unwrap();
        value
    }

    fn enqueue(&self, content: &str) {
        self.transaction(|connection| {
            let none = None::<String>;
            connection
                .prepare_cached(statement!("enqueue"))
                .unwrap()
                .execute(params![
                    "ingest",
                    content,
                    "text",
                    none,
                    none,
                    none,
                    0,
                    none,
                    none,
                    none,
                    "2026-06-14 10:00:00.000",
                    none,
                    none,
                    none,
                    57,
                    40
                ])
                .unwrap()
        });
    }

    fn claim(connection: &Connection) -> Option<(i64, i64, i64, String)> {
        let mut next = connection.prepare_cached(statement!("next")).unwrap();
        let id: i64 = next.query_row(params!["ingest"], |row| row.get(0)).optional().unwrap()?;
        let mut statement = connection.prepare_cached(statement!("claim")).unwrap();
        statement
            .execute(params![
                id,
                7_000_000_000_000_000_000i64,
                1_800_000_000_000i64,
                60_000,
                "host:1",
                "2026-06-14 10:00:00.000",
                None::<i64>,
                42,
                0,
                1_500_000_000_000i64
            ])
            .unwrap();
        let mut statement = connection.prepare_cached(statement!("claimed")).unwrap();
        let taken = statement.query_row([id], |row| Ok((row.get(0)?, row.get(15)?, row.get(16)?, row.get(2)?)));
        Some(taken.unwrap())
    }

    fn settle(connection: &Connection, id: i64, attempt: i64, token: i64) {
        let none = None::<String>;
        connection
            .prepare_cached(statement!("settle"))
            .unwrap()
            .execute(params![
                id,
                "ingest",
                attempt,
                token,
                "done",
                none,
                none,
                none,
                none,
                "2026-06-14 10:00:00.000",
                0,
                42,
                0
            ])
            .unwrap();
    }

    fn claim_and_finish(&self) {
        let (id, attempt, token, _) = self.transaction(Self::claim).unwrap();
        self.transaction(|connection| Self::settle(connection, id, attempt, token));
    }

    fn drain(&self) {
        let mut taken = self.transaction(Self::claim);
        while let Some((id, attempt, token, _)) = taken {
            taken = self.transaction(|connection| {
                Self::settle(connection, id, attempt, token);
                Self::claim(connection)
            });
        }
    }
}

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

fn ours(path: &Path, durability: Durability, count: usize) -> Costs {
    let queue = Queue::open(path, Options { durability, ..Options::default() }).unwrap();
    let content = "x".repeat(DOCUMENT);
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
    let drain = per_item(count, || {
        let plan = Plan {
            slots: 1,
            exclusive: true,
            stays: false,
            linger_ms: 0,
            limit: None,
            whole_groups: false,
            max_runtime: None,
            ttl_ms: 60_000,
        };
        let crew = Crew::begin(vec![queue.clone()], plan).unwrap().unwrap();
        let mut step = crew.step(0, Vec::new()).unwrap();
        while let Next::Work(..) = step.next {
            step = crew.step(0, vec![Ending::Done { result: None }]).unwrap();
        }
    });
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
    let folder = tempfile::tempdir().unwrap();
    let jobs = ["enqueue", "claim + mark_done", "drain, empty handler"];
    let mut lines = Vec::new();
    for (sync, durability, count) in [("NORMAL", Durability::Normal, 1_500), ("FULL", Durability::Full, 300)] {
        let mut costs: [Vec<Costs>; 2] = Default::default();
        for round in 0..rounds {
            let path = |name: &str| folder.path().join(format!("{name}-{sync}-{round}.db"));
            costs[0].push(raw(&path("raw"), sync, count));
            costs[1].push(ours(&path("ours"), durability, count));
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
