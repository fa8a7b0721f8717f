//! Reads the output of a program from a pipe. All output from before the end of the program counts, however
//! late it is read; processes that the program left running may hold the pipe open and are not waited for.

use std::io::{self, PipeReader, Read};
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, poll};

/// Passes on the content of a pipe up to its end. Calls `caught_up` once: when all data that was written
/// before the other end of `ended` was closed has been passed on.
pub(crate) fn drain(
    mut from: impl Read + AsFd,
    ended: &PipeReader,
    mut give: impl FnMut(&[u8]),
    caught_up: impl FnOnce(),
) {
    let mut buffer = [0; 16 * 1024];
    let mut caught_up = Some(caught_up);
    // The number of bytes that the pipe held when the program had ended and that are still unread.
    let mut held: Option<usize> = None;
    loop {
        if held.is_none() && has_ended(&from, ended) {
            held = Some(waiting_in(&from));
        }
        if held == Some(0)
            && let Some(caught_up) = caught_up.take()
        {
            caught_up();
        }
        match from.read(&mut buffer) {
            Ok(count @ 1..) => {
                give(&buffer[..count]);
                held = held.map(|held| held.saturating_sub(count));
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(_) | Err(_) => break,
        }
    }
    if let Some(caught_up) = caught_up {
        caught_up();
    }
}

/// Waits until data is readable or the program has ended; returns whether it has ended.
fn has_ended(from: &impl AsFd, ended: &PipeReader) -> bool {
    let mut fds = [PollFd::new(from, PollFlags::IN), PollFd::new(ended, PollFlags::IN)];
    // If `poll` fails, waiting is impossible: the available data is read, and later data does not count.
    rustix::io::retry_on_intr(|| poll(&mut fds, None)).is_err() || !fds[1].revents().is_empty()
}

/// The number of bytes that can be read without waiting.
fn waiting_in(from: &impl AsFd) -> usize {
    let count = rustix::io::ioctl_fionread(from).unwrap_or_default();
    usize::try_from(count).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn what_was_written_before_the_end_counts_though_the_pipe_stays_open() {
        let (from, mut to) = io::pipe().unwrap();
        let (ended, end) = io::pipe().unwrap();
        to.write_all(&vec![7; 40_000]).unwrap();
        drop(end);
        let (sender, receiver) = mpsc::channel();
        let (caught_up, all) = (sender.clone(), sender);
        let reading = std::thread::spawn(move || {
            let give = |bytes: &[u8]| all.send(bytes.len()).unwrap();
            drain(from, &ended, give, || caught_up.send(0).unwrap());
        });
        let before: usize = receiver.iter().take_while(|count| *count > 0).sum();
        assert_eq!(before, 40_000);
        to.write_all(b"later").unwrap();
        drop(to);
        assert_eq!(receiver.iter().sum::<usize>(), 5);
        reading.join().unwrap();
    }

    #[test]
    fn a_pipe_that_ends_before_the_program_is_read_to_its_end() {
        let (from, mut to) = io::pipe().unwrap();
        let (ended, _end) = io::pipe().unwrap();
        to.write_all(b"all").unwrap();
        drop(to);
        let (mut read, mut caught_up) = (Vec::new(), false);
        drain(from, &ended, |bytes| read.extend_from_slice(bytes), || caught_up = true);
        assert_eq!((read.as_slice(), caught_up), (b"all".as_slice(), true));
    }
}
