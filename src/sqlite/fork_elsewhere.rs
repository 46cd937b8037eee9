//! Without fork there is one generation.

pub fn generation() -> u64 {
    0
}
