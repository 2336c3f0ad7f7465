//! Lines of the input with their numbers, read beside the sending so that a slow input is sent as it comes.

use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal as _};
use std::path::Path;

use tokio::sync::mpsc;

use crate::exit::Fault;
use crate::seam;
use crate::terminal::remark;

/// Longest line: more is never an event, and is passed over without being kept.
const LINE_MAX: usize = 16 * 1024 * 1024;
/// Lines that are read ahead.
const AHEAD: usize = 2_000;

/// A line of the input.
#[derive(Debug)]
pub(super) struct Line {
    /// From 1.
    pub(super) number: u64,
    /// Bytes of the input up to its end.
    pub(super) end: u64,
    /// Its text, or what is wrong with it.
    pub(super) text: Result<String, String>,
}

/// Where the lines come from.
pub(super) struct Input {
    reader: Box<dyn BufRead + Send>,
    /// How long it is, if that is known.
    pub(super) bytes: Option<u64>,
}

impl Input {
    /// A file, or stdin.
    pub(super) fn open(file: Option<&Path>, quiet: bool) -> Result<Self, Fault> {
        let of_file = |file: File| {
            let bytes =
                file.metadata().ok().filter(std::fs::Metadata::is_file).map(|metadata| metadata.len());
            Self { reader: Box::new(BufReader::new(file)), bytes }
        };
        if let Some(path) = file {
            let file = File::open(path)
                .map_err(|error| Fault::usage(format!("--file {}: {error}", path.display())))?;
            return Ok(of_file(file));
        }
        if std::io::stdin().is_terminal() && !quiet {
            remark("one event per line, such as {\"key\":\"ann\",\"data\":1}; Ctrl-D ends");
        }
        // The same open file under another number, so that its length can be asked for.
        let stdin = rustix::io::dup(std::io::stdin())
            .map_err(|error| Fault::failed(format!("stdin cannot be read: {error}")))?;
        Ok(of_file(File::from(stdin)))
    }

    /// The lines, in order. An error of reading is the last of them.
    pub(super) fn lines(self) -> mpsc::Receiver<std::io::Result<Line>> {
        let (told, lines) = mpsc::channel(AHEAD);
        let read = seam::blocking(move || read(self.reader, &told));
        // It ends with the input, or when nobody wants its lines any more.
        drop(seam::spawn(read));
        lines
    }
}

fn read(mut reader: Box<dyn BufRead + Send>, told: &mpsc::Sender<std::io::Result<Line>>) {
    let (mut number, mut end) = (0, 0);
    loop {
        number += 1;
        let line = match next(&mut reader, number, &mut end) {
            Ok(Some(line)) => Ok(line),
            Ok(None) => return,
            Err(error) => Err(error),
        };
        let is_last = line.is_err();
        if told.blocking_send(line).is_err() || is_last {
            return;
        }
    }
}

fn next(reader: &mut dyn BufRead, number: u64, end: &mut u64) -> std::io::Result<Option<Line>> {
    let mut bytes = Vec::new();
    let mut length = 0;
    loop {
        let piece = reader.fill_buf()?;
        if piece.is_empty() && length == 0 {
            return Ok(None);
        }
        let at = piece.iter().position(|byte| *byte == b'\n');
        let taken = at.map_or(piece.len(), |at| at + 1);
        length += taken;
        if length <= LINE_MAX {
            bytes.extend_from_slice(&piece[..taken]);
        }
        let is_over = at.is_some() || piece.is_empty();
        reader.consume(taken);
        if is_over {
            break;
        }
    }
    *end += length as u64;
    let text = if length > LINE_MAX {
        Err(format!("it has {length} bytes, must have at most {LINE_MAX}"))
    } else {
        String::from_utf8(bytes).map_err(|_| "it is no UTF-8".to_owned())
    };
    Ok(Some(Line { number, end: *end, text }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_their_numbers_and_ends() {
        let mut reader: Box<dyn BufRead + Send> = Box::new(&b"one\n\n\xff\nlast"[..]);
        let mut end = 0;
        let mut read = |number| next(&mut reader, number, &mut end).unwrap();
        let one = read(1).unwrap();
        assert_eq!((one.number, one.end, one.text.as_deref()), (1, 4, Ok("one\n")));
        assert_eq!(read(2).unwrap().text.as_deref(), Ok("\n"));
        assert!(read(3).unwrap().text.is_err());
        let last = read(4).unwrap();
        assert_eq!((last.end, last.text.as_deref()), (11, Ok("last")));
        assert!(read(5).is_none());
    }
}
