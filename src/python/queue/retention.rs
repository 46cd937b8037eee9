//! Removing finished items, and returning their space to the file system.

use pyo3::prelude::*;

use super::Queue;
use super::read::parse_status;
use crate::python::convert::duration_ms;
use crate::python::interpreter_exit::Native;
use crate::store::ReferencedItem;

#[pymethods]
impl Queue {
    #[doc = words!(Queue.purge)]
    #[pyo3(signature = (status = "failed"))]
    fn purge(&self, py: Python<'_>, status: &str) -> PyResult<usize> {
        let status = parse_status(status)?;
        let (removed, kept) = py.native(|| self.core.purge(status))?;
        log_kept(py, kept)?;
        Ok(removed)
    }

    #[doc = words!(Queue.prune)]
    #[pyo3(signature = (older_than, *, status = "done"))]
    fn prune(&self, py: Python<'_>, older_than: &Bound<'_, PyAny>, status: &str) -> PyResult<usize> {
        let (status, age_ms) = (parse_status(status)?, duration_ms("older_than", older_than)?);
        let (removed, kept) = py.native(|| self.core.prune(status, age_ms))?;
        log_kept(py, kept)?;
        Ok(removed)
    }

    #[doc = words!(Queue.tend)]
    fn tend(&self, py: Python<'_>) -> PyResult<()> {
        log_kept(py, py.native(|| self.core.tend(|| false))?)
    }

    #[doc = words!(Queue.compact)]
    fn compact(&self, py: Python<'_>) -> PyResult<()> {
        Ok(py.native(|| self.core.compact())?)
    }
}

/// Logs that items were not removed because rows of other tables refer to them.
pub fn log_kept(py: Python<'_>, kept: Option<ReferencedItem>) -> PyResult<()> {
    let Some(ReferencedItem { id, table }) = kept else { return Ok(()) };
    let words = "items to which foreign keys refer are not removed: item %d, to which the table %s refers, is one of them; \
                 check() lists them";
    let logger = py.import("logging")?.call_method1("getLogger", ("membox_queue",))?;
    logger.call_method1("warning", (words, id, table))?;
    Ok(())
}
