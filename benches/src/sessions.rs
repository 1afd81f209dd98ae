//! Sessions of the Model Context Protocol over HTTP.

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};

use crate::wire::{Connection, post};

/// The revision that is spoken.
const REVISION: &str = "2025-06-18";
const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

/// A session that has begun.
pub(crate) struct Session {
    address: SocketAddr,
    /// The headers by which its messages are known.
    headers: String,
}

impl Session {
    /// Begins a session, as a client does: two messages.
    pub(crate) fn begin(connection: &mut Connection, address: SocketAddr) -> Result<Self> {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"{REVISION}","capabilities":{{}},"clientInfo":{{"name":"bench","version":"0"}}}}}}"#
        );
        let answer = connection.ask(&post(address, "/mcp", "", &body), 200)?;
        let id = answer.header("mcp-session-id");
        let id = id.with_context(|| format!("initialize began no session: {}{}", answer.head, answer.text()))?;
        let headers = format!("mcp-session-id: {id}\r\nmcp-protocol-version: {REVISION}\r\n");
        let session = Self { address, headers };
        let initialized = session.message(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        connection.ask(&initialized, 202)?;
        Ok(session)
    }

    /// Writes a message of this session.
    pub(crate) fn message(&self, body: &str) -> Vec<u8> {
        post(self.address, "/mcp", &self.headers, body)
    }

    /// Writes a call of a tool.
    pub(crate) fn call(&self, id: usize, tool: &str, arguments: &str) -> Vec<u8> {
        self.message(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
        ))
    }

    /// Shows that its client is there.
    pub(crate) fn ping(&self, connection: &mut Connection) -> Result<()> {
        let answer = connection.ask(&self.message(PING), 200)?;
        ensure!(answer.text().contains(r#""result":{}"#), "not the answer to a ping: {}", answer.text());
        Ok(())
    }

    /// Makes sure that the server knows it no more.
    pub(crate) fn is_over(&self, connection: &mut Connection) -> Result<()> {
        connection.ask(&self.message(PING), 404).map(drop)
    }
}
