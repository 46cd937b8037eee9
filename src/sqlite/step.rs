//! The statements of steps on SQLite.

use rusqlite::params;

use super::{Transaction, statement};
use crate::error::Result;
use crate::model::{Receipt, StepKind};
use crate::store::StepTx;

impl StepTx for Transaction<'_> {
    fn add_step(&self, queue: &str, receipt: Receipt, name: &str, kind: StepKind, result: &str) -> Result<bool> {
        let Receipt { id, attempt, token } = receipt;
        let values = params![id, queue, attempt, token, name, kind.as_str(), result, self.now_text()];
        Ok(self.run(statement!("step_add"), values)? == 1)
    }
}
