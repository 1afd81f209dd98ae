use std::net::{IpAddr, Ipv4Addr, TcpListener};

use super::{BindError, Bound, Listen, Port};

const V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn listen(addresses: &[IpAddr], port: Port) -> Result<Bound, BindError> {
    Bound::new(&Listen { addresses: addresses.to_vec(), port })
}

#[test]
fn both_families_have_one_port_and_the_url_names_it() {
    let bound = listen(&Listen::LOOPBACK, Port::Exactly(0)).unwrap();
    assert_ne!(bound.port(), 0);
    assert_eq!(bound.url(), format!("http://127.0.0.1:{}", bound.port()));
    let ports: Vec<u16> = bound.into_listeners().iter().map(|listener| listener.local_addr().unwrap().port()).collect();
    assert!(ports.windows(2).all(|pair| pair[0] == pair[1]), "{ports:?}");
}

#[test]
fn a_port_that_is_taken_is_refused_or_another_one_is_found() {
    let taken = TcpListener::bind((V4, 0)).unwrap();
    let port = taken.local_addr().unwrap().port();
    let error = listen(&[V4], Port::Exactly(port)).unwrap_err();
    assert!(matches!(error, BindError::InUse { address: V4, port: named } if named == port), "{error}");
    let other = listen(&[V4], Port::Preferably(port)).unwrap();
    assert_ne!(other.port(), port);
}

#[test]
fn a_port_that_one_family_lacks_is_not_served_by_the_other_alone() {
    let Ok(taken) = TcpListener::bind((Listen::LOOPBACK[1], 0)) else { return };
    let port = taken.local_addr().unwrap().port();
    assert!(matches!(listen(&Listen::LOOPBACK, Port::Exactly(port)), Err(BindError::InUse { .. })));
    // And nothing is left listening on the other.
    TcpListener::bind((V4, port)).unwrap();
}

#[test]
fn an_address_that_the_machine_does_not_have_is_left_out_as_long_as_there_is_another() {
    let elsewhere: IpAddr = "192.0.2.1".parse().unwrap();
    assert!(listen(&[elsewhere, V4], Port::Exactly(0)).is_ok());
    assert!(matches!(listen(&[elsewhere], Port::Exactly(0)), Err(BindError::NoAddress)));
}
