//! Writes a zip file with sorted names and without times or owners, so that the file depends only on its
//! content.

use std::io::{self, Write as _};

use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};

/// A file in the zip.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// The path of the file, with slashes.
    pub(crate) name: String,
    pub(crate) content: Vec<u8>,
}

/// The earliest date that the format supports.
const DATE: u16 = 0x21;
const DEFLATED: u16 = 8;
/// Names are UTF-8.
const FLAGS: u16 = 1 << 11;
/// Version 2.0, created on Unix.
const VERSION: u16 = 20;
const MADE_BY: u16 = 3 << 8 | VERSION;
/// A regular file that all users may read and execute.
const MODE: u32 = 0o100_755 << 16;

/// The bytes of a zip file.
pub(crate) fn write(entries: &[Entry]) -> io::Result<Vec<u8>> {
    let (mut file, mut directory) = (Vec::new(), Vec::new());
    for Entry { name, content } in entries {
        let mut packed = DeflateEncoder::new(Vec::new(), Compression::best());
        packed.write_all(content)?;
        let packed = packed.finish()?;
        let mut sum = Crc::new();
        sum.update(content);
        let mut facts = Vec::new();
        short(&mut facts, &[VERSION, FLAGS, DEFLATED, 0, DATE]);
        long(&mut facts, &[sum.sum(), length(packed.len())?, length(content.len())?]);
        short(&mut facts, &[u16::try_from(name.len()).map_err(io::Error::other)?, 0]);

        let offset = length(file.len())?;
        directory.extend(b"PK\x01\x02");
        short(&mut directory, &[MADE_BY]);
        directory.extend(&facts);
        short(&mut directory, &[0, 0, 0]);
        long(&mut directory, &[MODE, offset]);
        directory.extend(name.as_bytes());

        file.extend(b"PK\x03\x04");
        file.extend(&facts);
        file.extend(name.as_bytes());
        file.extend(&packed);
    }
    let (offset, size) = (length(file.len())?, length(directory.len())?);
    let count = u16::try_from(entries.len()).map_err(io::Error::other)?;
    file.extend(&directory);
    file.extend(b"PK\x05\x06");
    short(&mut file, &[0, 0, count, count]);
    long(&mut file, &[size, offset]);
    short(&mut file, &[0]);
    Ok(file)
}

fn short(to: &mut Vec<u8>, numbers: &[u16]) {
    to.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
}

fn long(to: &mut Vec<u8>, numbers: &[u32]) {
    to.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
}

fn length(length: usize) -> io::Result<u32> {
    u32::try_from(length).map_err(io::Error::other)
}
