//! The Python module `membox_queue._native`: arguments → detach → verb → result, and nothing else.

mod attempt;
mod convert;
mod drain;
mod ending;
mod error;
mod item;
mod lock;
mod queue;
mod retry;
mod signals;

use once_cell::sync::Lazy;
use pyo3::prelude::*;

use crate::clock::Clock;

/// All queues of a process share one clock, so that a test can replace it for all of them.
static CLOCK: Lazy<Clock> = Lazy::new(Clock::system);

#[pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use super::attempt::Attempt;
    #[pymodule_export]
    use super::drain::Drain;
    #[pymodule_export]
    use super::item::{ByContent, Item, NewItem};
    #[pymodule_export]
    use super::lock::Lock;
    #[pymodule_export]
    use super::queue::Queue;
    #[pymodule_export]
    use super::retry::Retry;

    use pyo3::prelude::*;

    /// Stops the queue's clock at this many milliseconds since 1970; None lets it run again.
    #[pyfunction]
    #[pyo3(signature = (ms, /))]
    fn set_clock(ms: Option<i64>) {
        super::CLOCK.set(ms);
    }

    /// What the queue's clock says, in milliseconds since 1970.
    #[pyfunction]
    fn clock() -> i64 {
        super::CLOCK.now().ms()
    }

    /// Leaves out safety measures ("locks", "fork", "commit-check") so that tests can show what they are for; before the
    /// first queue is opened in this process.
    #[pyfunction]
    #[pyo3(signature = (*measures))]
    fn switch_off(measures: Vec<String>) -> PyResult<()> {
        for measure in measures {
            match measure.as_str() {
                "locks" => crate::sqlite::LOCKS.switch_off()?,
                "fork" => crate::sqlite::FORK.switch_off()?,
                "commit-check" => crate::sqlite::COMMIT_CHECK.switch_off()?,
                other => return Err(pyo3::exceptions::PyValueError::new_err(format!("there is no measure {other:?}"))),
            }
        }
        Ok(())
    }

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::sqlite::install()?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("BY_CONTENT", Bound::new(module.py(), super::item::ByContent)?)?;
        module.add("sqlite_version", crate::sqlite_version())
    }
}
