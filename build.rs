//! Takes the words of `help()` from the stub, and compiles the one C function that Rust cannot express.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

const STUB: &str = "python/membox_queue/_native.pyi";

fn main() {
    println!("cargo::rerun-if-changed={STUB}");
    println!("cargo::rerun-if-changed=src/sqlite/locks/fcntl_apple.c");
    let stub = fs::read_to_string(STUB).expect("the stub is part of the source");
    let folder = env::var("OUT_DIR").expect("cargo names it");
    fs::write(Path::new(&folder).join("words.rs"), words(&stub)).expect("OUT_DIR can be written");
    if env::var("CARGO_CFG_TARGET_VENDOR").as_deref() == Ok("apple") {
        cc::Build::new().file("src/sqlite/locks/fcntl_apple.c").compile("membox_queue_fcntl");
    }
}

/// Returns a macro that expands to the docstring of a class, a member or a function of the stub: `words!(Queue.claim)`.
fn words(stub: &str) -> String {
    let mut found = String::from("macro_rules! words {\n");
    let mut class = String::new();
    let mut lines = stub.lines();
    while let Some(line) = lines.next() {
        let indent = line.len() - line.trim_start().len();
        let Some((kind, name)) = definition(line.trim_start()) else { continue };
        if kind == "class" {
            class = name.to_owned();
        }
        let name = if indent > 0 { format!("{class}.{name}") } else { name.to_owned() };
        // The signature of a function may take several lines; its last one has a body, or says that there is none.
        let mut last = line;
        while !last.ends_with(':') && !last.ends_with("...") {
            last = lines.next().expect("a definition ends");
        }
        if last.ends_with("...") {
            continue;
        }
        let first = lines.next().expect("a definition has a body").trim_start();
        let Some(text) = first.strip_prefix("\"\"\"") else { continue };
        let mut text = text.to_owned();
        while !text.ends_with("\"\"\"") {
            let line = lines.next().expect("a docstring ends");
            text += "\n";
            text += line.get(indent + 4..).unwrap_or_default();
        }
        let text = text.trim_end_matches('"').trim_end();
        writeln!(found, "    ({name}) => {{ {text:?} }};").expect("a String can be written");
    }
    found + "}\n"
}

/// Reads the first line of a class or function: which of the two it is, and its name.
fn definition(line: &str) -> Option<(&str, &str)> {
    let (kind, rest) = line.split_once(' ').filter(|(kind, _)| matches!(*kind, "class" | "def"))?;
    Some((kind, rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()?))
}
