//! The statements that end a claim on SQLite.

use rusqlite::params;

use super::{Transaction, padding, statement};
use crate::error::Result;
use crate::rules::outcome::Verdict;
use crate::store::{AttemptRecord, Fence, FinishTx};

impl FinishTx for Transaction<'_> {
    fn finish(&self, queue: &str, fence: &Fence, verdict: &Verdict, worker: Option<&str>) -> Result<bool> {
        let finished = self.now_text();
        let (status, retries, error, result, run_at, finished, gave_up) = match verdict {
            Verdict::Done { result } => ("done", None, None, result.as_deref(), None, Some(finished), false),
            Verdict::Pending { delay_ms, retries, error } => {
                let run_at = delay_ms.map(|delay| self.now.plus(delay));
                ("pending", Some(*retries), error.as_deref(), None, run_at, None, false)
            }
            Verdict::Failed { retries, error, gave_up } => {
                ("failed", Some(*retries), Some(error.as_str()), None, None, Some(finished), *gave_up)
            }
        };
        let padding_bytes =
            if status == "pending" { padding::pending(run_at) } else { padding::finished(status, worker) };
        let changed = self.connection.prepare_cached(statement!("finish"))?.execute(params![
            fence.id,
            queue,
            fence.attempt,
            fence.token,
            status,
            retries,
            error,
            result,
            run_at,
            finished,
            gave_up,
            padding_bytes.0,
            padding_bytes.1
        ])?;
        Ok(changed == 1)
    }

    fn finish_cancelled(&self, queue: &str, fence: &Fence) -> Result<bool> {
        let mut statement = self.connection.prepare_cached(statement!("finish_cancelled"))?;
        let values = params![fence.id, queue, fence.attempt, fence.token, self.now_text()];
        Ok(statement.execute(values)? == 1)
    }

    fn add_attempt(&self, record: &AttemptRecord, kept: i64) -> Result<()> {
        self.connection.prepare_cached(statement!("history_add"))?.execute(params![
            record.item,
            record.attempt,
            record.ending,
            record.worker,
            record.started_at,
            self.now_text(),
            record.error
        ])?;
        if record.attempt > kept {
            self.connection.prepare_cached(statement!("history_trim"))?.execute(params![
                record.item,
                record.attempt,
                kept
            ])?;
        }
        Ok(())
    }

    fn drop_content(&self, queue: &str, id: i64) -> Result<()> {
        self.run(statement!("drop_content"), params![id, queue])?;
        Ok(())
    }
}
