//! Options by name: one table gives each option's name to the caller, the Python signature and the parser.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

/// Passes the options of a call to `take` one by one. An unknown option raises the same TypeError as in Python.
pub fn read<'py>(
    function: &str,
    given: Option<&Bound<'py, PyDict>>,
    mut take: impl FnMut(&str, Bound<'py, PyAny>) -> PyResult<bool>,
) -> PyResult<()> {
    for (name, value) in given.into_iter().flatten() {
        let name = name.cast::<PyString>()?.to_string_lossy();
        if !take(&name, value)? {
            let text = format!("{function}() got an unexpected keyword argument '{name}'");
            return Err(PyTypeError::new_err(text));
        }
    }
    Ok(())
}

/// Returns the value of an option; None means that it was left out.
pub fn given<'a, 'py>(option: &'a Option<Bound<'py, PyAny>>) -> Option<&'a Bound<'py, PyAny>> {
    option.as_ref().filter(|value| !value.is_none())
}

/// Returns the value of a Boolean option.
pub fn flag(option: &Option<Bound<'_, PyAny>>) -> PyResult<bool> {
    let Some(value) = option else { return Ok(false) };
    value.extract()
}

/// Defines a struct with one field per option, `None` if it was left out. Also defines a macro that expands to the
/// options as `inspect.signature` and `help()` show them.
///
/// With `repeated`, the options `once` apply to a single item only: `read_repeated` refuses them, and the second macro
/// omits them.
macro_rules! options {
    ($(#[$attribute:meta])* $struct:ident, $shown:ident! { $($option:ident = $default:literal,)* }) => {
        $(#[$attribute])*
        #[derive(Default)]
        pub struct $struct<'py> {
            $(pub $option: Option<pyo3::Bound<'py, pyo3::PyAny>>,)*
        }

        impl<'py> $struct<'py> {
            /// Reads the options of a call of `function`.
            pub fn read(
                function: &str,
                given: Option<&pyo3::Bound<'py, pyo3::types::PyDict>>,
            ) -> pyo3::PyResult<Self> {
                Self::read_except(function, given, &[])
            }

            fn read_except(
                function: &str,
                given: Option<&pyo3::Bound<'py, pyo3::types::PyDict>>,
                refused: &[&str],
            ) -> pyo3::PyResult<Self> {
                let mut options = Self::default();
                $crate::python::options::read(function, given, |name, value| {
                    let option = match name {
                        name if refused.contains(&name) => return Ok(false),
                        $(stringify!($option) => &mut options.$option,)*
                        _ => return Ok(false),
                    };
                    *option = Some(value);
                    Ok(true)
                })?;
                Ok(options)
            }
        }

        macro_rules! $shown {
            () => { concat!($(", ", stringify!($option), "=", $default),*) };
        }
    };
    (
        $(#[$attribute:meta])* $struct:ident, $shown:ident!, repeated $repeated:ident! {
            $(always { $($option:ident = $default:literal,)* } once { $($once:ident = $only:literal,)* })*
        }
    ) => {
        options! {
            $(#[$attribute])* $struct, $shown! { $($($option = $default,)* $($once = $only,)*)* }
        }

        impl<'py> $struct<'py> {
            /// Reads the options of a call of `function`, which enqueues repeatedly.
            pub fn read_repeated(
                function: &str,
                given: Option<&pyo3::Bound<'py, pyo3::types::PyDict>>,
            ) -> pyo3::PyResult<Self> {
                Self::read_except(function, given, &[$($(stringify!($once),)*)*])
            }
        }

        macro_rules! $repeated {
            () => { concat!($($(", ", stringify!($option), "=", $default),*),*) };
        }
    };
}
