//! Asking Linux for one TCP socket by its two addresses (`sock_diag(7)`).
//!
//! The question names one socket, so that nothing is listed and the answer is there when the question has been sent.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

use super::Found;

/// `SOCK_DIAG_BY_FAMILY`: the question, and its answer.
const BY_FAMILY: u16 = 20;
/// `NLMSG_ERROR`.
const ERROR: u16 = 2;
/// `NLM_F_REQUEST`.
const REQUEST: u16 = 1;
const TCP: u8 = 6;
/// The length of `nlmsghdr`.
const HEADER: usize = 16;
/// The length of the question: the header and `inet_diag_req_v2`.
const QUESTION: usize = HEADER + 56;
/// The length of what is read of an answer: the header and `inet_diag_msg`.
const ANSWER: usize = HEADER + 72;
/// The states in which a client's own end can be while its server accepts: `ESTABLISHED`, and with its sending side
/// closed `FIN_WAIT1` and `FIN_WAIT2`. A socket that listens at the client's address would be found too.
const CLIENT_STATES: [u8; 3] = [1, 4, 5];

/// A socket to ask with.
#[derive(Debug)]
pub(super) struct Diag {
    socket: OwnedFd,
    sequence: u32,
}

impl Diag {
    pub(super) fn open() -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC;
        let socket = rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(SOCK_DIAG))?;
        // To the kernel, so that nobody else's message is taken for its answer.
        rustix::net::connect(&socket, &SocketAddrNetlink::new(0, 0))?;
        Ok(Self { socket, sequence: 0 })
    }

    /// The socket whose own address is `of`, connected to `to`.
    ///
    /// # Errors
    /// The operating system's, and where its answer cannot be read.
    pub(super) fn find(&mut self, of: SocketAddr, to: SocketAddr) -> io::Result<Option<Found>> {
        let (of, to) = (canonical(of), canonical(to));
        self.sequence = self.sequence.wrapping_add(1);
        rustix::net::send(&self.socket, &question(self.sequence, of, to), SendFlags::empty())?;
        loop {
            let mut answer = [0; 1024];
            let (length, _) = rustix::net::recv(&self.socket, &mut answer, RecvFlags::DONTWAIT)?;
            let answer = &answer[..length];
            if four(answer, 8)? == self.sequence {
                return read(answer, of, to);
            }
            // That was for a question whose asker gave up.
        }
    }
}

/// An IPv4 address is the same one for a socket that speaks both families.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

fn family(of: SocketAddr) -> u8 {
    let family = if of.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    u8::try_from(family.as_raw()).unwrap_or_default()
}

fn question(sequence: u32, of: SocketAddr, to: SocketAddr) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(QUESTION);
    bytes.extend(u32::try_from(QUESTION).unwrap_or_default().to_ne_bytes());
    bytes.extend(BY_FAMILY.to_ne_bytes());
    bytes.extend(REQUEST.to_ne_bytes());
    bytes.extend(sequence.to_ne_bytes());
    bytes.extend([0; 4]);
    // No extensions; of an exact question the states are not looked at.
    bytes.extend([family(of), TCP, 0, 0]);
    bytes.extend(u32::MAX.to_ne_bytes());
    bytes.extend(of.port().to_be_bytes());
    bytes.extend(to.port().to_be_bytes());
    for address in [of.ip(), to.ip()] {
        match address {
            IpAddr::V4(address) => bytes.extend([&address.octets()[..], &[0; 12]].concat()),
            IpAddr::V6(address) => bytes.extend(address.octets()),
        }
    }
    // Any interface, and no cookie, which is all ones.
    bytes.extend([0; 4]);
    bytes.extend([0xff; 8]);
    bytes
}

fn read(answer: &[u8], of: SocketAddr, to: SocketAddr) -> io::Result<Option<Found>> {
    match two(answer, 4)? {
        ERROR => {
            let code = four(answer, HEADER)?.cast_signed().wrapping_neg();
            if code == Errno::NOENT.raw_os_error() { Ok(None) } else { Err(io::Error::from_raw_os_error(code)) }
        }
        BY_FAMILY if answer.len() >= ANSWER => {
            let body = &answer[HEADER..];
            if (address(body, 4, 8)?, address(body, 6, 24)?) != (of, to) {
                return Ok(None);
            }
            // What no process has open any more has no inode, and its user is none.
            let open = CLIENT_STATES.contains(&body[1]) && four(body, 68)? != 0;
            Ok(Some(Found { open, user: four(body, 64)? }))
        }
        _ => Err(ErrorKind::InvalidData.into()),
    }
}

fn address(body: &[u8], port: usize, ip: usize) -> io::Result<SocketAddr> {
    let octets = part::<16>(body, ip)?;
    let ip = if i32::from(body[0]) == i32::from(AddressFamily::INET.as_raw()) {
        Ipv4Addr::new(octets[0], octets[1], octets[2], octets[3]).into()
    } else {
        IpAddr::V6(Ipv6Addr::from(octets)).to_canonical()
    };
    Ok(SocketAddr::new(ip, u16::from_be_bytes(part(body, port)?)))
}

fn two(bytes: &[u8], at: usize) -> io::Result<u16> {
    part(bytes, at).map(u16::from_ne_bytes)
}

fn four(bytes: &[u8], at: usize) -> io::Result<u32> {
    part(bytes, at).map(u32::from_ne_bytes)
}

fn part<const N: usize>(bytes: &[u8], at: usize) -> io::Result<[u8; N]> {
    let part = bytes.get(at..at + N).and_then(|part| part.try_into().ok());
    part.ok_or_else(|| ErrorKind::InvalidData.into())
}
