//! A disk in memory that keeps apart what was written and what was synced. A crash forgets the rest, wholly or
//! sector by sector: bytes, lengths, new names, renames and deletions. It also fails, fills up and waits on demand.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};

use crate::journal::disk::{Disk, DiskFile};

const SECTOR: usize = 512;

/// Small, seeded, and good enough to shuffle with (SplitMix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// What goes wrong next, once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Half of a write arrives.
    Write,
    /// A sync fails, and what it should have covered is lost for good.
    Sync,
    Create,
    SyncDir,
    Remove,
    Truncate,
}

enum Change {
    Write(usize, Vec<u8>),
    Length(usize),
}

#[derive(Default)]
struct Inode {
    /// As programs see it.
    now: Vec<u8>,
    /// As a crash leaves it.
    durable: Vec<u8>,
    unsynced: Vec<Change>,
}

enum Naming {
    File(PathBuf, usize),
    Dir(PathBuf),
    Gone(PathBuf),
    Renamed(PathBuf, PathBuf, usize),
}

#[derive(Default)]
struct World {
    /// Handles of before a crash are dead.
    generation: u64,
    inodes: Vec<Inode>,
    now: Names,
    durable: Names,
    unsynced: Vec<(PathBuf, Naming)>,
    fault: Option<(Fault, String)>,
    capacity: Option<u64>,
    /// Syncs of paths that contain this wait.
    held: Option<String>,
    waiting: usize,
    syncs: BTreeMap<PathBuf, u64>,
    writes: BTreeMap<PathBuf, u64>,
}

#[derive(Default, Clone)]
struct Names {
    files: BTreeMap<PathBuf, usize>,
    dirs: BTreeSet<PathBuf>,
}

impl Names {
    fn apply(&mut self, naming: &Naming) {
        match naming {
            Naming::File(path, inode) => {
                self.files.insert(path.clone(), *inode);
            }
            Naming::Dir(path) => {
                self.dirs.insert(path.clone());
            }
            Naming::Gone(path) => {
                self.files.remove(path);
            }
            Naming::Renamed(from, to, inode) => {
                self.files.remove(from);
                self.files.insert(to.clone(), *inode);
            }
        }
    }
}

pub struct ForgetfulDisk {
    world: Mutex<World>,
    changed: Condvar,
    me: Weak<Self>,
}

impl ForgetfulDisk {
    /// An empty disk with one directory.
    pub fn new(home: &str) -> Arc<Self> {
        let mut world = World::default();
        world.now.dirs.insert(home.into());
        world.durable.dirs.insert(home.into());
        Arc::new_cyclic(|me| Self { world: Mutex::new(world), changed: Condvar::new(), me: me.clone() })
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    /// Power off, power on.
    pub fn crash(&self, random: &mut Random) {
        let world = &mut *self.world();
        world.generation += 1;
        // Half of the time everything unsynced is gone, otherwise each piece by itself.
        let keep = if random.chance(50) { 0 } else { 50 };
        for inode in &mut world.inodes {
            for change in std::mem::take(&mut inode.unsynced) {
                match change {
                    Change::Length(length) if random.chance(keep) => inode.durable.resize(length, 0),
                    Change::Write(at, bytes) => {
                        for (index, sector) in bytes.chunks(SECTOR).enumerate() {
                            let at = at + index * SECTOR;
                            if random.chance(keep) && inode.durable.len() >= at + sector.len() {
                                inode.durable[at..at + sector.len()].copy_from_slice(sector);
                            }
                        }
                    }
                    Change::Length(_) => {}
                }
            }
            inode.now = inode.durable.clone();
        }
        for (_, naming) in std::mem::take(&mut world.unsynced) {
            if random.chance(keep) {
                world.durable.apply(&naming);
            }
        }
        let Names { files, dirs } = world.durable.clone();
        world.durable.files = files.into_iter().filter(|(path, _)| dirs.contains(path.parent().unwrap())).collect();
        world.now = world.durable.clone();
        let named: BTreeSet<usize> = world.now.files.values().copied().collect();
        let nameless = |(number, _): &(usize, &mut Inode)| !named.contains(number);
        world.inodes.iter_mut().enumerate().filter(nameless).for_each(|(_, inode)| *inode = Inode::default());
        world.fault = None;
        world.held = None;
        self.changed.notify_all();
    }

    /// The next such operation on a path containing `part` fails.
    pub fn fail_next(&self, fault: Fault, part: &str) {
        self.world().fault = Some((fault, part.to_owned()));
    }

    pub fn fail_nothing(&self) {
        self.world().fault = None;
    }

    /// Room for so many bytes more than there are now.
    pub fn leave_room(&self, bytes: Option<u64>) {
        let world = &mut *self.world();
        world.capacity = bytes.map(|bytes| used(world) + bytes);
    }

    /// Syncs of files whose path contains `part` wait until released with `None`.
    pub fn hold_syncs(&self, part: Option<&str>) {
        self.world().held = part.map(str::to_owned);
        self.changed.notify_all();
    }

    /// Syncs that wait now.
    pub fn held_syncs(&self) -> usize {
        self.world().waiting
    }

    /// Syncs of files whose path contains `part`.
    pub fn syncs(&self, part: &str) -> u64 {
        self.world().syncs.iter().filter(|(path, _)| contains(path, part)).map(|(_, count)| count).sum()
    }

    /// Writes to files whose path contains `part`.
    pub fn writes(&self, part: &str) -> u64 {
        self.world().writes.iter().filter(|(path, _)| contains(path, part)).map(|(_, count)| count).sum()
    }

    pub fn files(&self, part: &str) -> Vec<PathBuf> {
        self.world().now.files.keys().filter(|path| contains(path, part)).cloned().collect()
    }

    pub fn content(&self, path: &Path) -> Vec<u8> {
        let world = self.world();
        world.inodes[world.now.files[path]].now.clone()
    }

    /// Makes a file with this content or replaces it, durably.
    pub fn overwrite(&self, path: &Path, content: &[u8]) {
        let world = &mut *self.world();
        let inode = world.inodes.len();
        world.inodes.push(Inode { now: content.to_vec(), durable: content.to_vec(), unsynced: Vec::new() });
        world.now.files.insert(path.to_owned(), inode);
        world.durable.files.insert(path.to_owned(), inode);
    }

    /// Deletes a file, durably.
    pub fn lose(&self, path: &Path) {
        let world = &mut *self.world();
        world.now.files.remove(path);
        world.durable.files.remove(path);
    }

    /// The disk as a program sees that starts now: after the next crash nothing it does has an effect.
    pub fn boot(&self) -> Arc<Boot> {
        let generation = self.world().generation;
        Arc::new(Boot { disk: self.me.upgrade().unwrap(), generation })
    }
}

/// See [`ForgetfulDisk::boot`].
pub struct Boot {
    disk: Arc<ForgetfulDisk>,
    generation: u64,
}

impl Boot {
    fn world(&self) -> io::Result<MutexGuard<'_, World>> {
        let world = self.disk.world();
        if world.generation == self.generation { Ok(world) } else { Err(broken()) }
    }

    fn file(&self, path: &Path, inode: usize) -> Arc<dyn DiskFile> {
        let (disk, generation) = (self.disk.clone(), self.generation);
        Arc::new(MemoryFile { disk, path: path.to_owned(), inode, generation })
    }
}

fn contains(path: &Path, part: &str) -> bool {
    path.to_str().unwrap().contains(part)
}

fn used(world: &World) -> u64 {
    world.now.files.values().map(|inode| world.inodes[*inode].now.len() as u64).sum()
}

impl World {
    fn name(&mut self, naming: Naming, path: &Path) {
        self.now.apply(&naming);
        self.unsynced.push((path.parent().unwrap().to_owned(), naming));
    }

    fn fails(&mut self, fault: Fault, path: &Path) -> bool {
        let hit = self.fault.as_ref().is_some_and(|(what, part)| *what == fault && contains(path, part));
        if hit {
            self.fault = None;
        }
        hit
    }
}

fn broken() -> io::Error {
    io::Error::from_raw_os_error(5)
}

impl Disk for Boot {
    fn make_dir(&self, dir: &Path) -> io::Result<()> {
        let world = &mut *self.world()?;
        let mut missing: Vec<&Path> = dir.ancestors().take_while(|dir| !world.now.dirs.contains(*dir)).collect();
        missing.reverse();
        for dir in missing {
            world.name(Naming::Dir(dir.to_owned()), dir);
        }
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let world = self.world()?;
        let paths = world.now.files.keys().filter(|path| path.parent() == Some(dir));
        Ok(paths.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect())
    }

    fn create(&self, path: &Path, bytes: u64) -> io::Result<Arc<dyn DiskFile>> {
        let inode = {
            let world = &mut *self.world()?;
            if world.fails(Fault::Create, path) {
                return Err(broken());
            }
            if world.now.files.contains_key(path) {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            if world.capacity.is_some_and(|capacity| used(world) + bytes > capacity) {
                return Err(io::Error::from_raw_os_error(28));
            }
            let length = usize::try_from(bytes).unwrap();
            let unsynced = vec![Change::Length(length)];
            world.inodes.push(Inode { now: vec![0; length], durable: Vec::new(), unsynced });
            let inode = world.inodes.len() - 1;
            world.name(Naming::File(path.to_owned(), inode), path);
            inode
        };
        Ok(self.file(path, inode))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let inode = self.world()?.now.files.get(path).copied().ok_or(io::ErrorKind::NotFound)?;
        Ok(self.file(path, inode))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let world = &mut *self.world()?;
        let inode = world.now.files.get(from).copied().ok_or(io::ErrorKind::NotFound)?;
        world.name(Naming::Renamed(from.to_owned(), to.to_owned(), inode), to);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let world = &mut *self.world()?;
        if world.fails(Fault::Remove, path) {
            return Err(broken());
        }
        world.now.files.get(path).ok_or(io::ErrorKind::NotFound)?;
        world.name(Naming::Gone(path.to_owned()), path);
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let world = &mut *self.world()?;
        if world.fails(Fault::SyncDir, dir) {
            return Err(broken());
        }
        for (parent, naming) in std::mem::take(&mut world.unsynced) {
            if parent == dir {
                world.durable.apply(&naming);
            } else {
                world.unsynced.push((parent, naming));
            }
        }
        Ok(())
    }
}

struct MemoryFile {
    disk: Arc<ForgetfulDisk>,
    path: PathBuf,
    inode: usize,
    generation: u64,
}

impl MemoryFile {
    fn world(&self) -> io::Result<MutexGuard<'_, World>> {
        let world = self.disk.world();
        if world.generation == self.generation { Ok(world) } else { Err(broken()) }
    }
}

impl DiskFile for MemoryFile {
    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.world()?.inodes[self.inode].now.len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let world = self.world()?;
        let now = &world.inodes[self.inode].now;
        let from = usize::try_from(offset).unwrap().min(now.len());
        let count = buffer.len().min(now.len() - from);
        buffer[..count].copy_from_slice(&now[from..from + count]);
        Ok(count)
    }

    fn write_at(&self, offset: u64, parts: &mut [IoSlice<'_>]) -> io::Result<()> {
        let mut bytes = parts.iter().map(|part| &**part).collect::<Vec<&[u8]>>().concat();
        let at = usize::try_from(offset).unwrap();
        let world = &mut *self.world()?;
        *world.writes.entry(self.path.clone()).or_default() += 1;
        let fails = world.fails(Fault::Write, &self.path);
        if fails {
            bytes.truncate(bytes.len() / 2);
        }
        let inode = &mut world.inodes[self.inode];
        if inode.now.len() < at + bytes.len() {
            inode.now.resize(at + bytes.len(), 0);
            inode.unsynced.push(Change::Length(at + bytes.len()));
        }
        inode.now[at..at + bytes.len()].copy_from_slice(&bytes);
        inode.unsynced.push(Change::Write(at, bytes));
        if fails { Err(broken()) } else { Ok(()) }
    }

    fn truncate(&self, bytes: u64) -> io::Result<()> {
        let length = usize::try_from(bytes).unwrap();
        let world = &mut *self.world()?;
        if world.fails(Fault::Truncate, &self.path) {
            return Err(broken());
        }
        let inode = &mut world.inodes[self.inode];
        inode.now.resize(length, 0);
        inode.unsynced.push(Change::Length(length));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut world = self.world()?;
        while world.held.as_ref().is_some_and(|part| contains(&self.path, part)) {
            world.waiting += 1;
            self.disk.changed.notify_all();
            world = self.disk.changed.wait(world).unwrap();
            world.waiting -= 1;
        }
        if world.generation != self.generation {
            return Err(broken());
        }
        let world = &mut *world;
        *world.syncs.entry(self.path.clone()).or_default() += 1;
        let fails = world.fails(Fault::Sync, &self.path);
        let inode = &mut world.inodes[self.inode];
        let unsynced = std::mem::take(&mut inode.unsynced);
        if fails {
            return Err(broken());
        }
        for change in unsynced {
            match change {
                Change::Length(length) => inode.durable.resize(length, 0),
                Change::Write(at, bytes) => {
                    let end = at + bytes.len();
                    if inode.durable.len() < end {
                        inode.durable.resize(end, 0);
                    }
                    inode.durable[at..end].copy_from_slice(&bytes);
                }
            }
        }
        Ok(())
    }
}
