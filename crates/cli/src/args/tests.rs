use clap::Parser;

use super::{AgentCli, AgentCommand, Cli, Command, Serve, ServeCommand};

fn serve(arguments: &[&str]) -> Result<Serve, clap::Error> {
    let Command::Serve(serve) = Cli::try_parse_from([&["majordomus", "serve"], arguments].concat())?.command else {
        panic!("it is serve");
    };
    Ok(serve)
}

fn addresses(arguments: &[&str]) -> Vec<String> {
    serve(arguments).unwrap().host.addresses().iter().map(ToString::to_string).collect()
}

#[test]
fn a_server_answers_at_loopback_addresses_and_no_others() {
    assert_eq!(addresses(&[]), ["127.0.0.1", "::1"]);
    assert_eq!(addresses(&["--host", "LocalHost"]), ["127.0.0.1", "::1"]);
    assert_eq!(addresses(&["--host", "127.0.0.2"]), ["127.0.0.2"]);
    assert_eq!(addresses(&["--host", "::1"]), ["::1"]);
    assert_eq!(addresses(&["--host", "[::1]"]), ["::1"]);
    for foreign in
        ["0.0.0.0", "::", "192.168.1.2", "::ffff:10.0.0.1", "example.com", "localhost.example.com", "", "[::1"]
    {
        assert!(serve(&["--host", foreign]).is_err(), "{foreign}");
    }
}

#[test]
fn a_port_that_was_asked_for_is_told_from_none() {
    assert_eq!(serve(&[]).unwrap().port, None);
    assert_eq!(serve(&["--port", "8741"]).unwrap().port, Some(8741));
    assert!(serve(&["--port", "70000"]).is_err());
    let told = ["majordomus", "mcp", "--http-port", "0"];
    let AgentCommand::Mcp(mcp) = AgentCli::try_parse_from(told).unwrap().command else {
        panic!("it is mcp");
    };
    assert_eq!(mcp.http_port, Some(0));
}

#[test]
fn flags_name_several_hosts_and_origins_at_once_or_again() {
    let told =
        ["--allow-host", "a.example", "B.example:80", "--allow-host", "[::1]:9", "--allow-origin", "https://C.example"];
    let http = serve(&told).unwrap().http;
    assert_eq!(http.allowed_hosts().unwrap(), ["a.example", "b.example:80", "[::1]:9"]);
    assert_eq!(http.allowed_origins().unwrap(), ["https://c.example"]);
}

#[test]
fn what_is_done_about_a_server_takes_none_of_its_arguments() {
    assert!(
        matches!(serve(&["ensure", "--json"]).unwrap().command, Some(ServeCommand::Ensure(answering)) if answering.json)
    );
    assert!(matches!(serve(&["status"]).unwrap().command, Some(ServeCommand::Status(answering)) if !answering.json));
    assert!(serve(&["--port", "0"]).unwrap().command.is_none());
    assert!(serve(&[crate::detached::FLAG]).unwrap().detached, "what starts a server and what reads it have one flag");
    for line in [&["--port", "0", "stop"][..], &["stop", "--port", "0"], &["restart"]] {
        assert!(serve(line).is_err(), "{line:?}");
    }
}
