//! What is measured: the statements run by rusqlite directly, and a drain by the core.

use std::path::Path;
use std::sync::Arc;

use membox_queue::{Ending, Next, Options, Plan, Queue, WorkerLoop};
use rusqlite::blob::ZeroBlob;
use rusqlite::{Connection, OptionalExtension, params};

/// What a claim of the bare jobs writes as its token.
const TOKEN: i64 = 7_000_000_000_000_000_000;

macro_rules! statement {
    ($name:literal) => {
        include_str!(concat!("../../src/sqlite/sql/", $name, ".sql"))
    };
}

/// The same tables, pragmas and statements without anything around them.
pub struct Raw(Connection);

impl Raw {
    pub fn open(path: &Path, sync: &str) -> Self {
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

    pub fn enqueue(&self, content: &str) {
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
                    ZeroBlob(57),
                    ZeroBlob(40),
                    7_000_000_000_000_000_000i64
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
                TOKEN,
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
        let mut statement = connection.prepare_cached(statement!("item")).unwrap();
        let taken = statement.query_row([id], |row| Ok((row.get(0)?, row.get(15)?, TOKEN, row.get(2)?)));
        Some(taken.unwrap())
    }

    fn settle(connection: &Connection, id: i64, attempt: i64, token: i64) {
        let none = None::<String>;
        connection
            .prepare_cached(statement!("finish"))
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
                0,
                false
            ])
            .unwrap();
    }

    pub fn claim_and_finish(&self) {
        let (id, attempt, token, _) = self.transaction(Self::claim).unwrap();
        self.transaction(|connection| Self::settle(connection, id, attempt, token));
    }

    pub fn drain(&self) {
        let mut taken = self.transaction(Self::claim);
        while let Some((id, attempt, token, _)) = taken {
            taken = self.transaction(|connection| {
                Self::settle(connection, id, attempt, token);
                Self::claim(connection)
            });
        }
    }
}

/// Drains a queue with a handler that does nothing.
pub fn drain(queue: &Arc<Queue>) {
    let plan = Plan {
        slots: 1,
        exclusive: true,
        takes_over: false,
        stays: false,
        linger_ms: 0,
        limit: None,
        whole_groups: false,
        max_runtime: None,
        ttl_ms: 60_000,
    };
    let worker_loop = WorkerLoop::begin(vec![queue.clone()], plan).unwrap().unwrap();
    let mut step = worker_loop.step(0, Vec::new()).unwrap();
    while let Next::Work(..) = step.next {
        step = worker_loop.step(0, vec![Ending::Done { result: None }]).unwrap();
    }
}
