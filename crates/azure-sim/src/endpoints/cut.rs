//! Cuts a response in the middle, after delivering everything before the cut.
//!
//! An error in a body makes the server discard all data that it has not written yet. So the body waits until
//! everything is written before it fails; the stream underneath reports when.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::task::AtomicWaker;
use hyper::body::{Body, Frame};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Ends the connection at this point.
#[derive(Debug, thiserror::Error)]
#[error("connection cut by an injected fault")]
pub(super) struct Broken;

/// Counts how often the stream has been flushed.
#[derive(Debug, Clone, Default)]
pub(super) struct Flushes(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    count: AtomicUsize,
    waiter: AtomicWaker,
}

impl Flushes {
    fn count(&self) -> usize {
        self.0.count.load(Ordering::Acquire)
    }

    fn one_more(&self) {
        self.0.count.fetch_add(1, Ordering::AcqRel);
        self.0.waiter.wake();
    }
}

/// A stream that counts its flushes.
#[derive(Debug)]
pub(super) struct Counted<Stream> {
    stream: Stream,
    flushes: Flushes,
}

impl<Stream> Counted<Stream> {
    pub(super) fn new(stream: Stream) -> (Self, Flushes) {
        let flushes = Flushes::default();
        (Self { stream, flushes: flushes.clone() }, flushes)
    }
}

impl<Stream: AsyncRead + Unpin> AsyncRead for Counted<Stream> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<Stream: AsyncWrite + Unpin> AsyncWrite for Counted<Stream> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        self.flushes.one_more();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// A body that ends in an error once everything before it has been written.
#[derive(Debug)]
pub(super) struct CutBody {
    part: Bytes,
    flushes: Flushes,
    stage: Stage,
}

#[derive(Debug, Clone, Copy)]
enum Stage {
    Part,
    /// Waits for the next flush after this count.
    Written(usize),
}

impl CutBody {
    pub(super) fn new(part: Bytes, flushes: Flushes) -> Self {
        Self { part, flushes, stage: Stage::Part }
    }
}

impl Body for CutBody {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        match self.stage {
            Stage::Part => {
                self.stage = Stage::Written(self.flushes.count());
                Poll::Ready(Some(Ok(Frame::data(self.part.clone()))))
            }
            Stage::Written(before) => {
                // Registered before the count is read, so that no flush in between is missed.
                self.flushes.0.waiter.register(context.waker());
                if self.flushes.count() == before {
                    return Poll::Pending;
                }
                Poll::Ready(Some(Err(Broken)))
            }
        }
    }
}
