//! Tests of the replaced calls beside another copy of SQLite, which plain descriptors stand in for.

use std::ffi::c_int;
use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::identity::{Inode, describe_bytes};
use super::record_locks::{LIVENESS_BYTES, PENDING_BYTE, WAL_WRITE_BYTE, conflicting_lock, record};
use super::registry::with_suffix;
use super::*;
use crate::sync::Mutex;
use crate::{NewItem, Options, Queue};

struct Location {
    path: PathBuf,
    _folder: tempfile::TempDir,
}

fn location() -> Location {
    let folder = tempfile::tempdir().unwrap();
    Location { path: folder.path().canonicalize().unwrap().join("app.db"), _folder: folder }
}

fn queue(location: &Location) -> Arc<Queue> {
    let queue = Queue::open(&location.path, Options::default()).unwrap();
    queue.enqueue(NewItem::text("x")).unwrap();
    queue
}

fn open_plainly(path: &Path) -> std::fs::File {
    OpenOptions::new().read(true).write(true).open(path).unwrap()
}

/// A lock as another copy of SQLite in this process would take it.
fn lock_as_process(file: &std::fs::File, start: i64) -> bool {
    let mut lock = record(libc::F_WRLCK as c_int, start, 1);
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLK, &mut lock) == 0 }
}

/// What a test does while a sweep of its thread scans the descriptors.
type Act = Option<Box<dyn FnMut()>>;
thread_local! {
    pub static DURING_A_SCAN: std::cell::RefCell<Act> = const { std::cell::RefCell::new(None) };
}

fn during_a_scan(act: impl FnMut() + 'static) {
    DURING_A_SCAN.set(Some(Box::new(act)));
}

fn holder(fd: c_int, start: i64, length: i64) -> Option<libc::pid_t> {
    conflicting_lock(fd, start, length).unwrap().map(|lock| lock.l_pid)
}

fn entries(location: &Location) -> usize {
    let shm = with_suffix(&location.path, "-shm");
    let registry = registry();
    registry.named(&location.path).count() + registry.named(&shm).count()
}

/// The first byte SQLite's readers share.
const SHARED_BYTE: i64 = PENDING_BYTE + 2;

#[test]
fn our_locks_survive_a_foreign_close() {
    let location = location();
    let _queue = queue(&location);
    drop(open_plainly(&location.path));
    drop(open_plainly(&with_suffix(&location.path, "-shm")));
    let stranger = open_plainly(&location.path);
    assert_eq!(holder(stranger.as_raw_fd(), SHARED_BYTE, 1), Some(-1));
}

#[test]
fn another_copy_cannot_take_what_we_hold() {
    let location = location();
    let _queue = queue(&location);
    let other = open_plainly(&location.path);
    assert!(!lock_as_process(&other, SHARED_BYTE));
}

#[test]
fn closing_spares_the_locks_of_another_copy_and_parks_the_files() {
    let location = location();
    drop(queue(&location));
    let other = open_plainly(&location.path);
    assert!(lock_as_process(&other, 0));
    drop(queue(&location));
    let stranger = open_plainly(&location.path);
    assert_eq!(holder(stranger.as_raw_fd(), 0, 1), Some(std::process::id() as libc::pid_t));
    assert!(entries(&location) > 0);
    assert!(registry().named(&location.path).all(|(_, file)| file.is_parked()));
    // A close of any descriptor would drop the other copy's lock, so these are leaked to the end of the test.
    std::mem::forget((other, stranger));
}

#[test]
fn parked_files_are_handed_out_again() {
    let location = location();
    drop(queue(&location));
    let other = open_plainly(&location.path);
    let descriptors = || registry().named(&location.path).map(|(_, file)| file.descriptors.len()).sum::<usize>();
    drop(queue(&location));
    let parked = descriptors();
    for _ in 0..5 {
        drop(queue(&location));
    }
    assert_eq!(descriptors(), parked);
    drop(other);
    drop(queue(&location));
    assert_eq!(entries(&location), 0);
}

#[test]
fn nothing_stays_open_after_the_last_close_and_the_wal_is_checkpointed() {
    let location = location();
    drop(queue(&location));
    assert_eq!(entries(&location), 0);
    assert!(!with_suffix(&location.path, "-wal").exists());
}

#[test]
fn a_close_that_scans_descriptors_blocks_no_other_call() {
    let (location, scans) = (location(), Arc::new(AtomicUsize::new(0)));
    let elsewhere = self::location();
    let other = queue(&elsewhere);
    let (beside, seen) = (other.clone(), scans.clone());
    during_a_scan(move || {
        beside.enqueue(NewItem::text("y")).unwrap();
        seen.fetch_add(1, Ordering::Relaxed);
    });
    // The sweep of another test, in its own thread, may come first and close the file. Then this thread has nothing to
    // sweep.
    for _ in 0..20 {
        drop(queue(&location));
        assert_eq!(entries(&location), 0);
        if scans.load(Ordering::Relaxed) > 0 {
            break;
        }
    }
    DURING_A_SCAN.set(None);
    assert!(scans.load(Ordering::Relaxed) > 0);
}

#[test]
fn a_file_that_is_opened_while_a_sweep_scans_stays_open() {
    let location = location();
    drop(queue(&location));
    let other = open_plainly(&location.path);
    drop(queue(&location));
    drop(other);
    let inode = describe_bytes(location.path.as_os_str().as_bytes()).unwrap().inode;
    assert!(registry().files[&inode].is_parked());
    let (path, opened) = (location.path.clone(), Arc::new(Mutex::new(None)));
    let kept = opened.clone();
    during_a_scan(move || {
        let connection = rusqlite::Connection::open(&path).unwrap();
        connection.execute_batch("UPDATE ingest_queue SET project = 'p'").unwrap();
        *kept.lock() = Some(connection);
    });
    registry().just_parked.insert(inode);
    sweep();
    DURING_A_SCAN.set(None);
    let opened = opened.lock().take().unwrap();
    opened.execute_batch("UPDATE ingest_queue SET project = 'q'").unwrap();
    let stranger = open_plainly(&location.path);
    assert_eq!(holder(stranger.as_raw_fd(), SHARED_BYTE, 1), Some(-1), "its locks are there");
    assert_eq!(holder(stranger.as_raw_fd(), PENDING_BYTE, 1), None, "others can lock the file");
    drop(opened);
    drop(stranger);
    drop(queue(&location));
    assert_eq!(entries(&location), 0);
}

#[test]
fn files_that_were_unlinked_are_closed_at_once() {
    let location = location();
    let queue = queue(&location);
    let other = open_plainly(&location.path);
    for suffix in ["", "-wal", "-shm"] {
        std::fs::remove_file(with_suffix(&location.path, suffix)).unwrap();
    }
    drop(queue);
    assert_eq!(entries(&location), 0);
    drop(other);
}

#[test]
fn a_wal_that_was_removed_or_replaced_is_noticed() {
    let location = location();
    let _queue = queue(&location);
    let database = describe_bytes(location.path.as_os_str().as_bytes()).unwrap().inode;
    let check = || check_files(&location.path, database.device, database.number);
    check().unwrap();
    let wal = with_suffix(&location.path, "-wal");
    std::fs::rename(&wal, with_suffix(&location.path, "-gone")).unwrap();
    assert!(check().is_err());
    std::fs::write(&wal, b"").unwrap();
    assert!(check().is_err());
}

#[test]
fn a_sign_of_life_outlives_the_connections_and_ends_with_its_owner() {
    let location = location();
    let queue = queue(&location);
    let Inode { device, number } = describe_bytes(location.path.as_os_str().as_bytes()).unwrap().inode;
    let sign = LivenessLock::give(device, number, 1 << 40).unwrap();
    let stranger = open_plainly(&location.path);
    let is_held = || holder(stranger.as_raw_fd(), LIVENESS_BYTES + (1 << 40), 1).is_some();
    assert!(is_held() && LivenessLock::is_seen(device, number, 1 << 40));
    assert!(!LivenessLock::is_seen(device, number, 5));
    drop(queue);
    assert!(is_held());
    drop(sign);
    assert!(!is_held());
    drop(stranger);
    drop(self::queue(&location));
    assert_eq!(entries(&location), 0);
}

#[test]
fn the_writer_is_named() {
    let location = location();
    let _queue = queue(&location);
    let shm = open_plainly(&with_suffix(&location.path, "-shm"));
    assert_eq!(blocking_lock(&location.path), None);
    assert!(lock_as_process(&shm, WAL_WRITE_BYTE));
    let own = BlockingLock { holder: LockHolder::ThisProcess, kind: LockKind::Writes };
    assert_eq!(blocking_lock(&location.path), Some(own));
}

#[test]
fn names_of_files_beside_a_database_are_reserved() {
    assert!(["a-wal", "a-shm", "a-journal"].iter().all(|name| is_reserved(Path::new(name))));
    assert!(!is_reserved(Path::new("wal.db")));
}
