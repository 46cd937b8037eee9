//! Random numbers from the operating system: tokens, and the jitter of retry delays.

use std::cell::RefCell;

use crate::error::{Error, Result};
use crate::process;

/// Returns a number that no other process has drawn. Many are requested from the system at once; a forked child
/// requests its own.
pub fn number() -> Result<u64> {
    thread_local! {
        static DRAWN: RefCell<(u64, Vec<u64>)> = const { RefCell::new((0, Vec::new())) };
    }
    DRAWN.with_borrow_mut(|(generation, numbers)| {
        if numbers.is_empty() || *generation != process::generation() {
            let mut bytes = [0; 256];
            getrandom::fill(&mut bytes)
                .map_err(|error| Error::Storage(format!("the operating system gave no random numbers: {error}")))?;
            *generation = process::generation();
            numbers.clear();
            numbers
                .extend(bytes.chunks_exact(8).map(|chunk| u64::from_ne_bytes(chunk.try_into().expect("eight bytes"))));
        }
        Ok(numbers.pop().expect("just filled"))
    })
}

/// Returns a claim's token. It is never negative, so that every tool shows it as a plain number.
pub fn token() -> Result<i64> {
    Ok((number()? >> 1) as i64)
}

/// Returns a random number in 0..1 for the back-off's jitter.
pub fn fraction() -> Result<f64> {
    Ok((number()? >> 11) as f64 / (1u64 << 53) as f64)
}
