use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use super::diag::Diag;
use super::{Found, Stranger, Teller, has_everybody, unmapped};
use crate::testing::{ANOTHER, as_another};

const V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const V6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

fn own() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// A teller; `None` where this system does not tell, or has no such address, so that there is nothing to try.
fn teller(address: IpAddr) -> Option<Teller> {
    let nobody = SocketAddr::new(V4, 1);
    if Diag::open().and_then(|mut diag| diag.find(nobody, nobody)).is_err() || Some(own()) == unmapped() {
        eprintln!("skipped: this system does not tell whose connections are");
        return None;
    }
    TcpListener::bind((address, 0)).ok()?;
    Some(Teller::start(address).unwrap())
}

/// A connection from `client` to a listener of its own, as its server sees it.
fn connection(at: IpAddr, connect: impl FnOnce(SocketAddr) -> TcpStream) -> (TcpStream, TcpStream, SocketAddr) {
    let listener = TcpListener::bind((at, 0)).unwrap();
    let client = connect(listener.local_addr().unwrap());
    let (server, address) = listener.accept().unwrap();
    (client, server, address)
}

fn connect(to: SocketAddr) -> TcpStream {
    TcpStream::connect(to).unwrap()
}

#[test]
fn a_connection_of_this_user_is_served_over_either_family() {
    for at in [V4, V6] {
        let Some(mut teller) = teller(at) else { continue };
        let (client, server, address) = connection(at, connect);
        for _ in 0..3 {
            assert_eq!(teller.judge(&server, address), Ok(()), "{at}");
        }
        // A client may close its side once it has asked.
        client.shutdown(Shutdown::Write).unwrap();
        assert_eq!(teller.judge(&server, address), Ok(()), "{at}");
    }
}

#[test]
fn a_connection_of_another_user_is_not() {
    for at in [V4, V6] {
        let Some(mut teller) = teller(at) else { continue };
        let listener = TcpListener::bind((at, 0)).unwrap();
        let to = listener.local_addr().unwrap();
        let Some(_client) = as_another(|| connect(to)) else { return };
        let (server, address) = listener.accept().unwrap();
        let stranger = Stranger::User { theirs: ANOTHER, ours: own() };
        assert_eq!(teller.judge(&server, address), Err(stranger), "{at}");
        assert!(stranger.refusal().message.contains(&ANOTHER.to_string()));
    }
}

#[test]
fn root_is_served_by_another_users_server_as_little() {
    if teller(V4).is_none() {
        return;
    }
    let Some(mut teller) = as_another(|| Teller::start(V4).unwrap()) else { return };
    assert_eq!(teller.own, ANOTHER);
    let (_client, server, address) = connection(V4, connect);
    assert_eq!(teller.judge(&server, address), Err(Stranger::User { theirs: own(), ours: ANOTHER }));
    let listener = TcpListener::bind((V4, 0)).unwrap();
    let to = listener.local_addr().unwrap();
    let _theirs = as_another(|| connect(to)).unwrap();
    let (server, address) = listener.accept().unwrap();
    assert_eq!(teller.judge(&server, address), Ok(()));
}

#[test]
fn a_client_that_has_closed_is_not_taken_for_root() {
    for at in [V4, V6] {
        let Some(mut teller) = teller(at) else { continue };
        let (client, server, address) = connection(at, connect);
        let ours = server.local_addr().unwrap();
        drop(client);
        // Both that wait for our side to close and, then, for time to pass, are said to be root's.
        let waits = teller.find(address, ours).unwrap();
        assert!(waits.is_none_or(|found| !found.open), "{waits:?}");
        assert_eq!(teller.judge(&server, address), Err(Stranger::Unknown), "{at}");
        drop(server);
        let waits = teller.find(address, ours).unwrap();
        assert!(waits.is_none_or(|found| !found.open), "{waits:?}");
    }
}

/// Connects from a port that nobody is given who asks for any, so that it is free again afterwards.
fn connect_from_below(to: &SocketAddr) -> TcpStream {
    for port in (20_000..30_000).step_by(7) {
        let socket =
            rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::STREAM, None).unwrap();
        if rustix::net::bind(&socket, &SocketAddr::new(V4, port)).is_ok() {
            rustix::net::connect(&socket, to).unwrap();
            return socket.into();
        }
    }
    panic!("no port is free");
}

#[test]
fn a_client_that_has_reset_its_connection_is_refused_whoever_has_its_address_by_then() {
    let Some(mut teller) = teller(V4) else { return };
    let listener = TcpListener::bind((V4, 0)).unwrap();
    let to = listener.local_addr().unwrap();
    let client = connect_from_below(&to);
    let address = client.local_addr().unwrap();
    let (server, _) = listener.accept().unwrap();
    rustix::net::sockopt::set_socket_linger(&client, Some(Duration::ZERO)).unwrap();
    drop(client);
    assert_eq!(teller.find(address, to).unwrap(), None);
    assert_eq!(teller.judge(&server, address), Err(Stranger::Unknown));
    // Somebody who listens there is no client.
    let listens = TcpListener::bind(address).unwrap();
    let found = teller.find(address, to).unwrap();
    assert!(found.is_some_and(|found| !found.open && found.user == own()) || found.is_none(), "{found:?}");
    drop(listens);
    // And somebody who connects from there is another one, whom the first connection is not.
    let again = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::STREAM, None).unwrap();
    rustix::net::bind(&again, &address).unwrap();
    rustix::net::connect(&again, &to).unwrap();
    assert_eq!(teller.find(address, to).unwrap(), Some(Found { open: true, user: own() }));
    assert_eq!(teller.judge(&server, address), Err(Stranger::Unknown));
}

#[test]
fn an_ipv4_client_is_known_through_sockets_of_both_families() {
    let Some(mut teller) = teller(V4) else { return };
    let mapped = Ipv4Addr::LOCALHOST.to_ipv6_mapped();
    // A client that speaks both, to a server that speaks one.
    let through = |to: SocketAddr| connect(SocketAddr::new(mapped.into(), to.port()));
    let listener = TcpListener::bind((V4, 0)).unwrap();
    let Ok(_client) = TcpStream::connect((mapped, listener.local_addr().unwrap().port())) else { return };
    let (server, address) = listener.accept().unwrap();
    assert_eq!(teller.judge(&server, address), Ok(()));
    // And a server that speaks both.
    let Ok(dual) = TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0)) else { return };
    let to = dual.local_addr().unwrap();
    for client in [connect(SocketAddr::new(V4, to.port())), through(to)] {
        let (server, address) = dual.accept().unwrap();
        assert_eq!(address.ip(), mapped);
        assert_eq!(teller.judge(&server, address), Ok(()));
        drop(client);
    }
}

#[test]
fn a_user_without_a_number_here_is_nobody() {
    let Some(mut teller) = teller(V4) else { return };
    let found = |user| Some(Found { open: true, user });
    (teller.own, teller.unmapped) = (65_534, Some(65_534));
    assert_eq!(teller.weigh(found(65_534)), Err(Stranger::Unknown));
    assert_eq!(teller.weigh(None), Err(Stranger::Unknown));
    teller.own = 7;
    assert_eq!(teller.weigh(found(65_534)), Err(Stranger::Unknown));
    assert_eq!(teller.weigh(found(7)), Ok(()));
    assert_eq!(teller.weigh(Some(Found { open: false, user: 7 })), Err(Stranger::Unknown));
}

#[test]
fn asking_takes_next_to_nothing() {
    let Some(mut teller) = teller(V4) else { return };
    let (_client, server, address) = connection(V4, connect);
    let (rounds, since) = (1_000, Instant::now());
    for _ in 0..rounds {
        teller.judge(&server, address).unwrap();
    }
    eprintln!("{:?} a question", since.elapsed() / rounds);
    // Far above what it takes, and far below what a client would feel.
    assert!(since.elapsed() / rounds < Duration::from_millis(5));
}

#[test]
fn nobody_is_a_user_like_any_other_where_everybody_has_a_number() {
    assert!(has_everybody("         0          0 4294967295\n"));
    for part in ["0 1000 1\n", "0 0 65536\n", "0 1 4294967294\n", "0 0 4294967295\n1 1 1\n", ""] {
        assert!(!has_everybody(part), "{part:?}");
    }
}
