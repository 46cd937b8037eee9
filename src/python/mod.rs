//! The Python module `membox_queue._native`: arguments → detach → verb → result, and nothing else.

// The docstrings of the stub, as `words!(Queue.claim)`; build.rs makes it.
include!(concat!(env!("OUT_DIR"), "/words.rs"));

// These come first: their macros are visible only to later modules.
#[macro_use]
mod options;
#[macro_use]
mod new_item;
mod node;
#[macro_use]
mod settings;

mod attempt;
mod block;
mod child;
mod convert;
mod destination;
mod ending;
mod enlist;
mod error;
mod interpreter_exit;
mod item;
mod item_copy;
mod lock;
mod next_stage;
mod queue;
mod rate;
mod retry;
mod schedule;
mod signals;
mod step;
mod waits;
mod warnings;
mod watcher;
mod worker_info;
mod worker_loop;

use once_cell::sync::Lazy;
use pyo3::prelude::*;

use crate::clock::Clock;

/// The clock that all queues of the process share, so that a test can replace it for all of them.
static CLOCK: Lazy<Clock> = Lazy::new(Clock::system);

#[pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use super::attempt::Attempt;
    #[pymodule_export]
    use super::enlist::{Enlistment, Statement};
    #[pymodule_export]
    use super::item::Item;
    #[pymodule_export]
    use super::lock::Lock;
    #[pymodule_export]
    use super::new_item::{ByContent, NewItem};
    #[pymodule_export]
    use super::next_stage::Next;
    #[pymodule_export]
    use super::node::Node;
    #[pymodule_export]
    use super::queue::AwaitedEnd;
    #[pymodule_export]
    use super::queue::Queue;
    #[pymodule_export]
    use super::rate::Rate;
    #[pymodule_export]
    use super::retry::Retry;
    #[pymodule_export]
    use super::schedule::Schedule;
    #[pymodule_export]
    use super::signals::Token;
    #[pymodule_export]
    use super::watcher::{ClaimPlan, Watcher};
    #[pymodule_export]
    use super::worker_info::WorkerInfo;
    #[pymodule_export]
    use super::worker_loop::{LoopStep, WorkerLoop};

    #[pymodule_export]
    use super::block::Block;

    use once_cell::sync::Lazy;
    use pyo3::prelude::*;

    #[doc = words!(set_transaction)]
    #[pyfunction]
    #[pyo3(signature = (factory, /))]
    fn set_transaction(py: Python<'_>, factory: Py<PyAny>) {
        super::block::set_transaction(py, factory);
    }

    #[doc = words!(set_clock)]
    #[pyfunction]
    #[pyo3(signature = (ms, /))]
    fn set_clock(ms: Option<i64>) {
        super::CLOCK.set(ms);
        crate::store::wake_all();
    }

    #[doc = words!(clock)]
    #[pyfunction]
    fn clock() -> i64 {
        super::CLOCK.now().ms()
    }

    #[doc = words!(has_queue)]
    #[pyfunction]
    #[pyo3(signature = (path, /))]
    fn has_queue(py: Python<'_>, path: std::path::PathBuf) -> PyResult<bool> {
        use super::interpreter_exit::Native;
        Ok(py.native(|| crate::store::has_queue(&path))?)
    }

    #[doc = words!(remove)]
    #[pyfunction]
    #[pyo3(signature = (path, discard, dry_run, /))]
    fn remove(
        py: Python<'_>,
        path: std::path::PathBuf,
        discard: bool,
        dry_run: bool,
    ) -> PyResult<(i64, i64, Vec<String>)> {
        use super::interpreter_exit::Native;
        let removed = py.native(|| crate::store::remove(&path, discard, dry_run, super::CLOCK.now()))?;
        Ok((removed.items, removed.unfinished, removed.objects))
    }

    #[doc = words!(meaning)]
    #[pyfunction]
    #[pyo3(signature = (exception, is_cancelled = false, /))]
    fn meaning(exception: &Bound<'_, PyAny>, is_cancelled: bool) -> PyResult<&'static str> {
        Ok(super::ending::in_handler(exception, is_cancelled)?.as_str())
    }

    #[doc = words!(copied_item)]
    #[pyfunction]
    #[pyo3(signature = (fields, /))]
    fn copied_item(fields: &Bound<'_, pyo3::types::PyDict>) -> PyResult<super::item::Item> {
        super::item_copy::copied(fields)
    }

    #[doc = words!(set_runner)]
    #[pyfunction]
    #[pyo3(signature = (runner, /))]
    fn set_runner(py: Python<'_>, runner: Py<PyAny>) {
        super::enlist::set_runner(py, runner);
    }

    #[doc = words!(end_waits)]
    #[pyfunction]
    fn end_waits() {
        super::interpreter_exit::end_waits();
    }

    #[doc = words!(keep_other_threads_out)]
    #[pyfunction]
    fn keep_other_threads_out(py: Python<'_>) {
        super::interpreter_exit::keep_other_threads_out(py);
    }

    #[doc = words!(arm_fault)]
    #[pyfunction]
    #[pyo3(signature = (fault, verb, times, /))]
    fn arm_fault(fault: &str, verb: Option<&str>, times: Option<u64>) -> PyResult<u64> {
        use crate::faults::{Fault, FaultPoint, arm};
        let unknown = |what: &str, given: &str| {
            pyo3::exceptions::PyValueError::new_err(format!("there is no {what} {given:?} to arm"))
        };
        let fault = match fault {
            "busy" => Fault::Busy,
            "disk_full" => Fault::DiskFull,
            "crash_before" => Fault::CrashBefore,
            "crash_after" => Fault::CrashAfter,
            other => return Err(unknown("fault", other)),
        };
        let verb = match verb {
            None => None,
            Some("enqueue") => Some(FaultPoint::Enqueue),
            Some("claim") => Some(FaultPoint::Claim),
            Some("finish") => Some(FaultPoint::Finish),
            Some(other) => return Err(unknown("verb", other)),
        };
        Ok(arm(fault, verb, times))
    }

    #[doc = words!(disarm_fault)]
    #[pyfunction]
    #[pyo3(signature = (number, /))]
    fn disarm_fault(number: u64) -> bool {
        crate::faults::disarm(number)
    }

    #[doc = words!(switch_off)]
    #[pyfunction]
    #[pyo3(signature = (*measures))]
    fn switch_off(measures: Vec<String>) -> PyResult<()> {
        for measure in measures {
            match measure.as_str() {
                "locks" => crate::store::LOCKS.switch_off()?,
                "fork" => crate::store::FORK.switch_off()?,
                "commit-check" => crate::store::COMMIT_CHECK.switch_off()?,
                other => return Err(pyo3::exceptions::PyValueError::new_err(format!("there is no measure {other:?}"))),
            }
        }
        Ok(())
    }

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::store::install()?;
        // Initialised now: a fork while another thread initialises them would leave the child waiting for that thread.
        crate::process::hostname();
        Lazy::force(&super::CLOCK);
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("BY_CONTENT", Bound::new(module.py(), super::new_item::ByContent)?)?;
        module.add("sqlite_version", crate::sqlite_version())
    }
}
