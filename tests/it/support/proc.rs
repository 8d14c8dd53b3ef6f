//! What the system says of a process: memory, handles, threads.
#![allow(dead_code)] // each test needs a part of it

use std::fs;

fn status(pid: u32, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap_or_else(|| panic!("{field} of {pid}"));
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Resident memory in KiB.
pub fn resident_kib(pid: u32) -> u64 {
    status(pid, "VmRSS:")
}

/// The most resident memory it has had, in KiB.
pub fn peak_kib(pid: u32) -> u64 {
    status(pid, "VmHWM:")
}

/// Threads.
pub fn threads(pid: u32) -> u64 {
    status(pid, "Threads:")
}

/// Open files and sockets.
pub fn handles(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

/// Processor time it has used, in hundredths of a second.
pub fn cpu_ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // The name before may hold anything.
    let (_, rest) = stat.rsplit_once(')').unwrap();
    let fields: Vec<&str> = rest.split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}
