use std::fs::File;
use std::io::{ErrorKind, Read, Write, pipe};
use std::os::unix::net::UnixStream;

use rustix::fs::{OFlags, fcntl_getfl};

use super::{End, Kind};

#[test]
fn a_pipe_does_not_become_non_blocking_for_others() {
    let (reader, mut writer) = pipe().unwrap();
    let (theirs, ours) = (reader.try_clone().unwrap(), End::reader(reader.into()));
    assert_eq!(ours.kind, if cfg!(target_os = "linux") { Kind::Own } else { Kind::Other });
    assert!(!fcntl_getfl(&theirs).unwrap().contains(OFlags::NONBLOCK));

    assert_eq!(ours.read(&mut [0; 8]).unwrap_err().kind(), ErrorKind::WouldBlock);
    writer.write_all(b"hello").unwrap();
    let mut buffer = [0; 8];
    assert_eq!((ours.read(&mut buffer).unwrap(), &buffer[..5]), (5, b"hello".as_slice()));
    drop(writer);
    assert_eq!(ours.read(&mut buffer).unwrap(), 0);
}

#[test]
fn a_full_pipe_is_no_reason_to_wait_and_a_closed_one_is_an_error() {
    let (reader, writer) = pipe().unwrap();
    let (theirs, ours) = (writer.try_clone().unwrap(), End::writer(writer.into()));
    assert!(!fcntl_getfl(&theirs).unwrap().contains(OFlags::NONBLOCK));
    assert_eq!(fill(&ours), ErrorKind::WouldBlock);
    drop(reader);
    assert_eq!(ours.write(b"x").unwrap_err().kind(), ErrorKind::BrokenPipe);
}

#[test]
fn a_pipe_that_cannot_be_opened_once_more_does_not_make_us_wait_either() {
    let (reader, writer) = pipe().unwrap();
    let (input, output) = (End { fd: reader.into(), kind: Kind::Other }, End { fd: writer.into(), kind: Kind::Other });
    assert_eq!(input.read(&mut [0; 8]).unwrap_err().kind(), ErrorKind::WouldBlock);
    assert_eq!(fill(&output), ErrorKind::WouldBlock);
    assert_eq!(input.read(&mut [0; 8]).unwrap(), 8);
}

/// Writes until that fails.
fn fill(end: &End) -> ErrorKind {
    loop {
        if let Err(error) = end.write(&[b'x'; 65536]) {
            return error.kind();
        }
    }
}

#[test]
fn a_socket_does_not_become_non_blocking_for_others() {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let shared = ours.try_clone().unwrap();
    let (input, output) = (End::reader(ours.try_clone().unwrap().into()), End::writer(ours.into()));
    assert_eq!(input.read(&mut [0; 8]).unwrap_err().kind(), ErrorKind::WouldBlock);
    assert!(!fcntl_getfl(&shared).unwrap().contains(OFlags::NONBLOCK));

    theirs.write_all(b"hi").unwrap();
    assert_eq!(input.read(&mut [0; 8]).unwrap(), 2);
    assert_eq!(output.write(b"ho").unwrap(), 2);
    let mut answer = [0; 2];
    theirs.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"ho");
    drop((theirs, shared));
    assert_eq!(input.read(&mut [0; 8]).unwrap(), 0);
}

#[test]
fn a_device_or_file_is_used_as_it_is() {
    let null = End::reader(File::open("/dev/null").unwrap().into());
    assert_eq!(null.kind, Kind::Other);
    assert_eq!(null.read(&mut [0; 8]).unwrap(), 0);
}
