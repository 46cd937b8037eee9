//! Compiles the one C function that Rust cannot express, on the one platform that needs it.

fn main() {
    println!("cargo::rerun-if-changed=src/sqlite/locks/fcntl_apple.c");
    if std::env::var("CARGO_CFG_TARGET_VENDOR").as_deref() == Ok("apple") {
        cc::Build::new().file("src/sqlite/locks/fcntl_apple.c").compile("membox_queue_fcntl");
    }
}
