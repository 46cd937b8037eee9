//! The rules: pure functions of facts, the time and a random number. Everything a rule needs is an argument.

pub mod conflict;
#[cfg(any(feature = "python", test))]
pub mod ending;
pub mod flow;
pub mod key;
pub mod lease;
pub mod name;
pub mod outcome;
#[cfg(test)]
mod properties;
pub mod rate;
pub mod retry;
pub mod room;
pub mod settings;
pub mod tick;
pub mod worker;
