//! Requests that are complete in themselves, as clients of the revision without sessions send them.

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::{Client, Connection, Reply, Request};

/// The member of `_meta` that carries a handle beside the arguments.
pub const HANDLE_META: &str = "dev.majordomus/episode-handle";

/// What such a request says of itself.
#[must_use]
pub fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "anything", "version": "0" },
    })
}

/// Params that say it, unless they say something else already.
#[must_use]
fn complete(params: &Value) -> Value {
    let mut params = params.clone();
    if params["_meta"].is_null() {
        params["_meta"] = meta();
    }
    params
}

/// A request that is complete in itself.
#[must_use]
pub fn modern(id: impl Into<Value>, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": method, "params": complete(params) })
}

/// A call of a tool whose result the protocol wraps once more in this era.
fn whole(result: &Value) -> &Value {
    assert_eq!(result["resultType"], "complete", "{result}");
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "majordomus", "{result}");
    result
}

/// The structured content of a result that must be none of a refusal.
fn content(result: &Value) -> Value {
    assert!(whole(result)["isError"] != true, "{result}");
    let content = &result["structuredContent"];
    let text = result["content"][0]["text"].as_str().expect("a result has text");
    assert_eq!(&serde_json::from_str::<Value>(text).expect("the text is the same JSON"), content);
    content.clone()
}

/// The handle that an attach was answered with.
///
/// # Panics
/// Where it is none.
#[must_use]
pub fn handle_of(attached: &Value) -> String {
    let handle = attached["episode_handle"].as_str().unwrap_or_else(|| panic!("no handle in {attached}"));
    assert!(handle.len() == 25 && handle.starts_with("ep_"), "{handle}");
    handle.to_owned()
}

impl Client {
    /// The answer to a request that is complete in itself.
    pub fn modern(&mut self, method: &str, params: &Value) -> Value {
        self.ask(method, &complete(params))
    }

    /// Calls a tool so, and returns its result, a refusal included.
    pub fn modern_tool(&mut self, name: &str, arguments: &Value) -> Value {
        let answer = self.modern("tools/call", &json!({ "name": name, "arguments": arguments }));
        whole(&answer["result"]).clone()
    }

    /// Calls a tool so that must succeed, and returns its structured content.
    pub fn modern_done(&mut self, name: &str, arguments: &Value) -> Value {
        content(&self.modern_tool(name, arguments))
    }

    /// Attaches so, and returns the answer and its handle.
    pub fn modern_attach(&mut self, external_id: &str) -> (Value, String) {
        let answer = self.modern_done("majordomus_session_attach", &json!({ "external_id": external_id }));
        let handle = handle_of(&answer);
        (answer, handle)
    }

    /// Detaches what a handle stands for.
    pub fn modern_detach(&mut self, handle: &str) -> Value {
        self.modern_done("majordomus_session_detach", &json!({ "episode_handle": handle }))
    }

    /// Shows a handle beside a request that asks for nothing of it.
    pub fn show(&mut self, handle: &str) -> Value {
        let mut meta = meta();
        meta[HANDLE_META] = handle.into();
        self.modern("tools/list", &json!({ "_meta": meta }))
    }
}

impl Request {
    /// A POST of a request that is complete in itself, with the headers that say so once more.
    #[must_use]
    pub fn modern(message: &Value) -> Self {
        let method = message["method"].as_str().expect("it has a method");
        let version = message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str();
        let mut request = Self::post("/mcp", message).header("Mcp-Method", method);
        request = request.header("MCP-Protocol-Version", version.unwrap_or("2026-07-28"));
        let params = &message["params"];
        match params["name"].as_str().or(params["uri"].as_str()) {
            Some(name) => request.header("Mcp-Name", name),
            None => request,
        }
    }
}

/// A client over HTTP that has no session: it has a connection, which says nothing of it.
#[derive(Debug)]
pub struct Stateless {
    connection: Connection,
    last_id: u64,
}

impl Stateless {
    /// Connects.
    #[must_use]
    pub fn connect(address: SocketAddr) -> Self {
        Self { connection: Connection::open(address), last_id: 0 }
    }

    /// Sends a request of that era, and returns its reply.
    pub fn ask(&mut self, method: &str, params: &Value) -> Reply {
        self.last_id += 1;
        let reply = self.connection.ask(&Request::modern(&modern(self.last_id, method, params)));
        assert_eq!(reply.json()["id"], self.last_id, "{reply:?}");
        assert_eq!(reply.header("mcp-session-id"), None);
        reply
    }

    /// Calls a tool, and returns its result, a refusal included.
    pub fn tool(&mut self, name: &str, arguments: &Value) -> Value {
        let reply = self.ask("tools/call", &json!({ "name": name, "arguments": arguments }));
        whole(&reply.done()["result"]).clone()
    }

    /// Calls a tool that must succeed, and returns its structured content.
    pub fn done(&mut self, name: &str, arguments: &Value) -> Value {
        content(&self.tool(name, arguments))
    }

    /// Attaches, and returns the answer and its handle.
    pub fn attach(&mut self, external_id: &str) -> (Value, String) {
        let answer = self.done("majordomus_session_attach", &json!({ "external_id": external_id }));
        let handle = handle_of(&answer);
        (answer, handle)
    }

    /// Detaches what a handle stands for.
    pub fn detach(&mut self, handle: &str) -> Value {
        self.done("majordomus_session_detach", &json!({ "episode_handle": handle }))
    }
}
