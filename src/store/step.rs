//! What an engine must do for steps.

use crate::error::Result;
use crate::model::{Receipt, StepKind};

pub trait StepTx {
    /// Records a step of the present stage if the receipt is valid; one of that name is replaced. Returns whether the
    /// receipt is valid. Locks the item.
    fn add_step(&self, queue: &str, receipt: Receipt, name: &str, kind: StepKind, result: &str) -> Result<bool>;
}
