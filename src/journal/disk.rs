//! The seam between the journal and the file system, so that tests can use a disk that forgets what was not
//! synced, fails, or is full. The real one is [`RealDisk`].

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, IoSlice};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{FallocateFlags, OFlags};
use rustix::io::Errno;

/// Readable and writable by the owner only.
const FILE_MODE: u32 = 0o600;
/// Open to the owner only.
const DIR_MODE: u32 = 0o700;

/// What the journal asks of a file system. Calls block; none is made on an async worker by the appenders.
pub trait Disk: Send + Sync + 'static {
    /// Makes a directory (mode 0700) and its parents, durably; it may exist already.
    fn make_dir(&self, dir: &Path) -> io::Result<()>;
    /// The names in a directory, in no order. Names that are not UTF-8 are left out.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;
    /// Makes a new file (mode 0600) with `bytes` of zeros reserved. Fails when it exists.
    fn create(&self, path: &Path, bytes: u64) -> io::Result<Arc<dyn DiskFile>>;
    /// Opens an existing file for reading and writing; never follows a symlink.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;
    /// Renames within a directory, replacing what is there.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Deletes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes creations, renames and deletions in a directory durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
}

/// One open file of a [`Disk`].
pub trait DiskFile: Send + Sync {
    /// Its length in bytes, reserved zeros included.
    fn size_bytes(&self) -> io::Result<u64>;
    /// Reads at an offset; fewer bytes than asked for only at the end of the file.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;
    /// Writes all parts one after the other at an offset. After an error any part of them may be there.
    fn write_at(&self, offset: u64, parts: &mut [IoSlice<'_>]) -> io::Result<()>;
    /// Cuts the file to a length.
    fn truncate(&self, bytes: u64) -> io::Result<()>;
    /// Makes content and length durable (`fdatasync`). After an error nothing may be assumed of any unsynced byte. Fails
    /// when the file was removed meanwhile: nobody would find it again.
    fn sync(&self) -> io::Result<()>;
}

/// The file system of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn make_dir(&self, dir: &Path) -> io::Result<()> {
        let missing: Vec<&Path> = dir.ancestors().take_while(|dir| !dir.exists()).collect();
        DirBuilder::new().recursive(true).mode(DIR_MODE).create(dir)?;
        // A new name is on disk once the folder that holds it is synced.
        let holders = missing.iter().filter_map(|made| made.parent());
        holders
            .map(|holder| if holder.as_os_str().is_empty() { Path::new(".") } else { holder })
            .try_for_each(|holder| self.sync_dir(holder))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(dir)? {
            names.extend(entry?.file_name().into_string().ok());
        }
        Ok(names)
    }

    fn create(&self, path: &Path, bytes: u64) -> io::Result<Arc<dyn DiskFile>> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(FILE_MODE).open(path)?;
        match rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, bytes) {
            Ok(()) => {}
            // A file system that cannot reserve (some network ones): a hole reads as zeros just the same.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => file.set_len(bytes)?,
            Err(error) => {
                drop(file);
                // The name must not stay behind: the next try would meet it.
                let _ = std::fs::remove_file(path);
                return Err(error.into());
            }
        }
        Ok(Arc::new(RealFile(file)))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let flags = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or(0);
        let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path)?;
        Ok(Arc::new(RealFile(file)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }
}

struct RealFile(File);

impl DiskFile for RealFile {
    fn size_bytes(&self) -> io::Result<u64> {
        self.0.metadata().map(|metadata| metadata.len())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            match self.0.read_at(&mut buffer[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    fn write_at(&self, mut offset: u64, mut parts: &mut [IoSlice<'_>]) -> io::Result<()> {
        IoSlice::advance_slices(&mut parts, 0);
        while !parts.is_empty() {
            match rustix::io::pwritev(&self.0, parts, offset) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    offset += count as u64;
                    IoSlice::advance_slices(&mut parts, count);
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn truncate(&self, bytes: u64) -> io::Result<()> {
        self.0.set_len(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()?;
        if self.0.metadata()?.nlink() == 0 {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the segment was removed while it was written"));
        }
        Ok(())
    }
}
